//! What must hold after every step, whatever the program does under whatever settings.

use std::collections::BTreeSet;

use proptest::prelude::*;
use vramscope_model::{Divisions, PoolKind, StreamId};

use crate::allocator::block::{Id, NONE, Use};
use crate::allocator::config::{Config, MIB, Release, Rules, Tie};
use crate::allocator::machine::Allocator;
use crate::allocator::outcome::Limits;

/// Blocks tile their segments, neighbours know each other and no two that could be one lie side by side; the sets of free and
/// unmapped blocks hold exactly those; what is reserved is what is mapped, and what is allocated is what is held.
pub(super) fn check(allocator: &Allocator<'_>) {
    let (mut reserved, mut allocated) = (0, 0);
    let (mut free, mut unmapped, mut pending) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (id, block) in allocator.blocks.numbered() {
        assert!(block.size > 0 && block.size.is_multiple_of(512), "{block:?}");
        let segment = &allocator.segments[block.segment];
        if block.usage == Use::Unmapped {
            assert!(segment.is_expandable());
            assert!((block.addr - segment.base).is_multiple_of(segment.page), "{block:?}");
        } else {
            reserved += block.size;
        }
        match block.usage {
            Use::Held => allocated += block.size,
            Use::Pending => drop(pending.insert(id)),
            Use::Free => drop(free.insert(id)),
            Use::Unmapped => drop(unmapped.insert(id)),
        }
        if block.prev == NONE {
            assert_eq!(block.addr, segment.base);
        } else {
            assert_eq!(allocator.blocks[block.prev].next, id);
        }
        if block.next != NONE {
            let next = &allocator.blocks[block.next];
            assert_eq!((next.prev, next.addr, next.segment), (id, block.addr + block.size, block.segment));
            let could_be_one = next.usage == block.usage && next.is_idle();
            assert!(!could_be_one, "{block:?} {next:?}");
        }
    }
    assert_eq!((reserved, allocated), (allocator.tally.reserved, allocator.tally.allocated));
    assert_eq!(pending, allocator.pending);
    for pool in &allocator.pools {
        for key in &pool.free {
            assert_eq!(*key, allocator.key(key.id));
            assert!(free.remove(&key.id), "{key:?} is listed as free");
        }
        for (addr, id) in &pool.unmapped {
            assert_eq!(*addr, allocator.blocks[*id].addr);
            assert!(unmapped.remove(id), "{id} is listed as unmapped");
        }
    }
    assert_eq!((free, unmapped), (BTreeSet::new(), BTreeSet::new()), "in no list");
    // The segments of `cudaMalloc` and of addresses do not overlap.
    let mut ends: Vec<(u64, u64)> = Vec::new();
    for (_, block) in allocator.blocks.numbered() {
        ends.push((block.addr, block.addr + block.size));
    }
    ends.sort_unstable();
    assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "blocks overlap");
}

/// One step of a program.
#[derive(Clone, Debug)]
enum Step {
    Malloc {
        size: u64,
        stream: u16,
    },
    /// Frees one of the held blocks.
    Free {
        which: usize,
        is_pending: bool,
    },
    /// Completes one of the pending ones.
    Complete {
        which: usize,
    },
    Flush,
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 1u64..2 * MIB,
        4 => 1u64..64 * MIB,
        1 => 1u64..400 * MIB,
        // The boundaries.
        2 => (prop::sample::select(vec![512, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 32 * MIB]), 0u64..3)
            .prop_map(|(at, off)| at - 1 + off),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (size(), 0u16..3).prop_map(|(size, stream)| Step::Malloc { size, stream }),
        8 => (any::<usize>(), prop::bool::weighted(0.2)).prop_map(|(which, is_pending)| Step::Free { which, is_pending }),
        2 => any::<usize>().prop_map(|which| Step::Complete { which }),
        1 => Just(Step::Flush),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    (
        prop::option::of((20u64..100).prop_map(|mib| mib * MIB)),
        prop::sample::select(vec![0.0, 0.0, 0.3, 0.8]),
        prop::sample::select(vec![0u64, 0, 1, 2, 8, 32]),
        any::<bool>(),
        prop::sample::select(vec![20u64, 20, 12, 64]),
    )
        .prop_map(|(max_split_size, threshold, divisions, expandable_segments, large)| Config {
            max_split_size,
            garbage_collection_threshold: threshold,
            roundup_divisions: Divisions::uniform(divisions),
            expandable_segments,
            large_segment: large * MIB,
            ..Config::default()
        })
}

fn limits() -> impl Strategy<Value = Limits> {
    let bytes = || prop::option::of((100u64..1000).prop_map(|mib| mib * MIB));
    (bytes(), bytes()).prop_map(|(capacity, reserved)| Limits { capacity, reserved, total: Some(1 << 30) })
}

proptest! {
    #[test]
    fn hold_for_any_program_under_any_settings(
        config in config(),
        other in config(),
        limits in limits(),
        tie in prop::sample::select(vec![Tie::Address, Tie::Creation, Tie::Registration]),
        program in prop::collection::vec(step(), 1..150),
    ) {
        let rules = Rules { tie, ..Rules::of_release(Release(2, 11)) };
        let mut allocator = Allocator::new(&config, rules, limits);
        let mut held: Vec<(Id, u32)> = Vec::new();
        let mut pending: Vec<(Id, u32)> = Vec::new();
        let half = program.len() / 2;
        for (i, step) in program.into_iter().enumerate() {
            if i == half {
                // Settings may change while the program runs; what large segments map in pages may not.
                allocator.config = if other.large_segment == config.large_segment { &other } else { &config };
            }
            match step {
                Step::Malloc { size, stream } => {
                    let before = allocator.tally.reserved;
                    match allocator.malloc(size, StreamId(stream), i as u32) {
                        Ok(block) => {
                            prop_assert!(allocator.blocks[block].size >= size);
                            held.push((block, i as u32));
                        }
                        Err(failed) => {
                            prop_assert!(failed.size >= size);
                            prop_assert!(limits.capacity.is_some() || limits.reserved.is_some());
                            prop_assert!(allocator.tally.reserved <= before.max(limits.capacity.unwrap_or(u64::MAX)));
                        }
                    }
                }
                Step::Free { which, is_pending } if !held.is_empty() => {
                    let (block, owner) = held.swap_remove(which % held.len());
                    allocator.free(block, is_pending);
                    if is_pending {
                        pending.push((block, owner));
                    }
                }
                Step::Complete { which } if !pending.is_empty() => {
                    let (block, _) = pending.swap_remove(which % pending.len());
                    allocator.complete(block);
                }
                Step::Flush => allocator.release_all(),
                Step::Free { .. } | Step::Complete { .. } => {}
            }
            for owner in allocator.completed_early.drain(..) {
                pending.retain(|(_, pending)| *pending != owner);
            }
            check(&allocator);
            if let Some(capacity) = limits.capacity {
                prop_assert!(allocator.tally.reserved <= capacity);
            }
        }
        // Once everything is given back, nothing is reserved.
        for (block, _) in held {
            allocator.free(block, false);
        }
        allocator.release_all();
        check(&allocator);
        prop_assert_eq!(allocator.tally.reserved, 0);
        prop_assert!(allocator.blocks.numbered().all(|(_, block)| block.usage == Use::Unmapped));
    }
}

#[test]
fn small_and_large_requests_have_pools_of_their_own() {
    let config = Config::default();
    let rules = Rules::of_release(Release(2, 11));
    let mut allocator = Allocator::new(&config, rules, Limits::default());
    for (size, kind) in [(MIB, PoolKind::Small), (MIB + 1, PoolKind::Large)] {
        let block = allocator.malloc(size, StreamId(0), 0).unwrap();
        assert_eq!(allocator.pools[allocator.blocks[block].pool as usize].kind, kind);
    }
}
