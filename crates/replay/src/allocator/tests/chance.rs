//! Random programs that were played on torch's own allocator under sixteen settings, failures and all: what is reserved after every
//! operation, and every count.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops where it cannot go on, and reads files"
)]

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;
use vramscope_model::StreamId;

use crate::allocator::block::Id;
use crate::allocator::config::{Config, MIB, Release, Rules};
use crate::allocator::machine::Allocator;
use crate::allocator::outcome::Limits;

/// Plays a program. Returns what was reserved after each operation that changed it, and how many requests failed.
fn play(allocator: &mut Allocator<'_>, script: &str) -> (Vec<(u64, u64)>, u64) {
    let mut blocks: HashMap<&str, Id> = HashMap::new();
    let (mut reserved, mut failed, mut before) = (Vec::new(), 0, 0);
    for (place, line) in (0..).zip(script.lines().filter(|line| !line.starts_with('#'))) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["alloc", name, size, stream] => {
                match allocator.malloc(size.parse().unwrap(), StreamId(stream.parse().unwrap()), 0) {
                    Ok(block) => drop(blocks.insert(name, block)),
                    Err(_) => failed += 1,
                }
            }
            ["free", name] => {
                if let Some(block) = blocks.remove(name) {
                    allocator.free(block, false);
                }
            }
            ["empty_cache"] => allocator.release_all(),
            _ => panic!("{line}"),
        }
        if allocator.tally.reserved != before {
            before = allocator.tally.reserved;
            reserved.push((place, before));
        }
    }
    (reserved, failed)
}

#[test]
fn equals_what_torch_did() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/whatif/random");
    let runs: Value = serde_json::from_slice(&std::fs::read(folder.join("runs.json")).unwrap()).unwrap();
    let rules = Rules::of_release(Release(2, 11));
    let (mut compared, mut failing) = (0, 0);
    for run in runs.as_array().unwrap() {
        let script = folder.join("scripts").join(run["name"].as_str().unwrap()).with_extension("txt");
        let script = std::fs::read_to_string(script).unwrap();
        // When another stream is done with a block, and what a pool of its own holds, the program alone does not tell.
        if ["use ", "pool_", "graph_", "conf", "limit "]
            .iter()
            .any(|word| script.lines().any(|l| l.starts_with(word)))
        {
            continue;
        }
        let (config, _) = Config::parse(run["conf"].as_str().unwrap(), &rules).unwrap();
        let total = run["total_memory"].as_u64().unwrap();
        let reserved = run["fraction"].as_f64().map(|fraction| rules.bytes_of_fraction(fraction, total));
        let limits = Limits { capacity: None, reserved, total: Some(total) };
        let mut allocator = Allocator::new(&config, rules, limits);
        // What CUDA itself left of its first unit of addresses.
        allocator.addresses.add_hole(1 << 46, (1 << 46) + 24 * MIB);
        let (reserved, failed) = play(&mut allocator, &script);
        let what = format!("{} under {}", run["name"], run["setting"]);
        let measured: Vec<(u64, u64)> = serde_json::from_value(run["reserved"].clone()).unwrap();
        assert_eq!(reserved, measured, "{what}");
        let tally = &allocator.tally;
        let [allocs, frees, maps, unmaps] = tally.calls;
        for (key, count) in [
            ("reserved_bytes.all.peak", tally.peak_reserved),
            ("allocated_bytes.all.peak", tally.peak_allocated),
            ("allocated_bytes.all.current", tally.allocated),
            ("num_alloc_retries", tally.retries),
            ("num_ooms", failed),
            ("num_device_alloc", allocs + maps),
            ("num_device_free", frees + unmaps),
        ] {
            assert_eq!(count, run[key].as_u64().unwrap(), "{key} of {what}");
        }
        compared += 1;
        failing += u64::from(failed > 0);
    }
    assert!(compared >= 300 && failing >= 80, "{compared} {failing}");
}
