//! The curves: allocated, reserved and requested bytes over the trace.
//!
//! Sums wrap around: real ones stay far below 2^63, and of absurd ones no order is asked.
//!
//! The curves are anchored at the end, where the last snapshot's state tells the exact bytes, and followed backwards
//! from there: what was there before the recording began cannot be known otherwise.

use vramscope_model::{Action, BlockState, Bytes, DeviceRecording, EventIdx};

use crate::lifetimes::{Lifetimes, Window};

/// The bytes at one moment, after an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Bytes in blocks that the program holds.
    pub allocated: Bytes,
    /// Bytes that the program asked for, of those blocks.
    pub requested: Bytes,
    /// Bytes obtained from the driver.
    pub reserved: Bytes,
}

/// The moments of most allocated and of most reserved bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The event after which most bytes were allocated (the first such).
    pub event: EventIdx,
    /// The bytes then.
    pub level: Level,
    /// The most reserved bytes at any moment.
    pub max_reserved: Bytes,
}

/// Calls `visit` after every event of a window with the levels then.
pub fn levels(
    device: &DeviceRecording,
    lifetimes: &Lifetimes,
    window: Window,
    mut visit: impl FnMut(EventIdx, Level),
) {
    let mut signed = lifetimes.baseline();
    let events = &device.events;
    let (actions, sizes) = (events.actions(), events.sizes());
    let to = window.to.index().min(events.len());
    for i in 0..to {
        match actions[i] {
            Action::Alloc => {
                if let Some(id) = lifetimes.alloc_of(EventIdx(i as u32)) {
                    signed.0 = signed.0.wrapping_add(lifetimes.size(id).0 as i64);
                    signed.1 = signed.1.wrapping_add(lifetimes.requested(id).0 as i64);
                }
            }
            Action::FreeRequested | Action::FreeCompleted => {
                if let Some(id) = lifetimes.alloc_of(EventIdx(i as u32)) {
                    signed.0 = signed.0.wrapping_sub(lifetimes.size(id).0 as i64);
                    signed.1 = signed.1.wrapping_sub(lifetimes.requested(id).0 as i64);
                }
            }
            Action::SegmentAlloc | Action::SegmentMap => signed.2 = signed.2.wrapping_add(sizes[i] as i64),
            Action::SegmentFree | Action::SegmentUnmap => signed.2 = signed.2.wrapping_sub(sizes[i] as i64),
            _ => {}
        }
        if i >= window.from.index() {
            visit(EventIdx(i as u32), level(signed));
        }
    }
}

/// The levels just before each of some events (or at the end, for the number of events). `at` must be sorted.
pub fn levels_at(device: &DeviceRecording, lifetimes: &Lifetimes, at: &[EventIdx]) -> Vec<Level> {
    let mut out = Vec::with_capacity(at.len());
    let mut before = level(lifetimes.baseline());
    let mut next = at.iter().peekable();
    levels(device, lifetimes, lifetimes.whole(), |event, after| {
        while next.peek().is_some_and(|&&a| a <= event) {
            next.next();
            out.push(before);
        }
        before = after;
    });
    out.extend(next.map(|_| before));
    out
}

/// The peak of a window; none where the window holds no event.
pub fn peak(device: &DeviceRecording, lifetimes: &Lifetimes, window: Window) -> Option<Peak> {
    let mut best: Option<Peak> = None;
    let mut max_reserved = Bytes::ZERO;
    levels(device, lifetimes, window, |event, level| {
        max_reserved = max_reserved.max(level.reserved);
        if best.is_none_or(|b| level.allocated > b.level.allocated) {
            best = Some(Peak { event, level, max_reserved });
        }
    });
    best.map(|b| Peak { max_reserved, ..b })
}

fn level((allocated, requested, reserved): (i64, i64, i64)) -> Level {
    let bytes = |v: i64| Bytes(u64::try_from(v).unwrap_or(0));
    Level { allocated: bytes(allocated), requested: bytes(requested), reserved: bytes(reserved) }
}

/// Allocated, requested and reserved bytes before the first event. [`Lifetimes`] keeps them.
pub(crate) fn start(device: &DeviceRecording, lifetimes: &Lifetimes) -> (i64, i64, i64) {
    let mut start = (0i64, 0i64, 0i64);
    for id in lifetimes.all().take(lifetimes.n_before()) {
        start.0 = start.0.wrapping_add(lifetimes.size(id).0 as i64);
        start.1 = start.1.wrapping_add(lifetimes.requested(id).0 as i64);
    }
    // What the trace adds up to, against what the state shows at its end.
    let mut end = start;
    let mut lowest_reserved = 0;
    let events = &device.events;
    for (i, action) in events.actions().iter().enumerate() {
        match action {
            Action::SegmentAlloc | Action::SegmentMap => end.2 = end.2.wrapping_add(events.sizes()[i] as i64),
            Action::SegmentFree | Action::SegmentUnmap => {
                end.2 = end.2.wrapping_sub(events.sizes()[i] as i64);
            }
            _ => {}
        }
        lowest_reserved = lowest_reserved.min(end.2);
    }
    for id in lifetimes.all() {
        let (size, requested) = (lifetimes.size(id).0 as i64, lifetimes.requested(id).0 as i64);
        if lifetimes.birth(id).is_some() {
            end.0 = end.0.wrapping_add(size);
            end.1 = end.1.wrapping_add(requested);
        }
        // A death that no event records is in no event's balance either: its block stays in the curve to the end,
        // and the anchor below takes it out evenly.
        if matches!(lifetimes.death(id), crate::Death::At(e) if lifetimes.alloc_of(e) == Some(id)) {
            end.0 = end.0.wrapping_sub(size);
            end.1 = end.1.wrapping_sub(requested);
        }
    }
    match device.last_state().filter(|_| device.trace_reaches_state()) {
        Some(state) => {
            start.0 =
                start.0.wrapping_add((state.bytes_in(BlockState::Allocated).0 as i64).wrapping_sub(end.0));
            start.2 = start.2.wrapping_add((state.reserved().0 as i64).wrapping_sub(end.2));
        }
        // Without a state the trace alone tells the least that must have been there.
        None => start.2 = lowest_reserved.wrapping_neg(),
    }
    start
}
