//! What `analyze` advises about memory that could not be used or had, against what other runs measured and what `whatif` says.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should fail on the spot"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;

const MIB: u64 = 1 << 20;

fn corpus(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").canonicalize().unwrap().join(path)
}

fn truth(path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(corpus(path)).unwrap()).unwrap()
}

/// Runs a command in a terminal of 100 columns and gives exit status and output.
fn run(command: &str, path: &str, args: &[&str]) -> (i32, String) {
    let output = cargo_bin_cmd!("vramscope")
        .arg(command)
        .arg(corpus(path))
        .args(args)
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    let status = output.status.code().unwrap();
    assert!(status < 2, "{path} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    (status, String::from_utf8(output.stdout).unwrap())
}

fn json(command: &str, path: &str, args: &[&str]) -> (i32, Value) {
    let (status, out) = run(command, path, &[args, &["--format", "json"]].concat());
    (status, serde_json::from_str(&out).unwrap())
}

fn finding<'a>(document: &'a Value, code: &str) -> Option<&'a Value> {
    document["findings"].as_array().unwrap().iter().find(|f| f["code"] == code)
}

fn mib(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}")) / MIB
}

/// What is shown of a finding, from its head to the next one or to the end.
fn shown(text: &str, head: &str) -> String {
    let from = text.find(head).unwrap_or_else(|| panic!("{head} in {text}"));
    let found = &text[from..];
    let end = found.find("\n\n").unwrap_or(found.len());
    found[..end].to_owned()
}

#[test]
fn fragmentation_is_advised_with_what_the_setting_would_have_done() {
    let (status, document) = json("analyze", "recordings/fragmentation_varlen", &[]);
    assert_eq!((status, document["verdict"].as_str()), (1, Some("fragmentation")));
    let found = &document["findings"][0];
    let settings = &found["settings"];
    assert_eq!(settings["recommended"], "expandable_segments:True");
    assert_eq!((mib(&settings["peak_reserved"]), mib(&settings["own_peak_reserved"])), (756, 2550));
    assert_eq!(
        (settings["exact"].as_bool(), settings["reason_kind"].as_str()),
        (Some(true), Some("lower-peak"))
    );
    let pins = &found["fragmentation"]["pins"]["places"][0];
    assert_eq!((pins["site"]["line"].as_u64(), pins["survivors"].as_u64()), (Some(17), Some(10)));
    let (_, text) = run("analyze", "recordings/fragmentation_varlen", &[]);
    insta::assert_snapshot!(shown(&text, "1  fragmentation"), @r#"
    1  fragmentation  no Python frame (autograd backward)                                confidence 95 %
       2.3 GiB were reserved although enough was free, in pieces too small
       1.8 GiB · allocated from 543 ms to 1.2 s into the recording
       why    at most 2.5 GiB were reserved, but never more than 681.3 MiB were allocated
              36 times reserved memory grew although enough was free in the same pool; 18 of them after
              the first third of the run
              for example 132.0 MiB were asked for with 2.0 GiB free, the largest piece of it 130.0 MiB
              on average 879.6 MiB lay in segments that were wholly free but of the wrong sizes, and
              34.4 MiB were stranded in segments partly in use
              segments that are mostly free are kept by train.py:17 (67 blocks, 10 of them never freed,
              strand 2.2 MiB on average)
              at the end 2.3 GiB lie in segments that are wholly free but of the wrong sizes:
              `empty_cache()` returns them, and the next requests obtain new ones
       fits   ▅█▆▅▅▆▆▅▅▅▅▆▃▅▆▁▁▁▁▁ failed fits over the run: 36 in all, none after 75 % of it
       next   set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: the run would have peaked at 756.0
              MiB reserved instead of 2.5 GiB; the driver is called 40 times instead of 46
              pad inputs to a few sizes, or run the largest size first, so that later ones fit into what
              is free
              see all 12 settings that were tried: `vramscope whatif`
    "#);
    insta::assert_snapshot!(document["headline"].as_str().unwrap(), @"1.8 GiB more were reserved than the program ever held, in pieces too small; `expandable_segments:True` would have peaked at 756.0 MiB");
}

#[test]
fn a_failed_request_is_explained_with_the_smallest_change_first() {
    let (status, document) = json("analyze", "whatif/limited/recordings/varlen_adam.pickle.xz", &[]);
    assert_eq!((status, document["verdict"].as_str()), (1, Some("fragmentation")));
    let failed = finding(&document, "out-of-memory").unwrap();
    assert_eq!(failed["related"], serde_json::json!([0]));
    assert_eq!(failed["settings"]["reason_kind"], "fits");
    insta::assert_snapshot!(document["headline"].as_str().unwrap(), @"a request for 115.4 MiB at train.py:20 failed although there was enough for it, in pieces too small; `expandable_segments:True` would have served it");
    let advice: Vec<&str> =
        failed["advice"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
    insta::assert_snapshot!(advice.join("\n"), @r#"
    set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: the request that failed would have been served, with 1.3 GiB reserved at most; what the run would have asked for after it is not known; the driver is called 53 times
    look at train.py:19, which holds most: 55.4 MiB less there (2 blocks) would have been enough
    "#);

    let (_, document) = json("analyze", "recordings/oom_capped", &[]);
    let failed = finding(&document, "out-of-memory").unwrap();
    assert!(failed["settings"].is_null() && failed["shortfall"]["no_setting_helps"] == true, "{failed}");
}

/// Each row of a table of measured runs: the case and its runs.
fn limited() -> Vec<(String, u64, Vec<Value>)> {
    let truth = truth("whatif/limited/truth.json");
    let cases = truth["cases"].as_object().unwrap();
    let rows = cases.iter().map(|(case, found)| {
        (case.clone(), found["limit_mib"].as_u64().unwrap(), found["runs"].as_array().unwrap().clone())
    });
    rows.collect()
}

#[test]
fn requests_that_failed_of_fragmentation_are_told_so_and_the_setting_served_them_indeed() {
    let mut n = 0;
    for (case, _, runs) in limited() {
        if runs[0].get("out_of_memory").is_none() {
            continue;
        }
        let (status, document) = json("analyze", &format!("whatif/limited/recordings/{case}.pickle.xz"), &[]);
        let headline = document["headline"].as_str().unwrap();
        assert_eq!((status, document["verdict"].as_str()), (1, Some("fragmentation")), "{case}: {headline}");
        assert!(headline.contains("would have served it"), "{case}: {headline}");
        let recommended = document["findings"][0]["settings"]["recommended"].as_str().unwrap();
        // Of the least limit that the recording shows to be possible, one case needs a little less than expandable segments do.
        assert!(recommended.starts_with("expandable_segments:True"), "{case}: {recommended}");
        let measured = runs.iter().find(|run| run["conf"] == recommended);
        assert!(measured.is_none_or(|run| run["num_ooms"] == 0), "{case}: {measured:?}");
        n += usize::from(measured.is_some());
    }
    assert_eq!(n, 6);
}

#[test]
fn where_a_run_ends_with_less_memory_is_foretold() {
    let mut ends = Vec::new();
    for (case, limit, runs) in limited() {
        let recording = format!("whatif/more/recordings/{case}");
        let (status, document) = json("analyze", &recording, &["--capacity", &format!("{limit}MiB")]);
        let found = finding(&document, "over-capacity").unwrap();
        let check = &document["devices"][0]["capacity"];
        let own = &runs[0];
        assert_eq!(check["fits"], own.get("out_of_memory").is_none(), "{case}: {check}");
        let Some(measured) = own.get("out_of_memory") else {
            assert_eq!(
                (found["kind"].as_str(), check["give_backs"].clone()),
                (Some("note"), own["num_alloc_retries"].clone())
            );
            continue;
        };
        assert_eq!((status, found["kind"].as_str()), (1, Some("oom")), "{case}");
        let obtained = found["bytes"].as_u64().unwrap().next_multiple_of(2 * MIB) / MIB;
        // Large requests below 10 MiB obtain 20; none of these is.
        assert_eq!(obtained, measured["obtaining_mib"].as_u64().unwrap(), "{case}: {found}");
        // The recording of the run that failed ends with the same figures.
        let (_, recorded) = json("analyze", &format!("whatif/limited/recordings/{case}.pickle.xz"), &[]);
        let recorded = finding(&recorded, "out-of-memory").unwrap();
        assert_eq!(found["bytes"], recorded["bytes"], "{case}");
        assert_eq!(found["site"]["line"], recorded["site"]["line"], "{case}");
        let figures = |f: &Value| {
            let of = &f["shortfall"];
            ["request", "allocated", "reserved"].map(|name| of[name].clone())
        };
        if !found["shortfall"].is_null() {
            assert_eq!(figures(found), figures(recorded), "{case}");
        }
        ends.push(format!("{case}: {}", found["title"].as_str().unwrap()));
    }
    insta::assert_snapshot!(ends.join("\n"), @r#"
    checkpointed: with 2,700 MiB memory would run out in step 23 (event 30,217)
    detection: with 1,400 MiB memory would run out in step 25 (event 5,236)
    epochs_emptied: with 1,250 MiB memory would run out in step 13 (event 1,512)
    feature_cache: with 1,036 MiB memory would run out in step 93 (event 5,463)
    kv_cache: with 257.0 MiB memory would run out in step 237 (event 9,984)
    late_recording: with 1,900 MiB memory would run out in step 25 (event 3,263)
    varlen_adam: with 1,425 MiB memory would run out in step 12 (event 11,857)
    "#);
}

#[test]
fn random_programs_end_where_it_is_foretold() {
    // Graphs are captured in one: what is free then does not go back. Another changes its settings while it runs.
    const UNKNOWABLE: [&str; 2] = ["graphs", "switches"];
    let runs: Vec<Value> = truth("whatif/random/runs.json").as_array().unwrap().clone();
    let mut checked = 0;
    for run in &runs {
        let (name, setting) = (run["name"].as_str().unwrap(), run["setting"].as_str().unwrap());
        let limit = run["limit_mib"].as_u64();
        let (Some(limit), Some(unlimited)) = (limit, setting.strip_suffix("_limit")) else { continue };
        let recording = format!("whatif/random/recordings/{name}.{unlimited}.pickle.xz");
        if !["default", "expandable"].contains(&unlimited)
            || UNKNOWABLE.contains(&name)
            || !corpus(&recording).exists()
        {
            continue;
        }
        let (_, document) = json("analyze", &recording, &["--capacity", &format!("{limit}MiB")]);
        let check = &document["devices"][0]["capacity"];
        let failed = run["oom_ops"].as_array().unwrap();
        assert_eq!(check["fits"], failed.is_empty(), "{name} {setting}: {check}");
        checked += 1;
    }
    assert!(checked >= 24, "{checked}");
}

#[test]
fn a_setting_that_is_said_to_serve_a_random_programs_request_does() {
    let runs: Vec<Value> = truth("whatif/random/runs.json").as_array().unwrap().clone();
    let operations = |run: &Value| -> BTreeSet<u64> {
        run["oom_ops"].as_array().unwrap().iter().map(|op| op.as_u64().unwrap()).collect()
    };
    // What failed under each setting with a limit, by program.
    let mut measured: BTreeMap<(&str, &str), BTreeSet<u64>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run["limit_mib"].is_u64()) {
        measured.insert((run["name"].as_str().unwrap(), run["conf"].as_str().unwrap()), operations(run));
    }
    let (mut served, mut hopeless) = (0, 0);
    for run in runs.iter().filter(|run| run["limit_mib"].is_u64() && !operations(run).is_empty()) {
        let (name, setting) = (run["name"].as_str().unwrap(), run["setting"].as_str().unwrap());
        let recording = format!("whatif/random/recordings/{name}.{setting}.pickle.xz");
        // What private pools would hold under other settings is not known.
        if name == "mem_pools" || name == "graphs" || !corpus(&recording).exists() {
            continue;
        }
        let (_, document) = json("analyze", &recording, &[]);
        let Some(found) = finding(&document, "out-of-memory") else { continue };
        let settings = &found["settings"];
        let first = operations(run).first().copied().unwrap();
        if let Some(recommended) = settings["recommended"].as_str() {
            if let Some(failed) = measured.get(&(name, recommended)) {
                assert!(!failed.contains(&first), "{name} {setting}: {recommended} does not serve {first}");
                served += 1;
            }
        } else if found["shortfall"]["no_setting_helps"] == true
            || settings["reason"].as_str().is_some_and(|reason| reason.contains("tried helps"))
        {
            let serves_all = measured.iter().find(|((of, _), failed)| *of == name && failed.is_empty());
            assert_eq!(serves_all, None, "{name} {setting}: {settings}");
            hopeless += 1;
        }
    }
    assert!(served >= 10 && hopeless >= 15, "{served} {hopeless}");
}

#[test]
fn analyze_and_whatif_never_contradict_each_other() {
    let mut n = 0;
    for folder in ["recordings", "more/recordings", "whatif/more/recordings", "whatif/limited/recordings"] {
        for entry in std::fs::read_dir(corpus(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = format!("{folder}/{name}");
            if name.starts_with('_') {
                continue;
            }
            let (_, document) = json("analyze", &path, &[]);
            let findings = document["findings"].as_array().unwrap().iter();
            let proven = findings.clone().any(|f| f["shortfall"]["no_setting_helps"] == true);
            let tried: Vec<&Value> = findings.map(|f| &f["settings"]).filter(|s| s.is_object()).collect();
            if tried.is_empty() && !proven {
                continue;
            }
            let (_, whatif) = json("whatif", &path, &[]);
            for settings in tried {
                assert_eq!(settings["recommended"], whatif["recommended"], "{path}");
                assert_eq!(settings["reason_kind"], whatif["reason_kind"], "{path}");
                assert_eq!(settings["exact"], whatif["self_check"]["exact"], "{path}");
                let of = |conf: &Value| {
                    whatif["settings"].as_array().unwrap().iter().find(|s| s["conf"] == *conf).cloned()
                };
                let best = of(&settings["recommended"]).unwrap_or_default();
                assert_eq!(settings["peak_reserved"], best["peak_reserved"], "{path}");
                assert_eq!(
                    settings["tried"].as_u64().unwrap(),
                    whatif["settings"].as_array().unwrap().len() as u64 - 1
                );
                n += 1;
            }
            assert!(!proven || whatif["recommended"].is_null(), "{path}");
        }
    }
    assert!(n >= 20, "{n}");
}

#[test]
fn whether_a_run_fits_is_said_in_every_case() {
    let check = |path: &str, capacity: &str, want: i32, verdict: &str, fits: Value| {
        let (status, document) = json("analyze", path, &["--capacity", capacity]);
        let headline = document["headline"].as_str().unwrap().to_owned();
        assert_eq!((status, document["verdict"].as_str()), (want, Some(verdict)), "{path}: {headline}");
        assert_eq!(document["devices"][0]["capacity"]["fits"], fits, "{path} {capacity}: {headline}");
        format!("{capacity}: {headline}")
    };
    let detection = "whatif/limited/recordings/detection.pickle.xz";
    let no_history = "recordings/_variants/no_history.pickle";
    let told = [
        check("recordings/gpt_train", "24GiB", 0, "clean", true.into()),
        check("whatif/more/recordings/accumulation", "1.5GiB", 0, "clean", true.into()),
        check("recordings/gpt_train", "700MiB", 1, "oom", false.into()),
        check("recordings/feature_pyramid", "1GiB", 1, "leak", false.into()),
        check("recordings/fragmentation_varlen", "700MiB", 1, "fragmentation", false.into()),
        // The request that failed here is served there; what comes after it nobody knows.
        check(detection, "3GiB", 1, "fragmentation", Value::Null),
        check(detection, "1400MiB", 1, "fragmentation", false.into()),
        check(detection, "1370MiB", 1, "fragmentation", false.into()),
        // Nothing to replay: only what is held tells.
        check(no_history, "1GiB", 0, "insufficient-data", true.into()),
        check(no_history, "40MiB", 1, "oom", false.into()),
    ];
    insta::assert_snapshot!(told.join("\n"), @r#"
    24GiB: nothing keeps growing over 20 steps, and 24.0 GiB are enough
    1.5GiB: nothing keeps growing over 14 steps, and 1.5 GiB are enough
    700MiB: with 700.0 MiB memory would run out in step 2 (event 6,829), at a request for 64.0 MiB; with `expandable_segments:True` it would fit
    1GiB: 16.0 MiB are kept every step at train.py:14; 1.6 GiB so far; with 1.0 GiB memory would run out in step 63 (event 9,115)
    700MiB: 1.8 GiB more were reserved than the program ever held, in pieces too small; `expandable_segments:True` would have peaked at 756.0 MiB; with 700.0 MiB memory would run out in step 71 (event 20,027)
    3GiB: a request for 258.1 MiB at train.py:24 failed although there was enough for it, in pieces too small; `expandable_segments:True` would have served it
    1400MiB: a request for 258.1 MiB at train.py:24 failed although there was enough for it, in pieces too small; `expandable_segments:True` would have served it
    1370MiB: a request for 258.1 MiB at train.py:24 failed although there was enough for it, in pieces too small; `expandable_segments:True` would have served it
    1GiB: one snapshot without history cannot tell a leak from a start; take at least 3, or record history
    40MiB: 40.0 MiB are not enough: more was in use from the beginning
    "#);
}

#[test]
fn what_fits_only_just_is_a_note() {
    let (_, text) = run("analyze", "whatif/more/recordings/accumulation", &["--capacity", "1.5GiB", "-v"]);
    insta::assert_snapshot!(shown(&text, "1  note"), @r#"
    1  note                                                                              confidence 99 %
       it fits 1.5 GiB, but only because unused memory need not stay reserved
       why    the recording reserved up to 1.6 GiB, where there was more
              within 1.5 GiB unused memory goes back to the driver once to make room, and each time the
              device is waited for; up to 1.2 GiB are in use
    "#);
    let (_, text) = run("analyze", "recordings/gpt_train", &["--capacity", "24GiB"]);
    let room: Vec<&str> = text.lines().filter(|line| line.starts_with("room")).collect();
    insta::assert_snapshot!(room.join("\n"), @"room    24.0 GiB are enough, with 23.3 GiB to spare; the CUDA context and other processes need room");
    let (_, text) = run("analyze", "recordings/gpt_train", &["--capacity", "700MiB"]);
    insta::assert_snapshot!(shown(&text, "1  out of memory"), @r#"
    1  out of memory  aten::sum_dim_IntList (C++)                                        confidence 99 %
       with 700.0 MiB memory would run out in step 2 (event 6,829)
       64.0 MiB · allocated 1.5 s into the recording
       in     (24 library frames folded)
       why    the recording reserved up to 762.0 MiB; within 700.0 MiB a request for 64.0 MiB fails in
              step 2 (event 6,829), with 551.8 MiB allocated and 648.0 MiB reserved
              93.0 MiB were free for such requests then, at most 28.0 MiB in one piece
              most was held by train.py:49 (211.4 MiB in 150 blocks), blocks older than the recording
              (105.2 MiB in 75 blocks) and library code (90.1 MiB in 50 blocks)
              what is held and the request come to 615.8 MiB of 700.0 MiB
       next   set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: the run would have enough, with
              694.0 MiB reserved at most; the driver is called 37 times
              look at train.py:49, which holds most then
    "#);
}
