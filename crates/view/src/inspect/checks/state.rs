//! Segments and blocks by themselves.

use rustc_hash::FxHashSet;
use vramscope_model::{BlockState, Bytes, PoolId, Segment};

use super::{DeviceSubject, Outcome};
use crate::quantity::{bytes, count};

#[expect(clippy::unnecessary_wraps, reason = "the type of every check")]
pub(super) fn tiling(s: &DeviceSubject<'_>) -> Option<Outcome> {
    let segments = s.health.segments;
    if segments.count == 0 {
        return Some(Outcome::not_applicable(
            "there are no segments in the file",
            "what was held when the snapshot was taken is known from the trace alone",
        ));
    }
    let all = count(segments.count, "segment");
    let Some(first) = segments.first_untiled else {
        return Some(Outcome::good(format!("{all} without gap or overlap")));
    };
    Some(Outcome::bad(
        format!("{} of {all} with gaps or overlaps, the first at {first:#x}", segments.untiled),
        "sums of blocks do not add up to what is reserved; the file was damaged or changed",
    ))
}

pub(super) fn stated_sizes(s: &DeviceSubject<'_>) -> Option<Outcome> {
    let segments = s.health.segments;
    if segments.count == 0 {
        return None;
    }
    if !segments.states_sums {
        return Some(Outcome::not_applicable(
            "the segments do not state what is allocated in them",
            "sums are those of the blocks",
        ));
    }
    let differs = segments.allocated_differs.max(segments.active_differs);
    if differs == 0 {
        return Some(Outcome::good("allocated and active sizes equal the sums of the blocks"));
    }
    Some(Outcome::bad(
        format!("{} of {} state other sums than their blocks", differs, count(segments.count, "segment")),
        "sums here are those of the blocks; other tools may show other figures",
    ))
}

pub(super) fn pending(s: &DeviceSubject<'_>) -> Option<Outcome> {
    let blocks = s.device.segments.iter().flat_map(|s| &s.blocks);
    let (n, size) = blocks
        .filter(|b| b.state == BlockState::PendingFree)
        .fold((0, Bytes::ZERO), |(n, size), block| (n + 1, size + block.size));
    (n > 0).then(|| {
        Outcome::note(
            format!("{}, {} in all, given back", count(n, "block"), bytes(size.0)),
            "they are free as soon as the streams that use them are done, and count as freed here",
        )
    })
}

pub(super) fn expandable(s: &DeviceSubject<'_>) -> Option<Outcome> {
    let (n, size) = sum(s, |segment| segment.expandable);
    (n > 0).then(|| {
        Outcome::note(
            format!("{n} of {}, {}", count(s.health.segments.count, "segment"), bytes(size.0)),
            "each is a mapped range that grows and shrinks in place, so what is reserved changes by mapping",
        )
    })
}

pub(super) fn private_pools(s: &DeviceSubject<'_>) -> Option<Outcome> {
    let (_, size) = sum(s, |segment| segment.pool != PoolId::DEFAULT);
    let pools: FxHashSet<PoolId> =
        s.device.segments.iter().map(|s| s.pool).filter(|&p| p != PoolId::DEFAULT).collect();
    (!pools.is_empty()).then(|| {
        Outcome::note(
            format!("{}, {}", count(pools.len() as u64, "pool"), bytes(size.0)),
            "free memory in a CUDA graph's or a MemPool's own pool does not serve other allocations",
        )
    })
}

fn sum(s: &DeviceSubject<'_>, of: impl Fn(&Segment) -> bool) -> (u64, Bytes) {
    let segments = s.device.segments.iter().filter(|segment| of(segment));
    segments.fold((0, Bytes::ZERO), |(n, size), segment| (n + 1, size + segment.size))
}
