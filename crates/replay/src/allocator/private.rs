//! Which events are of private pools: memory pools of their own and those of captured graphs.
//!
//! A replay takes them as recorded: what goes on in a captured graph leaves no events.
//!
//! Source: the allocator reference, §10.4.

use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_model::{Action, DeviceRecording, EventIdx, PoolId, Segment, State};

use super::gaps::Gaps;

/// The part of a recording that is of private pools.
#[derive(Clone, Debug, Default)]
pub(super) struct PrivatePools {
    /// Whether each event is of a private pool; empty where none is.
    events: Vec<bool>,
    /// What was there at the beginning.
    at_start: Gaps,
}

impl PrivatePools {
    /// Tells them by what events say (torch 2.12 and later), else by the segments of the states and by what is `known`: events
    /// that obtained memory for private pools.
    pub(super) fn of(device: &DeviceRecording, known: &[EventIdx]) -> Self {
        let events = &device.events;
        let by_event = events.iter().any(|event| event.pool != PoolId::DEFAULT);
        let in_states = || device.states.iter().any(|s| s.segments.iter().any(is_private));
        if !by_event && known.is_empty() && !in_states() {
            return Self::default();
        }
        let Origins { events: mut obtained, at_start } = origins(device);
        obtained.extend(known.iter().map(|event| event.0));
        let mut ranges = at_start.clone();
        let mut this = Self { events: vec![false; events.len()], at_start };
        for (i, event) in events.iter().enumerate() {
            let end = event.addr.saturating_add(event.size.0);
            let private = match event.action {
                _ if by_event => event.pool != PoolId::DEFAULT,
                Action::SegmentMap if is_reached(&ranges, event.addr) => true,
                Action::SegmentAlloc | Action::SegmentMap => obtained.contains(&(i as u32)),
                Action::Oom | Action::Snapshot => false,
                _ => ranges.contain(event.addr),
            };
            this.events[i] = private;
            match event.action {
                Action::SegmentAlloc | Action::SegmentMap if private => ranges.add(event.addr, end),
                Action::SegmentFree | Action::SegmentUnmap => ranges.cut(event.addr, end),
                _ => {}
            }
        }
        this
    }

    /// Whether an event is of a private pool.
    #[inline]
    pub(super) fn has(&self, event: EventIdx) -> bool {
        self.events.get(event.index()).copied().unwrap_or(false)
    }

    /// Whether an address was in a private pool at the beginning.
    pub(super) fn had(&self, addr: u64) -> bool {
        self.at_start.contain(addr)
    }

    /// Bytes of the segments that were there at the beginning.
    pub(super) fn reserved_at_start(&self) -> u64 {
        self.at_start.iter().fold(0u64, |sum, (start, end)| sum.saturating_add(end - start))
    }
}

/// Whether an address lies where the last range before it would grow to. Expandable segments have more room than that between
/// them.
fn is_reached(ranges: &Gaps, addr: u64) -> bool {
    const REACH: u64 = 1 << 30;
    ranges.end_before(addr).is_some_and(|end| addr < end.saturating_add(REACH))
}

fn is_private(segment: &Segment) -> bool {
    segment.pool != PoolId::DEFAULT
}

/// Where the private memory that states show came from.
#[derive(Default)]
struct Origins {
    /// The events that obtained it.
    events: FxHashSet<u32>,
    /// What no event obtained.
    at_start: Gaps,
}

fn origins(device: &DeviceRecording) -> Origins {
    let mut origins = Origins::default();
    if !device.states.iter().any(|state| state.segments.iter().any(is_private)) {
        return origins;
    }
    let mut obtained: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
    for (i, event) in device.events.iter().enumerate() {
        if event.action == Action::SegmentAlloc {
            obtained.entry(event.addr).or_default().push(i as u32);
        }
    }
    for state in &device.states {
        let Some(after) = state.after else { continue };
        for segment in state.segments.iter().filter(|s| is_private(s) && !s.expandable) {
            let last = obtained.get(&segment.addr).and_then(|events| {
                events[..events.partition_point(|&event| event < after.0)].last().copied()
            });
            match last {
                Some(event) => drop(origins.events.insert(event)),
                None => origins.at_start.add(segment.addr, segment.end()),
            }
        }
        origins.follow_back(device, state);
    }
    origins
}

impl Origins {
    /// Goes back from a state to the events that mapped what its expandable segments show.
    fn follow_back(&mut self, device: &DeviceRecording, state: &State) {
        let mut shown = Gaps::default();
        for segment in state.segments.iter().filter(|s| is_private(s) && s.expandable) {
            shown.add(segment.addr, segment.end());
        }
        let n = state.after.map_or(0, EventIdx::index).min(device.events.len());
        for i in (0..n).rev() {
            if shown.is_empty() {
                return;
            }
            let event = device.events.get(i);
            if event.action == Action::SegmentMap && shown.contain(event.addr) {
                self.events.insert(i as u32);
                shown.cut(event.addr, event.addr.saturating_add(event.size.0));
            }
        }
        for (start, end) in shown.iter() {
            self.at_start.add(start, end);
        }
    }
}
