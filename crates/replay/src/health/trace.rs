//! A trace by itself: every address must be allocated, freed and allocated again in turn.

use rustc_hash::FxHashMap;
use vramscope_model::{Action, EventIdx, Events};

/// What a trace's own order of events shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceHealth {
    /// Events of every kind.
    pub events: u64,
    /// Allocations.
    pub allocs: u64,
    /// Frees as the program requested them.
    pub frees_requested: u64,
    /// Frees that took effect.
    pub frees_completed: u64,
    /// Blocks that were freed though the trace does not hold their allocation.
    pub frees_of_unknown: u64,
    /// Frees of a block that was freed before and not allocated again in between.
    pub frees_repeated: u64,
    /// Allocations at an address where a block was still held or pending.
    pub allocs_repeated: u64,
    /// Frees whose size is not that of the allocation.
    pub sizes_differ: u64,
    /// Requests that failed.
    pub ooms: u64,
    /// Actions that this version does not know.
    pub unknown_actions: u64,
    /// Times of events.
    pub times: TimeHealth,
}

/// Times along a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeHealth {
    /// Events without one.
    pub missing: u64,
    /// Events earlier than the one before them.
    pub backward: u64,
    /// The largest such step, in µs.
    pub max_backward_us: u64,
    /// Events at the same microsecond as the one before them.
    pub equal: u64,
}

/// What became of the block at an address by the end of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// Allocated by that event and held.
    Live(EventIdx),
    /// Its free was requested and has not taken effect.
    Pending,
    /// Freed.
    Gone,
}

/// Every address that a trace mentions as a block's.
pub(super) type Slots = FxHashMap<u64, Slot>;

/// Follows a trace from its beginning to its end.
pub(super) fn replay(events: &Events) -> (TraceHealth, Slots) {
    let counts = events.counts();
    let count = |action: Action| counts[action as usize];
    let mut health = TraceHealth {
        events: events.len() as u64,
        allocs: count(Action::Alloc),
        frees_requested: count(Action::FreeRequested),
        frees_completed: count(Action::FreeCompleted),
        ooms: count(Action::Oom),
        unknown_actions: count(Action::Other),
        times: times(events),
        ..TraceHealth::default()
    };
    let mut slots = Slots::default();
    for (i, event) in events.iter().enumerate() {
        match event.action {
            Action::Alloc => {
                let before = slots.insert(event.addr, Slot::Live(EventIdx(i as u32)));
                health.allocs_repeated += u64::from(!matches!(before, None | Some(Slot::Gone)));
            }
            Action::FreeRequested | Action::FreeCompleted => {
                let completes = event.action == Action::FreeCompleted;
                let after = if completes { Slot::Gone } else { Slot::Pending };
                match slots.insert(event.addr, after) {
                    None => health.frees_of_unknown += 1,
                    Some(Slot::Live(alloc)) => {
                        let allocated = events.sizes().get(alloc.index()).copied();
                        health.sizes_differ += u64::from(allocated != Some(event.size.0));
                    }
                    Some(Slot::Pending) if completes => {}
                    Some(Slot::Pending | Slot::Gone) => health.frees_repeated += 1,
                }
            }
            _ => {}
        }
    }
    (health, slots)
}

fn times(events: &Events) -> TimeHealth {
    let mut health = TimeHealth::default();
    let mut before = None;
    for event in events.iter() {
        let Some(time) = event.time.known() else {
            health.missing += 1;
            continue;
        };
        if let Some(before) = before {
            health.equal += u64::from(time == before);
            if time < before {
                health.backward += 1;
                health.max_backward_us = health.max_backward_us.max(before.0.abs_diff(time.0));
            }
        }
        before = Some(time);
    }
    health
}

#[cfg(test)]
mod tests {
    use vramscope_model::{Symbols, TimeUs, script};

    use super::*;

    fn events(text: &str) -> Events {
        script::snapshot(&mut Symbols::default(), text).unwrap().devices.remove(0).events
    }

    #[test]
    fn blocks_out_of_turn_are_counted() {
        let check = |text: &str, want: (u64, u64, u64)| {
            let health = replay(&events(text)).0;
            let got = (health.frees_of_unknown, health.frees_repeated, health.allocs_repeated);
            assert_eq!(got, want, "{text}");
        };
        check("alloc a 512\nfree a", (0, 0, 0));
        check("alloc a 512\nrequest a\ncomplete a", (0, 0, 0));
        check("alloc a 512\ncomplete a", (0, 0, 0));
        check("old a 512\nfree a", (1, 0, 0));
        check("old a 512\ncomplete a", (1, 0, 0));
        check("alloc a 512\nfree a\nfree a", (0, 1, 0));
    }

    #[test]
    fn an_address_handed_out_twice_is_counted() {
        let mut twice = events("alloc a 512");
        twice.push(twice.get(0));
        assert_eq!(replay(&twice).0.allocs_repeated, 1);
        let mut pending = events("alloc a 512\nrequest a");
        pending.push(pending.get(0));
        assert_eq!(replay(&pending).0.allocs_repeated, 1);
    }

    #[test]
    fn times_may_be_equal_and_must_not_go_back() {
        let mut e = events("alloc a 512\nalloc b 512\nalloc c 512\nalloc d 512");
        for (i, time) in [(0, 50), (1, 50), (2, 20)] {
            let event = e.get(i);
            e.set(i, vramscope_model::Event { time: TimeUs(time), ..event });
        }
        let event = e.get(3);
        e.set(3, vramscope_model::Event { time: TimeUs::UNKNOWN, ..event });
        assert_eq!(times(&e), TimeHealth { missing: 1, backward: 1, max_backward_us: 30, equal: 1 });
    }
}
