//! Which events are of private pools: memory pools of their own and those of captured graphs.
//!
//! A replay takes them as recorded: what goes on in a captured graph leaves no events.
//!
//! Source: the allocator reference, §10.4.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use vramscope_model::{Action, DeviceRecording, EventIdx, PoolId, Segment};

/// The part of a recording that is of private pools.
#[derive(Clone, Debug, Default)]
pub(super) struct PrivatePools {
    /// Whether each event is of a private pool; empty where none is.
    events: Vec<bool>,
    /// Segments that were there at the beginning: start and end.
    at_start: BTreeMap<u64, u64>,
}

impl PrivatePools {
    /// Tells them by what events say (torch 2.12 and later), else by the segments of the states.
    pub(super) fn of(device: &DeviceRecording) -> Self {
        let events = &device.events;
        let is_private = |segment: &&Segment| segment.pool != PoolId::DEFAULT;
        let by_event = events.iter().any(|event| event.pool != PoolId::DEFAULT);
        if !by_event && !device.states.iter().any(|s| s.segments.iter().any(|s| is_private(&s))) {
            return Self::default();
        }
        let origins = origins(device);
        let mut this = Self { events: vec![false; events.len()], at_start: origins.at_start };
        let mut ranges = this.at_start.clone();
        for (i, event) in events.iter().enumerate() {
            let inside = || ranges.range(..=event.addr).next_back().is_some_and(|(_, &end)| event.addr < end);
            let private = match event.action {
                Action::SegmentAlloc | Action::SegmentMap => origins.events.contains_key(&(i as u32)),
                Action::Oom | Action::Snapshot => false,
                _ => inside(),
            };
            this.events[i] = if by_event { event.pool != PoolId::DEFAULT } else { private };
            match event.action {
                Action::SegmentAlloc | Action::SegmentMap if this.events[i] => {
                    ranges.insert(event.addr, event.addr.saturating_add(event.size.0));
                }
                Action::SegmentAlloc | Action::SegmentFree | Action::SegmentMap | Action::SegmentUnmap => {
                    ranges.remove(&event.addr);
                }
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
        self.at_start.range(..=addr).next_back().is_some_and(|(_, &end)| addr < end)
    }

    /// Bytes of the segments that were there at the beginning.
    pub(super) fn reserved_at_start(&self) -> u64 {
        self.at_start.iter().fold(0, |sum, (start, end)| sum.saturating_add(end - start))
    }
}

/// Where the private segments that states show came from.
#[derive(Default)]
struct Origins {
    /// The events that obtained them.
    events: FxHashMap<u32, ()>,
    /// Those that no event obtained.
    at_start: BTreeMap<u64, u64>,
}

fn origins(device: &DeviceRecording) -> Origins {
    let mut obtained: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
    let mut maps: Vec<(u64, u32)> = Vec::new();
    for (i, event) in device.events.iter().enumerate() {
        match event.action {
            Action::SegmentAlloc => obtained.entry(event.addr).or_default().push(i as u32),
            Action::SegmentMap => maps.push((event.addr, i as u32)),
            _ => {}
        }
    }
    maps.sort_unstable();
    let mut origins = Origins::default();
    for state in &device.states {
        let Some(after) = state.after else { continue };
        for segment in state.segments.iter().filter(|s| s.pool != PoolId::DEFAULT) {
            if segment.expandable {
                // Addresses of an expandable segment are never used for another.
                let inside = maps.partition_point(|&(addr, _)| addr < segment.addr)
                    ..maps.partition_point(|&(addr, _)| addr < segment.end());
                if inside.is_empty() {
                    origins.at_start.insert(segment.addr, segment.end());
                }
                origins.events.extend(maps[inside].iter().map(|&(_, event)| (event, ())));
                continue;
            }
            let last = obtained.get(&segment.addr).and_then(|events| {
                events[..events.partition_point(|&event| event < after.0)].last().copied()
            });
            match last {
                Some(event) => drop(origins.events.insert(event, ())),
                None => drop(origins.at_start.insert(segment.addr, segment.end())),
            }
        }
    }
    origins
}
