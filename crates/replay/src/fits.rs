//! Failed fits: moments when new memory was obtained although enough was free in the same pool, in pieces too small.
//!
//! Source: the allocator reference, §4 (pools by size and stream; a request is served by the smallest free block that is
//! large enough, else by a new segment).

use rustc_hash::FxHashMap;
use vramscope_model::{Action, Bytes, DeviceRecording, EventIdx, Settings, StreamId};

use crate::lifetimes::Lifetimes;
use crate::placement::SMALL_MAX;

/// A moment when a request did not fit into what was free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedFit {
    /// The event that obtained new memory.
    pub event: EventIdx,
    /// What was asked for, rounded.
    pub request: Bytes,
    /// What was obtained for it.
    pub obtained: Bytes,
    /// What was free in the same pool and stream.
    pub free: Bytes,
}

/// Segments of the small pool are of this size.
const SMALL_SEGMENT: u64 = 2 << 20;

/// A kind of pool (whether it is the small one) of a stream.
type Domain = (bool, StreamId);

/// Adds to a sum. Absurd sizes wrap around, as they may.
fn add(sums: &mut FxHashMap<Domain, i64>, domain: Domain, bytes: i64) {
    let sum = sums.entry(domain).or_default();
    *sum = sum.wrapping_add(bytes);
}

/// Every growth of reserved memory for which enough was free in the same pool and stream.
pub fn failed_fits(
    device: &DeviceRecording,
    lifetimes: &Lifetimes,
    settings: Option<&Settings>,
) -> Vec<FailedFit> {
    let events = &device.events;
    let (actions, addrs, sizes) = (events.actions(), events.addrs(), events.sizes());
    let n = events.len();
    let rounded = |size: u64| Settings::round(settings, size);
    let is_small = |size: u64| rounded(size) <= SMALL_MAX;

    // What was there at the beginning: what is there at the end, less what the trace adds.
    let mut reserved: FxHashMap<Domain, i64> = FxHashMap::default();
    let mut used: FxHashMap<Domain, i64> = FxHashMap::default();
    // Where each block in use was taken from, and its size.
    let mut in_use: FxHashMap<u64, (Domain, i64)> = FxHashMap::default();
    if let Some(state) = device.last_state() {
        for segment in &state.segments {
            let domain = (segment.size.0 <= SMALL_SEGMENT, segment.stream);
            add(&mut reserved, domain, segment.size.0 as i64);
        }
    }
    let delta = |i: usize| match actions[i] {
        Action::SegmentAlloc | Action::SegmentMap => sizes[i] as i64,
        Action::SegmentFree | Action::SegmentUnmap => (sizes[i] as i64).wrapping_neg(),
        _ => 0,
    };
    for (i, &size) in sizes.iter().enumerate() {
        let d = delta(i);
        if d != 0 {
            add(&mut reserved, (size <= SMALL_SEGMENT, events.get(i).stream), d.wrapping_neg());
        }
    }
    for id in lifetimes.all().take(lifetimes.n_before()) {
        let domain = (is_small(lifetimes.requested(id).0), StreamId(0));
        let size = lifetimes.size(id).0 as i64;
        add(&mut used, domain, size);
        in_use.insert(lifetimes.addr(id), (domain, size));
    }
    let mut out = Vec::new();
    for i in 0..n {
        match actions[i] {
            Action::Alloc => {
                let domain = (is_small(sizes[i]), events.get(i).stream);
                let size = lifetimes.alloc_of(EventIdx(i as u32)).map_or(0, |id| lifetimes.size(id).0 as i64);
                add(&mut used, domain, size);
                in_use.insert(addrs[i], (domain, size));
            }
            Action::FreeCompleted => {
                if let Some((domain, size)) = in_use.remove(&addrs[i]) {
                    add(&mut used, domain, size.wrapping_neg());
                }
            }
            Action::SegmentAlloc | Action::SegmentMap => {
                let domain = (sizes[i] <= SMALL_SEGMENT, events.get(i).stream);
                let request = (i + 1..n.min(i + 8))
                    .find(|&j| {
                        actions[j] == Action::Alloc && (is_small(sizes[j]), events.get(j).stream) == domain
                    })
                    .map(|j| rounded(sizes[j]));
                let free = reserved
                    .get(&domain)
                    .copied()
                    .unwrap_or(0)
                    .wrapping_sub(used.get(&domain).copied().unwrap_or(0));
                add(&mut reserved, domain, sizes[i] as i64);
                let free = u64::try_from(free).unwrap_or(0);
                if let Some(request) = request.filter(|&r| free >= r) {
                    out.push(FailedFit {
                        event: EventIdx(i as u32),
                        request: Bytes(request),
                        obtained: Bytes(sizes[i]),
                        free: Bytes(free),
                    });
                }
            }
            Action::SegmentFree | Action::SegmentUnmap => {
                let domain = (sizes[i] <= SMALL_SEGMENT, events.get(i).stream);
                add(&mut reserved, domain, (sizes[i] as i64).wrapping_neg());
            }
            _ => {}
        }
    }
    out
}
