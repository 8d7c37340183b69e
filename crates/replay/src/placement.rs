//! How large the blocks were, and which segments they lay in.
//!
//! Events tell the bytes that were asked for. The block is larger: rounded up, and in the large pool also by what would
//! have been left over, where that is too little to be split off. What would have been left over can be read off the
//! addresses: free neighbours are always merged, so the free block that served a request reached to the next block in
//! use, or to the end of its segment.
//!
//! Source: the allocator reference, §3 (rounding), §4.4 (splitting), §5.3 (merging).

use std::collections::BTreeMap;

use vramscope_model::{Action, Bytes, DeviceRecording, EventIdx, Settings};

use crate::allocator::config::SMALL_MAX;
use crate::lifetimes::{AllocId, Lifetimes};

/// In the large pool a rest of at most this many bytes stays with the block.
const LARGE_REST: u64 = 1 << 20;

/// A segment and the blocks in use in it.
struct Span {
    end: u64,
    /// Starts of the blocks that are in use or pending, sorted.
    used: Vec<u64>,
}

/// The segments at one moment, by address.
#[derive(Default)]
struct Spans(BTreeMap<u64, Span>);

impl Spans {
    fn add(&mut self, addr: u64, size: Bytes) {
        self.0.insert(addr, Span { end: addr.saturating_add(size.0), used: Vec::new() });
    }

    fn remove(&mut self, addr: u64) {
        self.0.remove(&addr);
    }

    fn at(&mut self, addr: u64) -> Option<&mut Span> {
        self.0.range_mut(..=addr).next_back().map(|(_, span)| span).filter(|span| addr < span.end)
    }

    /// Marks a block as used. Returns the distance from its start to the next used block or the segment's end.
    fn mark_used(&mut self, addr: u64) -> Option<u64> {
        let span = self.at(addr)?;
        let place = span.used.partition_point(|&a| a < addr);
        if span.used.get(place) != Some(&addr) {
            span.used.insert(place, addr);
        }
        let next = span.used.get(place + 1).copied().unwrap_or(span.end);
        Some(next - addr)
    }

    /// Marks a block as free.
    fn mark_free(&mut self, addr: u64) {
        if let Some(span) = self.at(addr)
            && let Ok(place) = span.used.binary_search(&addr)
        {
            span.used.remove(place);
        }
    }
}

/// The segments that were there when the trace begins: those at its end that it does not obtain, and those that it
/// gives back without having obtained them.
fn spans_at_start(device: &DeviceRecording) -> Spans {
    let mut spans = Spans::default();
    if let Some(state) = device.last_state() {
        for segment in &state.segments {
            spans.add(segment.addr, segment.size);
        }
    }
    for event in device.events.iter().rev() {
        match event.action {
            Action::SegmentAlloc | Action::SegmentMap => spans.remove(event.addr),
            Action::SegmentFree | Action::SegmentUnmap => spans.add(event.addr, event.size),
            _ => {}
        }
    }
    spans
}

/// The size of each block of `lifetimes`, by its number.
pub(crate) fn block_sizes(
    device: &DeviceRecording,
    lifetimes: &Lifetimes,
    settings: Option<&Settings>,
) -> Vec<u64> {
    let mut sizes: Vec<u64> =
        lifetimes.all().map(|id| Settings::round(settings, lifetimes.requested(id).0)).collect();
    // With expandable segments every rest is split off.
    let expandable = settings.is_some_and(|s| s.expandable_segments);
    let any_large = sizes.iter().any(|&n| n > SMALL_MAX);
    if expandable || !any_large {
        return sizes;
    }
    let max_split = settings.and_then(|s| s.max_split_size);

    let mut spans = spans_at_start(device);
    for id in lifetimes.all().take(lifetimes.n_before()) {
        if sizes[id.index()] > SMALL_MAX {
            spans.mark_used(lifetimes.addr(id));
        }
    }
    let events = &device.events;
    let (actions, addrs, bytes) = (events.actions(), events.addrs(), events.sizes());
    for i in 0..events.len() {
        match actions[i] {
            // A small request never touches a large segment.
            Action::Alloc => {
                let Some(AllocId(id)) = lifetimes.alloc_of(EventIdx(i as u32)) else { continue };
                let rounded = sizes[id as usize];
                if rounded <= SMALL_MAX {
                    continue;
                }
                if let Some(gap) = spans.mark_used(addrs[i]) {
                    let unsplit = max_split.is_some_and(|m| rounded >= m);
                    if gap >= rounded && (unsplit || gap - rounded <= LARGE_REST) {
                        sizes[id as usize] = gap;
                    }
                }
            }
            // Rounding in divisions may have carried a request of half the boundary over it, never a smaller one.
            Action::FreeCompleted if bytes[i] > SMALL_MAX / 2 => spans.mark_free(addrs[i]),
            Action::SegmentAlloc => spans.add(addrs[i], Bytes(bytes[i])),
            Action::SegmentFree => spans.remove(addrs[i]),
            _ => {}
        }
    }
    sizes
}
