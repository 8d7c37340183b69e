//! Failed fits: moments when new memory was obtained although enough was free in the same pool, in pieces too small.
//!
//! Source: the allocator reference, §4 (pools by size and stream; a request is served by the smallest free block that is
//! large enough, else by a new segment).

use rustc_hash::FxHashMap;
use vramscope_model::{Action, Bytes, DeviceRecording, EventIdx, Settings, StreamId};

use crate::lifetimes::Lifetimes;

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

/// Requests of at most this many bytes (rounded) come from the small pool.
const SMALL_MAX: u64 = 1 << 20;
/// Segments of the small pool are of this size.
const SMALL_SEGMENT: u64 = 2 << 20;

/// A kind of pool (whether it is the small one) of a stream.
type Domain = (bool, StreamId);

/// Adds to a sum. Absurd sizes wrap around, as they may.
fn add(sums: &mut FxHashMap<Domain, i64>, domain: Domain, bytes: i64) {
    let sum = sums.entry(domain).or_default();
    *sum = sum.wrapping_add(bytes);
}

/// Every growth of reserved memory in the trace, whether or not the request would have fit in pieces.
pub fn growths(
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
    let mut domain_of: FxHashMap<u64, Domain> = FxHashMap::default();
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
            add(&mut reserved, (size <= SMALL_SEGMENT, events.get(i).stream), (d).wrapping_neg());
        }
    }
    for id in lifetimes.all().take(lifetimes.n_before()) {
        let domain = (is_small(lifetimes.requested(id).0), StreamId(0));
        add(&mut used, domain, lifetimes.size(id).0 as i64);
        domain_of.insert(lifetimes.addr(id), domain);
    }
    let mut out = Vec::new();
    let mut live_size: FxHashMap<u64, u64> = FxHashMap::default();
    for id in lifetimes.all().take(lifetimes.n_before()) {
        live_size.insert(lifetimes.addr(id), lifetimes.size(id).0);
    }
    for i in 0..n {
        match actions[i] {
            Action::Alloc => {
                let domain = (is_small(sizes[i]), events.get(i).stream);
                let size = lifetimes.alloc_of(EventIdx(i as u32)).map_or(0, |id| lifetimes.size(id).0);
                add(&mut used, domain, size as i64);
                domain_of.insert(addrs[i], domain);
                live_size.insert(addrs[i], size);
            }
            Action::FreeCompleted => {
                if let (Some(domain), Some(size)) = (domain_of.remove(&addrs[i]), live_size.remove(&addrs[i]))
                {
                    add(&mut used, domain, (size as i64).wrapping_neg());
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
                if let Some(request) = request {
                    out.push(FailedFit {
                        event: EventIdx(i as u32),
                        request: Bytes(request),
                        obtained: Bytes(sizes[i]),
                        free: Bytes(u64::try_from(free).unwrap_or(0)),
                    });
                }
            }
            Action::SegmentFree | Action::SegmentUnmap => {
                *reserved.entry((sizes[i] <= SMALL_SEGMENT, events.get(i).stream)).or_default() -=
                    sizes[i] as i64;
            }
            _ => {}
        }
    }
    out
}

/// Those growths for which enough was free in the same pool and stream.
pub fn failed_fits(
    device: &DeviceRecording,
    lifetimes: &Lifetimes,
    settings: Option<&Settings>,
) -> Vec<FailedFit> {
    growths(device, lifetimes, settings).into_iter().filter(|f| f.free >= f.request).collect()
}
