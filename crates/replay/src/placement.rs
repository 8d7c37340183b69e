//! How large the blocks were.
//!
//! Events tell the bytes that were asked for. The block is larger: rounded up, and in the large pool also by what would
//! have been left over, where that is too little to be split off. What would have been left over can be read off the
//! addresses: free neighbours are always merged, so the free block that served a request reached to the next block in
//! use, or to the end of its segment.
//!
//! Source: the allocator reference, §3 (rounding), §4.4 (splitting), §5.3 (merging).

use std::collections::BTreeMap;

use vramscope_model::{Action, DeviceRecording, EventIdx, Settings};

use crate::lifetimes::{AllocId, Lifetimes};

/// Requests of at most this many bytes (rounded) come from the small pool, where all that is left over is split off.
const SMALL_MAX: u64 = 1 << 20;
/// In the large pool a rest of at most this many bytes stays with the block.
const LARGE_REST: u64 = 1 << 20;

/// A segment and the blocks in use in it.
struct Span {
    end: u64,
    /// Starts of the blocks that are in use or pending, sorted.
    used: Vec<u64>,
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
            mark(&mut spans, lifetimes.addr(id), true);
        }
    }
    let events = &device.events;
    let (actions, addrs, bytes) = (events.actions(), events.addrs(), events.sizes());
    for i in 0..events.len() {
        match actions[i] {
            // A small request never touches a large segment. Rounding never carries one over the boundary but where
            // divisions are set, for which the rounded size is looked at.
            Action::Alloc => {
                let Some(AllocId(id)) = lifetimes.alloc_of(EventIdx(i as u32)) else { continue };
                let rounded = sizes[id as usize];
                if rounded <= SMALL_MAX {
                    continue;
                }
                if let Some(gap) = mark(&mut spans, addrs[i], true) {
                    let unsplit = max_split.is_some_and(|m| rounded >= m);
                    if gap >= rounded && (unsplit || gap - rounded <= LARGE_REST) {
                        sizes[id as usize] = gap;
                    }
                }
            }
            Action::FreeCompleted => {
                if bytes[i] > SMALL_MAX / 2 {
                    mark(&mut spans, addrs[i], false);
                }
            }
            Action::SegmentAlloc => {
                spans.insert(addrs[i], Span { end: addrs[i].saturating_add(bytes[i]), used: Vec::new() });
            }
            Action::SegmentFree => {
                spans.remove(&addrs[i]);
            }
            _ => {}
        }
    }
    sizes
}

/// The segments that were there when the trace begins: those at its end that it does not obtain, and those that it
/// gives back without having obtained them.
fn spans_at_start(device: &DeviceRecording) -> BTreeMap<u64, Span> {
    let mut spans = BTreeMap::new();
    if let Some(state) = device.last_state() {
        for segment in &state.segments {
            spans.insert(segment.addr, Span { end: segment.end(), used: Vec::new() });
        }
    }
    for event in device.events.iter().rev() {
        match event.action {
            Action::SegmentAlloc => {
                spans.remove(&event.addr);
            }
            Action::SegmentFree => {
                let end = event.addr.saturating_add(event.size.0);
                spans.insert(event.addr, Span { end, used: Vec::new() });
            }
            _ => {}
        }
    }
    spans
}

/// Marks a block as used or free. Returns the distance from its start to the next used block or the segment's end.
fn mark(spans: &mut BTreeMap<u64, Span>, addr: u64, used: bool) -> Option<u64> {
    let (_, span) = spans.range_mut(..=addr).next_back()?;
    if addr >= span.end {
        return None;
    }
    let at = span.used.partition_point(|&a| a < addr);
    let here = span.used.get(at) == Some(&addr);
    match (used, here) {
        (true, false) => span.used.insert(at, addr),
        (false, true) => {
            span.used.remove(at);
            return None;
        }
        _ => {}
    }
    let next = span.used.get(at + 1).copied().unwrap_or(span.end);
    Some(next - addr)
}
