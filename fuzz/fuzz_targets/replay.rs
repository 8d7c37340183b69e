//! Any events and states as a recording, any text as a setting: replayed or refused.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use vramscope_model::{
    Action, Block, BlockState, Bytes, DeviceRecording, Event, EventIdx, Events, PoolId, PoolKind, Segment,
    StackId, State, StreamId, TimeUs,
};
use vramscope_replay::Lifetimes;
use vramscope_replay::allocator::{Config, Limits, Rules, Simulation};

/// A number that meets others often: a few units of 2 MiB or of 512 bytes, or anything.
#[derive(Arbitrary, Debug)]
enum Number {
    Pages(u8),
    Units(u16),
    Any(u64),
}

impl Number {
    fn value(&self) -> u64 {
        match *self {
            Self::Pages(n) => u64::from(n) << 21,
            Self::Units(n) => u64::from(n) << 9,
            Self::Any(n) => n,
        }
    }
}

#[derive(Arbitrary, Debug)]
struct Happening {
    action: u8,
    addr: Number,
    size: Number,
    stream: u8,
    private: bool,
}

#[derive(Arbitrary, Debug)]
struct Stretch {
    addr: Number,
    size: Number,
    small: bool,
    expandable: bool,
    private: bool,
    blocks: Vec<(Number, Number, u8)>,
}

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    own: &'a str,
    other: &'a str,
    trace: Vec<Happening>,
    state: Vec<Stretch>,
    capacity: Option<Number>,
    limit: Option<Number>,
    newest: bool,
}

fuzz_target!(|input: Input<'_>| {
    let rules = if input.newest {
        Rules::newest()
    } else {
        Rules::of_release(vramscope_replay::allocator::Release(2, 11))
    };
    let parse = |text| Config::parse(text, &rules).map(|(config, _)| config).unwrap_or_default();
    let mut events = Events::default();
    for h in &input.trace {
        events.push(Event {
            action: Action::ALL[usize::from(h.action) % Action::ALL.len()],
            addr: h.addr.value(),
            size: Bytes(h.size.value()),
            time: TimeUs::UNKNOWN,
            stream: StreamId(u16::from(h.stream % 3)),
            pool: PoolId(u16::from(h.private)),
            stack: StackId::ABSENT,
        });
    }
    let states = [BlockState::Allocated, BlockState::PendingFree, BlockState::Inactive];
    let mut segments: Vec<Segment> = input
        .state
        .iter()
        .map(|s| Segment {
            addr: s.addr.value(),
            size: Bytes(s.size.value()),
            stated_allocated: Bytes::ZERO,
            stated_active: Bytes::ZERO,
            stream: StreamId(0),
            kind: if s.small { PoolKind::Small } else { PoolKind::Large },
            pool: PoolId(u16::from(s.private)),
            expandable: s.expandable,
            stack: StackId::ABSENT,
            blocks: s
                .blocks
                .iter()
                .map(|(addr, size, state)| Block {
                    addr: addr.value(),
                    size: Bytes(size.value()),
                    requested: Some(Bytes(size.value())),
                    state: states[usize::from(*state) % states.len()],
                    stack: StackId::ABSENT,
                })
                .collect(),
        })
        .collect();
    segments.sort_by_key(|segment| segment.addr);
    let after = Some(EventIdx(events.len() as u32));
    let states = vec![State { snapshot: 0, after, segments }];
    let device = DeviceRecording { ordinal: 0, events, states };
    let lifetimes = Lifetimes::of(&device, None);
    let Ok(simulation) = Simulation::of(&device, &lifetimes, None, &[(parse(input.own), rules)]) else {
        return;
    };
    let limits = Limits {
        capacity: input.capacity.as_ref().map(Number::value),
        reserved: input.limit.as_ref().map(Number::value),
        total: None,
    };
    let other = parse(input.other);
    let outcome = simulation.run(&other, &limits);
    let spread = simulation.spread(&other, &limits, &outcome);
    assert!(spread.low <= outcome.peak_reserved && outcome.peak_reserved <= spread.high);
});
