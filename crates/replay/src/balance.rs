//! The sums at one moment: what is reserved, and what of it is allocated, pending and free.

use rustc_hash::FxHashMap;
use vramscope_model::{Action, BlockState, Bytes, DeviceRecording, EventIdx, State};

use crate::curve::levels_at;
use crate::lifetimes::Lifetimes;
use crate::placement::{Spans, spans_at_start};

/// Bytes at one moment. `reserved = allocated + pending + releasable + stranded`, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Obtained from the driver.
    pub reserved: Bytes,
    /// In blocks that the program holds.
    pub allocated: Bytes,
    /// In blocks given back that another stream may still use.
    pub pending: Bytes,
    /// Free, in segments that are wholly free.
    pub releasable: Bytes,
    /// Free, in segments of which something is still in use.
    pub stranded: Bytes,
    /// Segments.
    pub segments: u64,
}

impl Balance {
    /// The sums of a state.
    pub fn of(state: &State) -> Self {
        let mut sums = Self::default();
        for segment in &state.segments {
            let (allocated, pending) =
                (segment.bytes_in(BlockState::Allocated), segment.bytes_in(BlockState::PendingFree));
            // What the blocks do not account for is free. Where a damaged file has more in its blocks than in the segment,
            // the blocks count.
            let size = segment.size.max(allocated + pending);
            let free = size - allocated - pending;
            sums.reserved += size;
            sums.allocated += allocated;
            sums.pending += pending;
            if allocated + pending == Bytes::ZERO {
                sums.releasable += free;
            } else {
                sums.stranded += free;
            }
            sums.segments += 1;
        }
        sums
    }

    /// All free bytes.
    pub fn free(&self) -> Bytes {
        self.releasable + self.stranded
    }
}

/// The sums just before an event; at the end of the trace those of the last state.
pub fn balance_at(device: &DeviceRecording, lifetimes: &Lifetimes, at: EventIdx) -> Balance {
    let is_end = at.index() >= device.events.len();
    if let Some(state) = device.last_state().filter(|_| is_end) {
        return Balance::of(state);
    }
    let level = levels_at(device, lifetimes, &[at]).first().copied().unwrap_or_default();
    let mut spans: Spans = spans_at_start(device);
    let mut pending: FxHashMap<u64, Bytes> = FxHashMap::default();
    let events = &device.events;
    for i in 0..at.index().min(events.len()) {
        let event = events.get(i);
        match event.action {
            Action::SegmentAlloc | Action::SegmentMap => spans.add(event.addr, event.size),
            Action::SegmentFree | Action::SegmentUnmap => spans.remove(event.addr),
            Action::FreeRequested => {
                if let Some(id) = lifetimes.alloc_of(EventIdx(i as u32)) {
                    pending.insert(event.addr, lifetimes.size(id));
                }
            }
            Action::FreeCompleted => {
                pending.remove(&event.addr);
            }
            _ => {}
        }
    }
    for id in lifetimes.all().filter(|&id| lifetimes.is_held_at(id, at)) {
        spans.mark_used(lifetimes.addr(id));
    }
    let mut waiting: Vec<(u64, Bytes)> = pending.into_iter().collect();
    waiting.sort_unstable();
    for &(addr, _) in &waiting {
        spans.mark_used(addr);
    }
    let pending: Bytes = waiting.iter().map(|&(_, size)| size).sum();
    // A trace that does not tell of all segments must not lead to less reserved than is held.
    let reserved = level.reserved.max(level.allocated + pending);
    let free = reserved - level.allocated - pending;
    let releasable = spans.unused().min(free);
    Balance {
        reserved,
        allocated: level.allocated,
        pending,
        releasable,
        stranded: free - releasable,
        segments: spans.len() as u64,
    }
}
