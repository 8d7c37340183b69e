//! The curves against what the program itself measured: `metrics.jsonl` has the allocator's own counters at the end of
//! every step, `facts.json` its peaks.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops where it cannot go on, and reads files by itself"
)]

use std::path::{Path, PathBuf};

use serde_json::Value;
use vramscope_model::{Recording, Symbols, TimeUs, join};
use vramscope_replay::{Lifetimes, levels_at, peak};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/recordings")
}

fn open(path: &Path) -> Recording {
    let file = std::fs::File::open(path).unwrap();
    let document = vramscope_formats::read(file, &mut Symbols::default()).unwrap();
    join(vec![document.snapshot], None)
}

/// Folders of the corpus with metrics, each with its last recording.
fn cases() -> Vec<(PathBuf, PathBuf)> {
    let mut folders = vec![corpus()];
    let mut cases = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries: Vec<PathBuf> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        folders.extend(entries.iter().filter(|p| p.is_dir()).cloned());
        let number = |p: &PathBuf| -> u32 {
            let name = p.file_name().unwrap().to_string_lossy().into_owned();
            name.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
        };
        let is_recording = |p: &&PathBuf| {
            let name = p.file_name().unwrap().to_string_lossy().into_owned();
            name.contains(".pickle") && !name.contains("eval_mid")
        };
        if folder.join("metrics.jsonl").exists()
            && let Some(last) = entries.iter().filter(is_recording).max_by_key(|p| number(p))
        {
            cases.push((folder, last.clone()));
        }
    }
    cases.sort();
    cases
}

fn rows(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("metrics.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn allocated_requested_and_reserved_are_exact_at_every_step() {
    let mut compared = 0;
    for (folder, path) in cases() {
        let recording = open(&path);
        let Some(device) = recording.devices.iter().max_by_key(|d| d.events.len()) else { continue };
        let lifetimes = Lifetimes::of(device, recording.settings.as_ref());
        let Some((_, last)) = device.events.time_span() else { continue };
        for row in rows(&folder) {
            let time = TimeUs((row["time_s"].as_f64().unwrap() * 1e6) as i64);
            if time > last {
                continue;
            }
            let at = device.events.at_or_after(time);
            let level = levels_at(device, &lifetimes, &[at])[0];
            let step = &row["step"];
            let name = folder.display();
            assert_eq!(
                level.reserved.0,
                row["reserved"].as_u64().unwrap(),
                "{name}: reserved at step {step}"
            );
            // There Python's collector frees blocks between the reading of the counters and that of the clock.
            if folder.ends_with("cycle_sawtooth") {
                continue;
            }
            assert_eq!(
                level.allocated.0,
                row["allocated"].as_u64().unwrap(),
                "{name}: allocated at step {step}"
            );
            // The allocator counts what waits for a stream as requested still.
            if !folder.ends_with("streams_record") {
                let requested = row["requested"].as_u64().unwrap();
                assert_eq!(level.requested.0, requested, "{name}: requested at step {step}");
            }
            compared += 1;
        }
    }
    assert!(compared > 900, "only {compared} rows were compared");
}

#[test]
fn peaks_are_those_that_the_allocator_counted() {
    for (folder, path) in cases() {
        let facts = std::fs::read_to_string(folder.join("facts.json")).unwrap();
        let facts: Value = serde_json::from_str(&facts).unwrap();
        let recording = open(&path);
        let Some(device) = recording.devices.iter().max_by_key(|d| d.events.len()) else { continue };
        let lifetimes = Lifetimes::of(device, recording.settings.as_ref());
        let Some(peak) = peak(device, &lifetimes, lifetimes.whole()) else { continue };
        let name = folder.display();
        assert_eq!(peak.level.allocated.0, facts["peak_allocated"].as_u64().unwrap(), "{name}: allocated");
        assert_eq!(peak.max_reserved.0, facts["peak_reserved"].as_u64().unwrap(), "{name}: reserved");
    }
}
