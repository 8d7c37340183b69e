//! Which events are of private pools: memory pools of their own and those of captured graphs.
//!
//! A replay takes them as recorded: what goes on in a captured graph leaves no events.
//!
//! Source: the allocator reference, §10.4.

use vramscope_model::{Action, DeviceRecording, Event, EventIdx, PoolId};

use super::gaps::Gaps;
use crate::ground::{Ground, Purposes};

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
    pub(super) fn of(
        device: &DeviceRecording,
        ground: &Ground,
        purposes: &Purposes,
        known: &[EventIdx],
    ) -> Self {
        let events = &device.events;
        let by_event = events.iter().any(|event| event.pool != PoolId::DEFAULT);
        let obtains = |i: usize, event: &Event| {
            known.contains(&EventIdx(i as u32)) || purposes.of(i, event).pool != PoolId::DEFAULT
        };
        let mut at_start = Gaps::default();
        for stretch in ground.stretches().filter(|stretch| stretch.domain.pool != PoolId::DEFAULT) {
            at_start.add(stretch.start, stretch.end);
        }
        let mut ranges = at_start.clone();
        let mut this = Self { events: vec![false; events.len()], at_start };
        let mut any = !ranges.is_empty();
        for (i, event) in events.iter().enumerate() {
            let end = event.addr.saturating_add(event.size.0);
            let private = match event.action {
                _ if by_event => event.pool != PoolId::DEFAULT,
                Action::SegmentMap if is_reached(&ranges, event.addr) => true,
                Action::SegmentAlloc | Action::SegmentMap => obtains(i, &event),
                Action::Oom | Action::Snapshot => false,
                _ => ranges.contain(event.addr),
            };
            any |= private;
            this.events[i] = private;
            match event.action {
                Action::SegmentAlloc | Action::SegmentMap if private => ranges.add(event.addr, end),
                Action::SegmentFree | Action::SegmentUnmap => ranges.cut(event.addr, end),
                _ => {}
            }
        }
        if any { this } else { Self::default() }
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
