//! Every snapshot of the corpus is read, and every figure is compared with what Python's own readers found.
//!
//! The figures are in `corpus/expected.json`, made by `corpus/make_expected.py`, which says what they mean.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests read files and fail loudly"
)]

mod corpus;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};
use vramscope_model::{
    Action, BlockState, Bytes, Device, EventIdx, PoolKind, Segment, Settings, Snapshot, StackId, Symbols,
};

/// One test for each folder, so that they run side by side and a failure names its part of the corpus.
fn check_folder(folder: &str) {
    let expected: BTreeMap<String, Value> = serde_json::from_slice(&corpus::bytes("expected.json")).unwrap();
    let mut failures = Vec::new();
    let mut n = 0;
    for (name, mut want) in expected.into_iter().filter(|(name, _)| name.starts_with(folder)) {
        for device in want["devices"].as_object_mut().unwrap().values_mut() {
            // Segments that do not state their kind are read as large ones.
            device["large_segments"] = json!(count(device, "segments") - count(device, "small_segments"));
        }
        n += 1;
        let (read, symbols) = corpus::read(&corpus::bytes(&name));
        match read {
            Ok(document) => {
                compare(&name, "", &want, &summary(&document.snapshot, &symbols, &want), &mut failures);
            }
            Err(e) => failures.push(format!("{name}: {e}")),
        }
    }
    assert!(n > 0, "no file of {folder} is in expected.json");
    assert!(failures.is_empty(), "{} figures differ:\n{}", failures.len(), failures.join("\n"));
}

fn count(device: &Value, key: &str) -> u64 {
    device[key].as_u64().unwrap()
}

#[test]
fn recordings_are_read_as_python_reads_them() {
    check_folder("recordings/");
}

#[test]
fn recordings_that_are_hard_to_judge_are_read_as_python_reads_them() {
    check_folder("more/");
}

#[test]
fn older_schemas_are_read_as_python_reads_them() {
    check_folder("older/");
}

#[test]
fn recordings_under_many_settings_are_read_as_python_reads_them() {
    check_folder("whatif/");
}

#[test]
fn large_files_are_read_as_python_reads_them() {
    check_folder("large/");
}

#[test]
fn recorded() {
    check_folder("recorded/");
}

#[test]
fn every_snapshot_of_the_corpus_has_its_figures() {
    let expected: BTreeMap<String, Value> = serde_json::from_slice(&corpus::bytes("expected.json")).unwrap();
    let mut found = BTreeSet::new();
    let mut folders = vec![corpus::root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if is_snapshot(&path) {
                found.insert(path.strip_prefix(corpus::root()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    assert_eq!(found, expected.into_keys().collect());
}

fn is_snapshot(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    [".pickle", ".pt", ".pickle.zst", ".pickle.gz", ".pickle.xz", ".json.zst"]
        .iter()
        .any(|s| name.ends_with(s))
}

/// Compares value by value, so that a failure names the figure.
fn compare(file: &str, at: &str, want: &Value, got: &Value, failures: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => {
            let keys: BTreeSet<&String> = want.keys().chain(got.keys()).collect();
            for key in keys {
                let side = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or(Value::Null);
                compare(file, &format!("{at}/{key}"), &side(want), &side(got), failures);
            }
        }
        _ if want == got => {}
        _ => failures.push(format!("{file}: {at} is {got}, should be {want}")),
    }
}

/// What was read, in the words of `expected.json`.
fn summary(snapshot: &Snapshot, symbols: &Symbols, want: &Value) -> Value {
    let segments: Vec<&Segment> = snapshot.devices.iter().flat_map(|d| &d.segments).collect();
    json!({
        "segments": segments.len(),
        "blocks": segments.iter().map(|s| s.blocks.len()).sum::<usize>(),
        "devices": snapshot.devices.iter().map(|d| (d.ordinal.to_string(), device(d, symbols))).collect::<Map<_, _>>(),
        "annotations": snapshot.annotations.len(),
        "settings": snapshot.settings.as_ref().map(|s| settings(s, &want["settings"])),
        "host": snapshot.host.map(|h| json!({"segments": h.segments, "events": h.events})),
        // Every process of the corpus used one device, so its metrics are sums over all of them.
        "metrics": if want["metrics"].is_null() { Value::Null } else { metrics(&segments) },
    })
}

fn device(device: &Device, symbols: &Symbols) -> Value {
    let events = &device.events;
    let mut actions = BTreeMap::<&str, u64>::new();
    for (i, &action) in events.actions().iter().enumerate() {
        let name = match (action, events.note(EventIdx(i as u32))) {
            (Action::Other, Some(name)) => symbols.str(name),
            _ => action.name(),
        };
        *actions.entry(name).or_default() += 1;
    }
    let in_state = |state| device.segments.iter().map(|s| s.bytes_in(state).0).sum::<u64>();
    let stacks: BTreeSet<StackId> =
        events.stacks().iter().copied().filter(|&s| s != StackId::ABSENT).collect();
    let sum = |action| events.iter().filter(|e| e.action == action).map(|e| e.size.0).sum::<u64>();
    // Events of a failed request have no address: their column holds the driver's free bytes.
    let addrs = || events.iter().filter(|e| e.action != Action::Oom).map(|e| e.addr);
    let of_kind = |kind| device.segments.iter().filter(|s| s.kind == kind).count();
    json!({
        "events": actions,
        "reserved": device.segments.iter().map(|s| s.size.0).sum::<u64>(),
        "allocated": in_state(BlockState::Allocated),
        "pending": in_state(BlockState::PendingFree),
        "inactive": in_state(BlockState::Inactive),
        "requested": requested(&device.segments),
        "segments": device.segments.len(),
        "small_segments": of_kind(PoolKind::Small),
        "large_segments": of_kind(PoolKind::Large),
        "first_us": events.iter().filter_map(|e| e.time.known()).min().map(|t| t.0),
        "last_us": events.iter().filter_map(|e| e.time.known()).max().map(|t| t.0),
        "distinct_stacks": stacks.len(),
        "entries_without_frames": events.stacks().iter().filter(|s| !s.has_frames()).count(),
        "sum_alloc_sizes": sum(Action::Alloc),
        "sum_free_completed_sizes": sum(Action::FreeCompleted),
        "min_addr": addrs().min(),
        "max_addr": addrs().max(),
    })
}

/// The settings as read: those that have a field of their own from there, all others as they are shown.
fn settings(settings: &Settings, want: &Value) -> Value {
    let table =
        |pairs: &[(u64, u64)]| pairs.iter().map(|(k, v)| (k.to_string(), json!(v))).collect::<Map<_, _>>();
    let value = |name: &str, shown: &str| match name {
        "PYTORCH_CUDA_ALLOC_CONF" => json!(settings.conf),
        "expandable_segments" => json!(settings.expandable_segments),
        "garbage_collection_threshold" => json!(settings.garbage_collection_threshold),
        "max_split_size" => settings.max_split_size.map_or(json!(-1), |v| json!(v)),
        "roundup_power2_divisions" => json!(table(&settings.roundup_power2_divisions)),
        _ if want[name].is_string() => json!(shown),
        _ => serde_json::from_str(shown).unwrap_or(Value::Null),
    };
    settings.all.iter().map(|(name, shown)| (name.clone(), value(name, shown))).collect::<Map<_, _>>().into()
}

/// Requested bytes of the allocated blocks; none where a block does not tell.
fn requested(segments: &[Segment]) -> Option<u64> {
    let live = segments.iter().flat_map(|s| &s.blocks).filter(|b| b.state == BlockState::Allocated);
    live.map(|b| b.requested.map(|r| r.0)).sum()
}

/// The allocator's own counters, worked out from the blocks.
fn metrics(segments: &[&Segment]) -> Value {
    let in_state = |state| segments.iter().map(|s| s.bytes_in(state)).sum::<Bytes>().0;
    let used = segments.iter().flat_map(|s| &s.blocks).filter(|b| b.state != BlockState::Inactive);
    let split = segments.iter().filter(|s| s.blocks.len() > 1 && !s.expandable);
    json!({
        "allocated": in_state(BlockState::Allocated),
        "active": in_state(BlockState::Allocated) + in_state(BlockState::PendingFree),
        "reserved": segments.iter().map(|s| s.size).sum::<Bytes>().0,
        "requested": used.filter_map(|b| b.requested).sum::<Bytes>().0,
        "inactive_split": split.map(|s| s.bytes_in(BlockState::Inactive)).sum::<Bytes>().0,
    })
}
