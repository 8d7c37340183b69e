//! Recordings that no allocator made: nothing may panic, run for ever, or count more than was recorded.

use proptest::prelude::*;
use vramscope_model::{
    Action, Block, BlockState, Bytes, DeviceRecording, Event, EventIdx, Events, PoolId, PoolKind, Segment,
    StackId, State, StreamId, TimeUs,
};

use crate::Lifetimes;
use crate::allocator::config::{Config, MIB, Release, Rules, Tie};
use crate::allocator::outcome::Limits;
use crate::allocator::simulation::Simulation;

/// Addresses that meet often, and some at the ends of what a number holds.
fn addr() -> impl Strategy<Value = u64> {
    prop_oneof![
        20 => (0u64..64).prop_map(|i| 0x7f00_0000_0000 + i * MIB),
        5 => (0u64..64).prop_map(|i| 0x3_0000_0000 + i * 2 * MIB),
        1 => prop::sample::select(vec![0, 1, u64::MAX, u64::MAX - 511, 1 << 63]),
    ]
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![
        10 => 0u64..40 * MIB,
        10 => (1u64..20).prop_map(|i| i * 2 * MIB),
        1 => prop::sample::select(vec![0, u64::MAX, u64::MAX - 511, 1 << 63, 1 << 47]),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    (prop::sample::select(Action::ALL.to_vec()), addr(), size(), 0u16..3, 0u16..20, 0u32..3).prop_map(
        |(action, addr, size, stream, pool, stack)| Event {
            action,
            addr,
            size: Bytes(size),
            time: TimeUs::UNKNOWN,
            stream: StreamId(stream),
            pool: PoolId(u16::from(pool == 0)),
            stack: StackId(stack),
        },
    )
}

fn segment() -> impl Strategy<Value = Segment> {
    let block = (addr(), size(), 0u8..3).prop_map(|(addr, size, state)| Block {
        addr,
        size: Bytes(size),
        requested: Some(Bytes(size)),
        state: [BlockState::Allocated, BlockState::PendingFree, BlockState::Inactive][usize::from(state)],
        stack: StackId::ABSENT,
    });
    (addr(), size(), any::<[bool; 2]>(), 0u16..3, 0u16..10, prop::collection::vec(block, 0..6)).prop_map(
        |(addr, size, [small, expandable], stream, pool, blocks)| Segment {
            addr,
            size: Bytes(size),
            stated_allocated: Bytes::ZERO,
            stated_active: Bytes::ZERO,
            stream: StreamId(stream),
            kind: if small { PoolKind::Small } else { PoolKind::Large },
            pool: PoolId(u16::from(pool == 0)),
            expandable,
            stack: StackId::ABSENT,
            blocks,
        },
    )
}

fn config() -> impl Strategy<Value = Config> {
    (any::<[bool; 3]>(), prop::sample::select(vec![1u64, 12, 20, 1 << 43])).prop_map(
        |([split, collect, expandable_segments], large)| Config {
            max_split_size: split.then_some(32 * MIB),
            garbage_collection_threshold: if collect { 0.5 } else { 0.0 },
            expandable_segments,
            large_segment: large * MIB,
            ..Config::default()
        },
    )
}

proptest! {
    #[test]
    fn any_recording_can_be_replayed_or_is_refused(
        trace in prop::collection::vec(event(), 0..200),
        mut segments in prop::collection::vec(segment(), 0..8),
        own in config(),
        other in config(),
        limits in (prop::option::of(size()), prop::option::of(size()), prop::option::of(size())),
        tie in prop::sample::select(vec![Tie::Address, Tie::Creation, Tie::Registration]),
    ) {
        let mut events = Events::default();
        for event in trace {
            events.push(event);
        }
        segments.sort_by_key(|segment| segment.addr);
        let n = events.len() as u32;
        let states = vec![State { snapshot: 0, after: Some(EventIdx(n)), segments }];
        let device = DeviceRecording { ordinal: 0, events, states };
        let lifetimes = Lifetimes::of(&device, None);
        let rules = Rules { tie, ..Rules::of_release(Release(2, 11)) };
        let Ok(simulation) = Simulation::of(&device, &lifetimes, None, &[(own, rules)]) else { return Ok(()) };
        let reproduction = simulation.reproduction();
        prop_assert!(reproduction.reproduced <= reproduction.recorded);
        prop_assert!(reproduction.in_place <= reproduction.allocations);
        prop_assert!(reproduction.same_blocks <= reproduction.blocks);
        let (capacity, reserved, total) = limits;
        let outcome = simulation.run(&other, &Limits { capacity, reserved, total });
        prop_assert!(outcome.peak_reserved >= outcome.final_reserved);
        prop_assert!(outcome.peak_allocated >= outcome.final_allocated);
    }
}
