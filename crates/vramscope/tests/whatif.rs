//! `vramscope whatif` on real recordings and on what cannot be replayed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should fail on the spot"
)]

use std::path::Path;

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;

const MIB: u64 = 1 << 20;

fn corpus(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    root.join(path).canonicalize().unwrap().to_str().unwrap().to_owned()
}

/// Runs `whatif` in a terminal of 80 columns and gives exit status, output and messages.
fn run(path: &str, args: &[&str]) -> (i32, String, String) {
    let mut command = cargo_bin_cmd!("vramscope");
    let output = command.arg("whatif").arg(path).args(args).env("COLUMNS", "80").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(path: &str, args: &[&str]) -> (i32, Value) {
    let (status, out, err) = run(path, &[args, &["--format", "json"]].concat());
    (status, serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}\n{out}\n{err}")))
}

fn settings(document: &Value) -> &[Value] {
    document["settings"].as_array().unwrap()
}

fn mib(setting: &Value, field: &str) -> u64 {
    setting[field].as_u64().unwrap_or_else(|| panic!("{field} in {setting}")) / MIB
}

#[test]
fn fragmentation_is_answered_with_the_setting_that_cures_it() {
    let varlen = corpus("recordings/fragmentation_varlen");
    let (status, document) = json(&varlen, &[]);
    assert_eq!((status, document["schema"].as_str()), (0, Some("vramscope.whatif/1")));
    assert_eq!(document["self_check"]["exact"], true);
    assert_eq!(document["recommended"], "expandable_segments:True");
    assert_eq!(document["reason_kind"], "lower-peak");
    let own = &settings(&document)[0];
    assert_eq!((own["conf"].as_str(), own["own"].as_bool()), (Some(""), Some(true)));
    assert_eq!(mib(own, "peak_reserved"), 2550);
    let best = settings(&document).iter().find(|s| s["conf"] == document["recommended"]).unwrap();
    assert_eq!((mib(best, "peak_reserved"), best["segment_allocs"].as_u64()), (756, Some(0)));
    for field in [
        "final_reserved",
        "peak_allocated",
        "segments_peak",
        "segment_frees",
        "maps",
        "unmaps",
        "oom",
        "peak_fragmentation",
        "allocated_at_peak",
        "retries",
        "needed_without_limit",
        "rescued",
        "warnings",
    ] {
        assert!(best.get(field).is_some(), "{field}");
    }
    let confs: Vec<&str> = settings(&document).iter().map(|s| s["conf"].as_str().unwrap()).collect();
    assert!((10..=16).contains(&confs.len()), "{confs:?}");
    assert_eq!(confs.iter().filter(|conf| conf.is_empty()).count(), 1, "own settings once: {confs:?}");

    let (_, text, _) = run(&varlen, &[]);
    for part in ["WHAT IF  `expandable_segments:True` would have peaked", "reproduces the recording exactly"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(text.contains("\nset     export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"), "{text}");
}

#[test]
fn memory_that_the_program_needs_is_not_cured() {
    let (status, document) = json(&corpus("recordings/oom_capped"), &[]);
    assert_eq!(status, 1);
    assert!(document["recommended"].is_null());
    assert_eq!(document["reason_kind"], "too-much-at-once");
    let limits = &document["limits"];
    assert_eq!(limits["source"], "recorded");
    let (least, below) = (mib(limits, "reserved_limit"), mib(limits, "below"));
    assert_eq!((least, below), (2848, 2880), "{limits}");
    let oom = &settings(&document)[0]["oom"];
    assert_eq!((oom["site"]["line"].as_u64(), mib(oom, "size")), (Some(26), 32));
    assert!(settings(&document).iter().all(|s| mib(s, "needed_without_limit") >= 2880), "{document}");

    let (status, document) = json(&corpus("recordings/feature_pyramid"), &[]);
    assert_eq!((status, document["reason_kind"].as_str()), (0, Some("live-memory")));
    assert!(document["recommended"].is_null());
}

#[test]
fn a_setting_that_fits_is_recommended_whatever_the_others_do() {
    let varlen = corpus("recordings/fragmentation_varlen/step80.pickle.zst");
    let check = |args: &[&str], want: i32| -> Value {
        let (status, document) = json(&varlen, &[&["--capacity", "760MiB"], args].concat());
        assert_eq!(status, want, "{args:?}: {}", document["headline"]);
        document
    };
    let document = check(&[], 1);
    assert_eq!(document["reason_kind"], "fits");
    let recommended = settings(&document).iter().find(|s| s["conf"] == document["recommended"]).unwrap();
    assert!(recommended["oom"].is_null(), "{recommended}");
    let own = &settings(&document)[0];
    assert!(own["oom"]["event"].is_u64() && mib(own, "needed_without_limit") == 2550, "{own}");
    assert!(mib(own, "peak_reserved") <= 760, "{own}");
    // Without a sweep the named settings decide.
    check(&["--conf", "expandable_segments:True"], 0);
    check(&["--conf", "expandable_segments:True", "--sweep"], 1);
    check(&["--conf", "max_split_size_mb:64"], 1);
    check(&["--conf", "max_split_size_mb:64", "--conf", "expandable_segments:True"], 0);
    let (_, text, _) = run(&varlen, &["--capacity", "760MiB", "--conf", "max_split_size_mb:64"]);
    assert!(text.contains("out     as recorded, memory runs out in step"), "{text}");
}

#[test]
fn a_fraction_without_a_capacity_is_said_to_limit_nothing() {
    let varlen = corpus("recordings/fragmentation_varlen/step80.pickle.zst");
    let (_, document) = json(&varlen, &["--memory-fraction", "0.02", "--conf", "expandable_segments:True"]);
    let limits = &document["limits"];
    assert_eq!(limits["memory_fraction"], 0.02);
    // 2,550 MiB are 2 % of 124.5 GiB.
    assert_eq!(limits["fraction_binds_below"].as_u64().unwrap(), 2550 * MIB * 50);
    let summary = limits["summary"].as_str().unwrap();
    assert!(summary.contains("The figures hold for devices of 124.6 GiB or more"), "{summary}");
    let (_, in_conf) = json(&varlen, &["--conf", "per_process_memory_fraction:0.5"]);
    assert!(in_conf["limits"]["fraction_binds_below"].is_u64(), "{}", in_conf["limits"]);
    let (_, with_capacity) = json(&varlen, &["--memory-fraction", "0.5", "--capacity", "2GiB"]);
    assert_eq!(mib(&with_capacity["limits"], "reserved_limit"), 1024);
    assert!(with_capacity["limits"]["fraction_binds_below"].is_null());
    let collected = settings(&with_capacity).iter().any(|s| s["collections"].as_u64() > Some(0));
    assert!(collected, "garbage is collected only within a fraction");
}

#[test]
fn of_several_devices_the_fullest_is_replayed_unless_told() {
    let two = corpus("recordings/_variants/two_devices.pickle.zst");
    let (_, document) = json(&two, &["--conf", ""]);
    assert_eq!(
        (document["device"].as_u64(), document["other_devices"][0]["device"].as_u64()),
        (Some(1), Some(0))
    );
    let (_, document) = json(&two, &["--device", "0"]);
    assert_eq!(
        (document["device"].as_u64(), document["other_devices"][0]["device"].as_u64()),
        (Some(0), Some(1))
    );
    let (_, text, _) = run(&two, &[]);
    assert!(text.contains("not replayed: cuda:0"), "{text}");
    let (_, document) = json(&corpus("recordings/ddp_one_rank"), &["--rank", "1"]);
    assert_eq!(
        (document["rank"].as_u64(), document["other_devices"].as_array().unwrap().len()),
        (Some(1), 0)
    );
    let (status, _, err) = run(&two, &["--device", "5"]);
    assert!(status == 2 && err.contains("no snapshot holds device 5"), "{err}");
}

#[test]
fn what_cannot_be_done_is_named_with_the_reason() {
    let varlen = corpus("recordings/fragmentation_varlen/step80.pickle.zst");
    let no_history = corpus("recordings/_variants/no_history.pickle");
    for (path, args, wanted) in [
        (&no_history, &[][..], "error: device 0 cannot be replayed: no allocations were recorded"),
        (&varlen, &["--conf", "expandable:True"], "error: `--conf expandable:True`: "),
        (&varlen, &["--memory-fraction", "80"], "is at most 1"),
        (&varlen, &["--capacity", "lots"], "is no unit"),
    ] {
        let (status, out, err) = run(path, args);
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.contains(wanted), "{args:?}: {err}");
    }
    let (_, _, err) = run(&no_history, &[]);
    assert!(err.contains("hint: "), "{err}");
}

#[test]
fn every_recording_fits_a_narrow_terminal() {
    let mut n = 0;
    for entry in std::fs::read_dir(corpus("recordings/_variants")).unwrap() {
        let path = entry.unwrap().path();
        for args in [&[][..], &["-v"]] {
            let (status, text, err) = run(path.to_str().unwrap(), args);
            assert!(status < 2 || err.contains("error: "), "{}: {err}", path.display());
            let wide: Vec<&str> =
                text.lines().filter(|l| l.chars().count() > 80 && !l.contains('/')).collect();
            assert!(wide.is_empty(), "{}: {wide:#?}", path.display());
            n += usize::from(status < 2);
        }
    }
    assert!(n > 20, "{n}");
}

#[test]
fn a_failure_that_is_not_reproduced_is_said_first_and_is_trouble() {
    let (status, out) = run_whatif("whatif/random/recordings/graphs.default_limit.pickle.xz", &[]);
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("the request that failed is served in the replay"), "{out}");
    assert!(out.contains("mind a request failed when recorded that is served here"), "{out}");
    assert!(!out.contains("export PYTORCH"), "{out}");
}

#[test]
fn more_memory_than_what_failed_is_of_another_device() {
    let recording = "whatif/failed/recordings/graph_leak/oom.pickle.xz";
    let (_, out) = run_whatif(recording, &["--capacity", "100GiB"]);
    assert!(out.contains("for this process; but the recording failed with less than 2,702.0 MiB"), "{out}");
    assert!(out.contains("mind a request failed when recorded though less than 2,702.0 MiB"), "{out}");
    let (_, out) = run_whatif(recording, &["--capacity", "1GiB"]);
    assert!(!out.contains("but the recording failed"), "{out}");
}

#[test]
fn a_setting_without_effect_is_no_rescue() {
    for (recording, capacity) in [
        ("more/recordings/two_leaks/step120.pickle.zst", "400MiB"),
        ("whatif/limited/recordings/kv_cache.pickle.xz", "280MiB"),
    ] {
        let (_, out) = run_whatif(recording, &["--capacity", capacity, "--conf", "max_split_size_mb:900000"]);
        assert!(!out.contains("export PYTORCH"), "{recording}: {out}");
    }
}

#[test]
fn a_program_that_went_on_is_told_as_such() {
    let (status, out) = run_whatif("more/recordings/oom_retry/step40.pickle.zst", &[]);
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("can be reserved; the program went on without it"), "{out}");
}

/// What is shown for a recording of the corpus, with single spaces.
fn run_whatif(recording: &str, args: &[&str]) -> (i32, String) {
    let (status, out, _) = run(&corpus(recording), args);
    (status, out.split_whitespace().collect::<Vec<_>>().join(" "))
}
