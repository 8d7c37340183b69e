//! The sums at one moment: what is reserved, and what of it is allocated, pending and free.

use vramscope_model::{BlockState, Bytes, DeviceRecording, EventIdx, Segment, Settings, State};

use crate::curve::levels_at;
use crate::domain::{Domain, Portions};
use crate::free_memory::total;
use crate::ground::Stretch;
use crate::layout::Layout;
use crate::lifetimes::Lifetimes;
use crate::units::releasable;

/// Bytes at one moment. `reserved = allocated + pending + releasable + stranded`, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Obtained from the driver.
    pub reserved: Bytes,
    /// In blocks that the program holds.
    pub allocated: Bytes,
    /// In blocks given back that another stream may still use.
    pub pending: Bytes,
    /// Free, in segments that are wholly free, or in whole pages of expandable ones.
    pub releasable: Bytes,
    /// Free, in segments (or pages) of which something is still in use.
    pub stranded: Bytes,
    /// Segments.
    pub segments: u64,
}

impl Balance {
    /// The sums of a state.
    pub fn of(state: &State, settings: Option<&Settings>) -> Self {
        let portions = Portions::of(settings);
        let mut sums = Self::default();
        for segment in &state.segments {
            let (allocated, pending) =
                (segment.bytes_in(BlockState::Allocated), segment.bytes_in(BlockState::PendingFree));
            // What the blocks do not account for is free. Where a damaged file has more in its blocks than in the segment,
            // the blocks count.
            let size = segment.size.max(allocated + pending);
            let free = size - allocated - pending;
            let goes_back = if allocated + pending == Bytes::ZERO {
                free
            } else {
                whole_pages(segment, portions).min(free)
            };
            sums.reserved += size;
            sums.allocated += allocated;
            sums.pending += pending;
            sums.releasable += goes_back;
            sums.stranded += free - goes_back;
            sums.segments += 1;
        }
        sums
    }

    /// All free bytes.
    pub fn free(&self) -> Bytes {
        self.releasable + self.stranded
    }
}

/// What could be unmapped of a segment that is partly in use.
fn whole_pages(segment: &Segment, portions: Portions) -> Bytes {
    if !segment.expandable {
        return Bytes::ZERO;
    }
    let domain = Domain { pool: segment.pool, kind: segment.kind, stream: segment.stream };
    let stretch = Stretch { start: segment.addr, end: segment.end(), domain, expandable: true };
    let free = segment.blocks.iter().filter(|b| b.state == BlockState::Inactive && b.addr >= segment.addr);
    free.map(|b| Bytes(releasable(&stretch, portions, b.addr, b.addr.saturating_add(b.size.0)))).sum()
}

/// The sums just before an event; at the end of the trace those of the last state.
pub fn balance_at(
    device: &DeviceRecording,
    lifetimes: &Lifetimes,
    settings: Option<&Settings>,
    at: EventIdx,
) -> Balance {
    let is_end = at.index() >= device.events.len();
    if let Some(state) = device.last_state().filter(|_| is_end) {
        return Balance::of(state, settings);
    }
    let level = levels_at(device, lifetimes, &[at]).first().copied().unwrap_or_default();
    let layout = Layout::at(device, lifetimes, at);
    let sums = total(layout.free(Portions::of(settings)).values());
    let pending: Bytes = layout.blocks().filter(|b| b.pending).map(|b| b.size).sum();
    // A trace that does not tell of all segments must not lead to less reserved than is held.
    let reserved = level.reserved.max(level.allocated + pending);
    let free = reserved - level.allocated - pending;
    let releasable = sums.releasable.min(free);
    Balance {
        reserved,
        allocated: level.allocated,
        pending,
        releasable,
        stranded: free - releasable,
        segments: sums.segments,
    }
}
