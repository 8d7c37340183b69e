//! Directories as `vramscope run` writes them: analyzed whole, whatever of them is there.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should fail on the spot"
)]

use std::path::{Path, PathBuf};

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;
use serde_json::json as value_of;

fn corpus(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").canonicalize().unwrap().join(path)
}

/// Runs it in a directory and gives exit status, output and messages.
fn run_in(directory: &Path, args: &[&str]) -> (i32, String, String) {
    let output = cargo_bin_cmd!("vramscope").current_dir(directory).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn run(args: &[&str]) -> (i32, String, String) {
    run_in(&corpus("recorded"), args)
}

fn json(args: &[&str]) -> (i32, Value, String) {
    let (status, out, err) = run(&[args, &["--format", "json"]].concat());
    (status, serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}\n{out}\n{err}")), err)
}

/// A copy of a hand-made recording, to be damaged.
fn copy(case: &str, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(corpus("recorded").join(case)).unwrap() {
        let entry = entry.unwrap();
        if entry.path().is_dir() {
            copy(&format!("{case}/{}", entry.file_name().to_str().unwrap()), &to.join(entry.file_name()));
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn a_leak_is_told_with_its_steps_and_its_holder() {
    let (status, document, err) = json(&["analyze", "leak"]);
    assert_eq!((status, err.as_str()), (1, ""));
    assert_eq!(document["verdict"], "leak");
    assert!(document["headline"].as_str().unwrap().contains(", held by `__main__.losses[*]`;"), "{document}");
    let steps = &document["devices"][0]["steps"];
    assert_eq!((steps["count"].as_u64(), steps["source"].as_str()), (Some(40), Some("recorder")));
    let finding = &document["findings"][0];
    let holder = &finding["holder"];
    assert_eq!(
        (&holder["path"], &holder["through"]),
        (&"__main__.losses[*]".into(), &"autograd graph".into())
    );
    assert_eq!(holder["joined_by"], "address");
    assert_eq!((&holder["joined_blocks"], &holder["held_blocks"]), (&finding["blocks"], &finding["blocks"]));
    assert!(
        holder["file"].as_str().unwrap().ends_with("window2.holders.json"),
        "the nearest to the last state"
    );
    assert_eq!(holder["chain"][0]["reference"], ".losses");
    let advice = finding["advice"].as_array().unwrap();
    assert!(advice[0].as_str().unwrap().starts_with("give up `__main__.losses[*]`: "), "{advice:?}");
    assert!(!advice.iter().any(|a| a.as_str().unwrap().contains("vramscope run")), "{advice:?}");
    let recorded = &document["recorded"][0];
    assert_eq!(recorded["command"], serde_json::json!(["python train.py --validate"]));
    assert_eq!(recorded["curves"][0]["steps"], 40);
    assert_eq!(recorded["moments"].as_array().unwrap().len(), 2);
}

#[test]
fn the_answer_names_the_object_for_people_too() {
    let (_, out, _) = run(&["analyze", "leak"]);
    let (_, finding) = out.split_once("1  leak").unwrap();
    insta::assert_snapshot!("leak_finding", finding.split_once("more  ").unwrap().0);
    let (_, out, _) = run(&["analyze", "leak", "--format", "markdown"]);
    insta::assert_snapshot!("leak_markdown", out.split_once("<details>").unwrap().0);
}

#[test]
fn without_holders_it_says_how_to_get_them() {
    let dir = tempfile::tempdir().unwrap();
    copy("leak", dir.path());
    for n in [1, 2] {
        std::fs::remove_file(dir.path().join(format!("window{n}.holders.json"))).unwrap();
    }
    let (status, out, _) = run_in(dir.path(), &["analyze", ".", "--format", "json"]);
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, &document["findings"][0]["holder"]), (1, &Value::Null));
    assert!(out.contains("`vramscope run train.py` names the object that holds them"), "{out}");
    assert_eq!(document["devices"][0]["steps"]["source"], "recorder");
}

#[test]
fn a_cycle_takes_the_garbage_that_was_seen_while_it_was_there() {
    let (_, document, _) = json(&["analyze", "cycle"]);
    assert_eq!(document["verdict"], "reference-cycle");
    let holder = &document["findings"][0]["holder"];
    assert_eq!((&holder["path"], &holder["joined_by"]), (&"unreachable: Node.me".into(), &"address".into()));
    assert!(holder["file"].as_str().unwrap().ends_with("window1.holders.json"));
    let advice = document["findings"][0]["advice"][0].as_str().unwrap();
    assert!(advice.starts_with("break the cycle at `Node.me`"), "{advice}");
}

#[test]
fn every_rank_has_its_own_files() {
    let (_, document, err) = json(&["analyze", "ranks"]);
    assert_eq!((document["verdict"].as_str(), err.as_str()), (Some("leak"), ""));
    let finding = &document["findings"][0];
    assert_eq!((&finding["rank"], &finding["holder"]["path"]), (&1.into(), &"__main__.logged[*]".into()));
    assert_eq!(document["recorded"].as_array().unwrap().len(), 2);
    assert!(document["recorded"].as_array().unwrap().iter().all(|r| r["world_size"] == 2));
    let (_, document, _) = json(&["analyze", "ranks", "--rank", "0"]);
    assert_eq!(
        (document["verdict"].as_str(), document["recorded"].as_array().unwrap().len()),
        (Some("clean"), 1)
    );
    let (_, document, _) = json(&["analyze", "ranks/rank1"]);
    assert_eq!(
        document["recorded"][0]["command"][0], "torchrun --nproc-per-node=2 train.py",
        "the surroundings are written once a job"
    );
}

#[test]
fn without_a_snapshot_holders_that_grow_are_told_and_convict_nobody() {
    let (status, document, _) = json(&["analyze", "cpu"]);
    assert_eq!((status, document["verdict"].as_str()), (1, Some("growing")));
    let findings = document["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1);
    let finding = &findings[0];
    assert_eq!((&finding["code"], &finding["kind"]), (&"growing-holder".into(), &"growing".into()));
    assert_eq!(finding["holder"]["path"], "__main__.history[*]");
    assert_eq!(finding["bytes_per_step"], f64::from(1 << 18));
    let (_, out, _) = run(&["analyze", "cpu"]);
    insta::assert_snapshot!("cpu", out);
    // Between two moments anything may have grown.
    let dir = tempfile::tempdir().unwrap();
    copy("cpu", dir.path());
    std::fs::remove_file(dir.path().join("window2.holders.json")).unwrap();
    let (status, out, _) = run_in(dir.path(), &["analyze", "."]);
    assert!(
        status == 0 && out.starts_with("CANNOT TELL  no memory of a GPU was recorded; who holds"),
        "{out}"
    );
    assert!(out.contains("__main__.history[*]") && out.contains("~~~"), "{out}");
}

#[test]
fn what_a_crash_left_is_read_with_warnings() {
    let (status, out, err) = run(&["analyze", "crash"]);
    assert_eq!(status, 0, "{err}");
    assert!(out.starts_with("CANNOT TELL  no snapshot was taken in 29 steps"), "{out}");
    assert!(out.contains("vramscope run --always"), "{out}");
    for warning in [
        "crash/environment.json: left out, damaged at byte 120",
        "crash/statistics.csv: column not known here: `temperature` (byte 0)",
        "crash/statistics.csv: cut short: the last row is left out",
        "crash/window1.holders.json: left out, damaged at byte 90",
    ] {
        assert!(err.contains(warning), "{warning}:\n{err}");
    }
    let (_, document, _) = json(&["analyze", "crash"]);
    assert_eq!(document["recorded"][0]["warnings"].as_array().unwrap().len(), 4);
}

#[test]
fn half_of_any_file_is_no_failure() {
    for name in
        ["statistics.csv", "environment.json", "events.jsonl", "window1.holders.json", "window2.holders.json"]
    {
        let dir = tempfile::tempdir().unwrap();
        copy("leak", dir.path());
        let path = dir.path().join(name);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let (status, out, err) = run_in(dir.path(), &["analyze", "."]);
        assert!(status == 1 && out.starts_with("LEAK"), "{name}: {out}\n{err}");
        assert_eq!(err.contains(name), name != "events.jsonl", "{name}: {err}");
    }
}

#[test]
fn of_several_recordings_the_latest_is_meant_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join(".vramscope");
    copy("cycle", &home.join("2026-11-29T10-00-00-11"));
    copy("leak", &home.join("2026-11-29T11-00-00-12"));
    let check = |args: &[&str], word: &str, taken: &str| {
        let (status, out, err) = run_in(dir.path(), args);
        assert!(status < 2 && out.starts_with(word), "{args:?}: {out}\n{err}");
        assert!(
            err.contains(&format!(
                "note: `.vramscope` holds 2 recordings; the latest is taken: `.vramscope/{taken}`"
            )),
            "{err}"
        );
    };
    check(&["analyze"], "LEAK", "2026-11-29T11-00-00-12");
    check(&["analyze", ".vramscope"], "LEAK", "2026-11-29T11-00-00-12");
    check(&["holders"], "HELD", "2026-11-29T11-00-00-12");
    check(&["diff", ".vramscope"], "compared", "2026-11-29T11-00-00-12");
    check(&["whatif", ".vramscope"], "WHAT IF", "2026-11-29T11-00-00-12");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("2026-11-29T10-00-00-11", home.join("latest")).unwrap();
        check(&["analyze", ".vramscope"], "REFERENCE CYCLE", "2026-11-29T10-00-00-11");
        let (_, out, err) = run_in(dir.path(), &["analyze", ".vramscope/latest"]);
        assert!(out.starts_with("REFERENCE CYCLE") && err.is_empty(), "{out}\n{err}");
    }
    let empty = tempfile::tempdir().unwrap();
    for command in ["analyze", "holders"] {
        let (status, _, err) = run_in(empty.path(), &[command]);
        assert_eq!(status, 2);
        assert!(
            err.contains("there is no `.vramscope` here") && err.contains("vramscope run train.py"),
            "{err}"
        );
    }
}

#[test]
fn other_commands_read_the_snapshots_and_leave_the_rest_alone() {
    for args in [&["inspect", "leak"][..], &["diff", "leak"], &["whatif", "cycle"], &["inspect", "ranks"]] {
        let (status, out, err) = run(args);
        assert!(status < 2 && err.is_empty() && !out.is_empty(), "{args:?}: {err}");
    }
    let (_, document, _) = json(&["inspect", "ranks"]);
    assert_eq!(document["files"].as_array().unwrap().len(), 2);
    for command in ["inspect", "diff", "whatif"] {
        let (status, _, err) = run(&[command, "cpu"]);
        assert_eq!(status, 2);
        assert!(err.contains("no memory snapshot"), "{command}: {err}");
    }
    let (status, _, err) = run(&["analyze", "leak/window1.holders.json"]);
    assert_eq!(status, 2);
    assert!(err.contains("hint: show them with `vramscope holders leak/window1.holders.json`"), "{err}");
}

#[test]
fn windows_of_one_process_need_nothing_in_common() {
    // All memory was given back between them, and the history began anew.
    let dir = tempfile::tempdir().unwrap();
    copy("leak", dir.path());
    std::fs::copy(
        corpus("recordings/streams_record/step40.pickle.zst"),
        dir.path().join("window0.pickle.zst"),
    )
    .unwrap();
    let (status, out, err) = run_in(dir.path(), &["analyze", "."]);
    assert_eq!(status, 1, "{out}\n{err}");
    assert!(out.contains("3 snapshots of one process"), "{out}\n{err}");
}

#[test]
fn a_last_window_that_was_cut_off_does_not_hide_the_ones_before() {
    let dir = tempfile::tempdir().unwrap();
    copy("leak", dir.path());
    // A few events, later than all others.
    std::fs::copy(
        corpus("recordings/_variants/empty_cache.pickle.zst"),
        dir.path().join("window3.pickle.zst"),
    )
    .unwrap();
    let (status, out, err) = run_in(dir.path(), &["analyze", "."]);
    assert!(status == 1 && out.starts_with("LEAK"), "{out}\n{err}");
    assert!(
        err.contains(
            "the history after `./window2.pickle.zst` is too short to judge, so 1 later snapshot is left out"
        ),
        "{err}"
    );
}

#[test]
fn processes_that_the_program_started_stand_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    copy("cycle", dir.path());
    copy("leak", &dir.path().join("process4711"));
    let (status, out, err) = run_in(dir.path(), &["analyze", ".", "--format", "json"]);
    assert!(status == 1 && err.is_empty(), "{err}");
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["recorded"].as_array().unwrap().len(), 2);
    let kinds: Vec<&str> =
        document["findings"].as_array().unwrap().iter().map(|f| f["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["leak", "reference-cycle"]);
    assert!(document["findings"].as_array().unwrap().iter().all(|f| f["holder"].is_object()));
}

#[test]
fn the_report_in_a_recording_can_be_written_anew() {
    let dir = tempfile::tempdir().unwrap();
    copy("leak", dir.path());
    for _ in 0..2 {
        let (status, _, err) =
            run_in(dir.path(), &["analyze", ".", "--quiet", "--output", "report.txt", "--force"]);
        assert!(status == 1 && err.is_empty(), "{err}");
    }
    assert!(std::fs::read_to_string(dir.path().join("report.txt")).unwrap().starts_with("LEAK"));
    for name in ["statistics.csv", "window1.pickle.zst", "window1.holders.json"] {
        let (status, _, err) = run_in(dir.path(), &["analyze", ".", "--output", name, "--force"]);
        assert!(status == 2 && err.contains("is read, so it cannot be written to"), "{name}: {err}");
    }
}

#[test]
fn settings_come_from_the_surroundings_where_snapshots_have_none() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(corpus("older/torch2.0_oom.pickle"), dir.path().join("window1.pickle")).unwrap();
    std::fs::write(
        dir.path().join("environment.json"),
        r#"{"settings": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"}}"#,
    )
    .unwrap();
    let (_, out, _) = run_in(dir.path(), &["analyze", "."]);
    assert!(out.contains("set     PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64"), "{out}");
    let (_, out, err) = run_in(dir.path(), &["whatif", "."]);
    assert!(out.contains("max_split_size_mb:64"), "{out}\n{err}");
}

#[test]
fn addresses_that_were_used_again_are_not_joined() {
    let dir = tempfile::tempdir().unwrap();
    copy("leak", dir.path());
    std::fs::remove_file(dir.path().join("window1.holders.json")).unwrap();
    let path = dir.path().join("window2.holders.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for block in document["held_blocks"].as_array_mut().unwrap() {
        // Other blocks in the same places.
        block[1] = (block[1].as_u64().unwrap() + 512).into();
    }
    std::fs::write(&path, document.to_string()).unwrap();
    let (_, out, _) = run_in(dir.path(), &["analyze", ".", "--format", "json"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["findings"][0]["holder"], Value::Null);
    let caveats = answer["caveats"].to_string();
    assert!(
        caveats.contains("none of the 3,200 blocks of a finding are in") && caveats.contains("is not known"),
        "{caveats}"
    );
    // A few that fit are enough for a name, but not for being sure.
    let blocks = document["held_blocks"].as_array_mut().unwrap();
    for block in blocks.iter_mut().step_by(5) {
        block[1] = (block[1].as_u64().unwrap() - 512).into();
    }
    std::fs::write(&path, document.to_string()).unwrap();
    let (_, out, _) = run_in(dir.path(), &["analyze", ".", "--format", "json"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["findings"][0]["holder"]["path"], "__main__.losses[*]");
    assert!(answer["caveats"].to_string().contains("is not sure"), "{}", answer["caveats"]);
}

/// Changes a file of holders.
fn change(path: &Path, change: impl Fn(&mut Value)) {
    let mut document: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    change(&mut document);
    std::fs::write(path, document.to_string()).unwrap();
}

#[test]
fn garbage_that_nobody_saw_in_time_is_told_by_the_size_of_other_garbage() {
    let dir = tempfile::tempdir().unwrap();
    copy("cycle", dir.path());
    change(&dir.path().join("window1.holders.json"), |document| {
        for block in document["held_blocks"].as_array_mut().unwrap() {
            block[0] = (block[0].as_u64().unwrap() + (1 << 40)).into();
        }
    });
    let (_, out, _) = run_in(dir.path(), &["analyze", ".", "--format", "json"]);
    let holder = &serde_json::from_str::<Value>(&out).unwrap()["findings"][0]["holder"];
    assert_eq!((&holder["path"], &holder["joined_by"]), (&"unreachable: Node.me".into(), &"size".into()));
    assert_eq!(holder["joined_blocks"], Value::Null);
    let (_, out, _) = run_in(dir.path(), &["analyze", "."]);
    assert!(out.contains("(by the size of its"), "{out}");
    // Of another size it cannot be that garbage.
    change(&dir.path().join("window1.holders.json"), |document| {
        for block in document["held_blocks"].as_array_mut().unwrap() {
            block[1] = 512.into();
        }
    });
    let (_, out, _) = run_in(dir.path(), &["analyze", ".", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["findings"][0]["holder"], Value::Null);
}

#[test]
fn blocks_that_were_not_there_yet_are_not_joined() {
    let dir = tempfile::tempdir().unwrap();
    copy("leak", dir.path());
    std::fs::remove_file(dir.path().join("window2.holders.json")).unwrap();
    let joined = || {
        let (_, out, _) = run_in(dir.path(), &["analyze", ".", "--format", "json"]);
        let document: Value = serde_json::from_str(&out).unwrap();
        (document["findings"][0]["holder"]["joined_blocks"].clone(), document["caveats"].to_string())
    };
    let (at_step_25, caveats) = joined();
    assert_eq!(at_step_25, 2000, "80 blocks a step");
    assert!(!caveats.contains("of a finding are in"), "all that were there are: {caveats}");
    // Looked at before anything was allocated.
    change(&dir.path().join("window1.holders.json"), |document| document["time_us"] = 5.into());
    let (none, caveats) = joined();
    assert!(none.is_null() && caveats.contains("none of the 3,200 blocks of a finding"), "{none} {caveats}");
}

#[test]
fn a_device_that_was_counted_but_not_recorded_can_be_asked_for() {
    let (status, document, _) = json(&["analyze", "crash", "--device", "0"]);
    assert_eq!((status, document["verdict"].as_str()), (0, Some("insufficient-data")));
    let (status, _, err) = run(&["analyze", "crash", "--device", "3"]);
    assert!(status == 2 && err.contains("no snapshot holds device 3"), "{err}");
}

#[test]
fn holders_are_shown_in_every_format() {
    let (status, out, err) = run(&["holders", "leak/window2.holders.json"]);
    assert_eq!((status, err.as_str()), (0, ""));
    insta::assert_snapshot!("holders", out);
    let (_, out, _) = run(&["holders", "leak/window2.holders.json", "--format", "markdown"]);
    insta::assert_snapshot!("holders_markdown", out);
    let (_, mut document, _) = json(&["holders", "leak/window2.holders.json"]);
    for holder in document["holders"].as_array_mut().unwrap() {
        // The file is of a version that did not look who else holds it.
        let holder = holder.as_object_mut().unwrap();
        assert_eq!(holder.remove("also_held_by"), Some(Value::Array(Vec::new())));
        assert_eq!(holder.remove("held_by_more_bytes"), Some(0.into()));
    }
    let written: Value =
        serde_json::from_slice(&std::fs::read(corpus("recorded/leak/window2.holders.json")).unwrap())
            .unwrap();
    assert_all_of(&written, &document);
}

/// That nothing which was written is lost. What a file is too old to say is said as unknown or none.
fn assert_all_of(written: &Value, shown: &Value) {
    match (written, shown) {
        (Value::Object(written), Value::Object(shown)) => {
            for (name, value) in shown {
                match written.get(name) {
                    Some(written) => assert_all_of(written, value),
                    None => {
                        assert!(value.is_null() || *value == 0 || *value == value_of!([]), "{name}: {value}");
                    }
                }
            }
            assert!(written.keys().all(|name| shown.contains_key(name)));
        }
        (Value::Array(written), Value::Array(shown)) => {
            assert_eq!(written.len(), shown.len());
            written.iter().zip(shown).for_each(|(written, shown)| assert_all_of(written, shown));
        }
        _ => assert_eq!(written, shown),
    }
}

#[test]
fn of_a_recording_the_last_holders_of_each_rank_are_shown() {
    let (_, out, err) = run(&["holders", "leak"]);
    assert!(out.contains("window2.holders.json") && !out.contains("window1.holders.json"), "{out}");
    assert!(err.contains("has 2 files of holders; the last is shown, `--all` shows them all"), "{err}");
    let (_, document, _) = json(&["holders", "leak", "--all"]);
    assert_eq!(document.as_array().unwrap().len(), 2);
    let (_, document, _) = json(&["holders", "ranks"]);
    assert_eq!(document.as_array().unwrap().len(), 2);
    let (_, document, _) = json(&["holders", "ranks", "--rank", "1"]);
    assert_eq!(document["rank"], 1);
    let (status, _, err) = run(&["holders", "ranks", "--rank", "7"]);
    assert!(status == 2 && err.contains("nothing says who held the memory of rank 7"), "{err}");
    let (status, _, err) = run(&["holders", "crash/window1.holders.json"]);
    assert!(status == 2 && err.contains("`crash/window1.holders.json` could not be read"), "{err}");
}
