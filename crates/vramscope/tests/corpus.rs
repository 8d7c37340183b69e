//! The command line on the corpus: every verdict, and every sum.
//!
//! The judgement is that of `corpus/score.py`.

#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on, and reads files by itself")]

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// What `analyze` says of some files, and its exit status.
fn analyze(files: &[PathBuf]) -> (Value, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_vramscope"))
        .args(["analyze", "--format", "json"])
        .args(files)
        .output()
        .unwrap();
    let status = output.status.code().unwrap();
    assert!(status < 2, "{files:?}: {}", String::from_utf8_lossy(&output.stderr));
    (serde_json::from_slice(&output.stdout).unwrap(), status)
}

/// The pieces of a name, numbers as numbers.
fn natural(path: &Path) -> (PathBuf, Vec<(u64, String)>) {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let mut pieces = vec![(0, String::new())];
    for c in name.chars() {
        let last = pieces.last_mut().unwrap();
        match c.to_digit(10) {
            Some(d) if last.1.is_empty() => last.0 = last.0 * 10 + u64::from(d),
            Some(d) => pieces.push((u64::from(d), String::new())),
            None => last.1.push(c),
        }
    }
    (path.parent().unwrap().to_owned(), pieces)
}

fn is_snapshot(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    [".pickle", ".pt", ".pickle.zst", ".pickle.gz", ".pickle.xz"].iter().any(|end| name.ends_with(end))
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort_by_key(|p| natural(p));
    files
}

fn site(finding: &Value) -> String {
    let file = finding["site"]["file"].as_str().unwrap_or("?");
    format!("{}:{}", file.rsplit('/').next().unwrap(), finding["site"]["line"])
}

/// What is wrong with an answer, if anything.
fn judge(
    truth: &Value,
    facts: &Value,
    doc: &Value,
    status: i32,
    is_last_alone: bool,
    n_files: usize,
) -> Option<String> {
    let want = truth["verdict"].as_str().unwrap();
    let verdict = doc["verdict"].as_str().unwrap();
    let findings = doc["findings"].as_array().unwrap();
    let mut leaks: Vec<&Value> =
        findings.iter().filter(|f| matches!(f["kind"].as_str(), Some("leak" | "growing"))).collect();
    leaks.sort_by_key(|f| std::cmp::Reverse(f["bytes"].as_u64()));
    let mut allowed = vec![want];
    allowed.extend(truth["or"].as_array().into_iter().flatten().filter_map(Value::as_str));
    if want == "leak" && n_files == 1 {
        allowed.push("growing");
        // Sizes alone, at one moment.
        if is_last_alone && truth.get("size").is_some() {
            allowed.push("insufficient-data");
        }
    }
    if !allowed.contains(&verdict) {
        return Some(format!("verdict {verdict}, wanted {allowed:?}"));
    }
    if matches!(want, "clean" | "fragmentation") && !leaks.is_empty() {
        return Some(format!("false alarm at {}", site(leaks[0])));
    }
    let is_trouble = !matches!(verdict, "clean" | "insufficient-data");
    if (status == 1) != is_trouble {
        return Some(format!("exit status {status} with verdict {verdict}"));
    }
    let lines: Vec<&str> =
        facts["alloc_lines"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if want == "leak" && matches!(verdict, "leak" | "growing") {
        let Some(top) = leaks.first() else { return Some("no leak finding".to_owned()) };
        if !lines.is_empty() && !lines.contains(&site(top).as_str()) {
            return Some(format!("top leak at {}, wanted {lines:?}", site(top)));
        }
        if let Some(size) = truth.get("size")
            && !leaks.iter().any(|f| &f["block_size"] == size)
        {
            return Some(format!("no leak of block size {size}"));
        }
        if let Some(rank) = truth.get("rank")
            && leaks.iter().any(|f| &f["rank"] != rank)
        {
            return Some(format!("blamed on another rank than {rank}"));
        }
    }
    if want == "reference-cycle" {
        let hit =
            findings.iter().any(|f| f["kind"] == "reference-cycle" && lines.contains(&site(f).as_str()));
        if !hit {
            return Some(format!("no cycle at {lines:?}"));
        }
    }
    None
}

/// Judges every case of a corpus, all its recordings together and the last alone. Returns the number of runs.
fn judge_all(root: &Path) -> usize {
    let truths = json(&root.join("truth.json"));
    let mut wrong = Vec::new();
    let mut judged = 0;
    for (name, truth) in truths.as_object().unwrap().iter().filter(|(name, _)| !name.starts_with('_')) {
        let all = files_below(&root.join("recordings").join(name));
        let facts = all.iter().find(|p| p.ends_with("facts.json")).map(|p| json(p)).unwrap();
        let files: Vec<PathBuf> =
            all.into_iter().filter(|p| is_snapshot(p) && !p.to_string_lossy().contains("eval_mid")).collect();
        let mut runs = vec![(files.clone(), false)];
        if files.len() > 1 && truth.get("rank").is_none() {
            runs.push((files[files.len() - 1..].to_vec(), true));
        }
        for (chosen, is_last_alone) in runs {
            let (doc, status) = analyze(&chosen);
            judged += 1;
            if let Some(why) = judge(truth, &facts, &doc, status, is_last_alone, chosen.len()) {
                wrong.push(format!("{name}{}: {why}", if is_last_alone { " (last)" } else { "" }));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    judged
}

#[test]
fn every_verdict_is_right_for_all_recordings_and_for_the_last_alone() {
    assert_eq!(judge_all(&corpus()), 33);
}

#[test]
fn verdicts_of_the_recordings_that_are_hard_to_judge_are_right() {
    assert_eq!(judge_all(&corpus().join("more")), 280);
}

#[test]
fn the_sums_add_up_and_equal_what_the_allocator_counted() {
    let expected = json(&corpus().join("expected.json"));
    let mut with_metrics = 0;
    for (name, want) in expected.as_object().unwrap() {
        // The long ones are the benchmark's.
        if name.starts_with("large/") {
            continue;
        }
        let (doc, _) = analyze(&[corpus().join(name)]);
        let devices = doc["devices"].as_array().unwrap();
        for device in devices {
            let sum =
                |key: &str| device["balance"][key].as_u64().unwrap_or_else(|| panic!("{name}: no {key}"));
            assert_eq!(sum("reserved"), sum("allocated") + sum("pending") + sum("free"), "{name}");
            assert_eq!(sum("free"), sum("releasable") + sum("stranded"), "{name}");
            let sites: u64 = device["balance"]["sites"]
                .as_array()
                .unwrap()
                .iter()
                .map(|s| s["bytes"].as_u64().unwrap())
                .sum::<u64>()
                + sum("before_recording");
            match device["balance"]["requested"].as_u64() {
                Some(requested) => {
                    assert_eq!(sum("allocated"), requested + sum("rounding"), "{name}");
                    assert_eq!(sites, requested, "{name}");
                }
                None => assert_eq!(sites, sum("allocated"), "{name}"),
            }
            let python = &want["devices"][device["device"].to_string()];
            for (ours, theirs) in [
                ("reserved", "reserved"),
                ("allocated", "allocated"),
                ("pending", "pending"),
                ("free", "inactive"),
                ("requested", "requested"),
                ("segments", "segments"),
            ] {
                assert_eq!(device["balance"][ours], python[theirs], "{name}: {ours}");
            }
        }
        if let Some(metrics) = want["metrics"].as_object() {
            let busiest = devices.iter().max_by_key(|d| d["events"].as_u64()).unwrap();
            for key in ["allocated", "reserved"] {
                assert_eq!(
                    busiest["balance"][key], metrics[key],
                    "{name}: {key} against the program's own counter"
                );
            }
            with_metrics += 1;
        }
    }
    assert!(with_metrics >= 52, "only {with_metrics}");
}
