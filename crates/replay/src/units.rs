//! In which portions memory can go back to the driver, and what of a block lies in each.
//!
//! A segment goes back as a whole, once nothing in it is in use. An expandable segment gives back every page that lies in a
//! free block. So the *unit* is a segment, or a page of an expandable one: free memory is *releasable* in units of which
//! nothing is in use, and *stranded* in all others.
//!
//! Source: the allocator reference, §6.3 (unmapping), §8.2 (releasing).

use crate::domain::Portions;
use crate::ground::Stretch;

/// A segment, or a page of an expandable one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Where it starts.
    pub(crate) start: u64,
    /// Its bytes.
    pub(crate) size: u64,
}

/// A part of a block in a unit of which it does not take all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) unit: Unit,
    /// Bytes of the block in it.
    pub(crate) bytes: u64,
}

/// The unit of a segment that an address lies in.
fn unit_at(stretch: &Stretch, portions: Portions, addr: u64) -> Unit {
    if !stretch.expandable {
        return Unit { start: stretch.start, size: stretch.size() };
    }
    let page = portions.page(stretch.domain.kind).max(1);
    let start = addr - (addr - stretch.start) % page;
    Unit { start, size: page.min(stretch.end - start) }
}

/// The units that a block takes some of, but not all: its first and its last. What lies between is taken whole, so nothing
/// in it is free.
pub(crate) fn parts_of(stretch: &Stretch, portions: Portions, addr: u64, size: u64) -> [Option<Part>; 2] {
    let end = addr.saturating_add(size).min(stretch.end);
    if addr < stretch.start || addr >= end {
        return [None, None];
    }
    let part = |unit: Unit| {
        let bytes = end.min(unit.start + unit.size) - addr.max(unit.start);
        (bytes < unit.size || !stretch.expandable).then_some(Part { unit, bytes })
    };
    let (first, last) = (unit_at(stretch, portions, addr), unit_at(stretch, portions, end - 1));
    [part(first), if last == first { None } else { part(last) }]
}

/// How much of a free block `empty_cache()` returns.
pub(crate) fn releasable(stretch: &Stretch, portions: Portions, start: u64, end: u64) -> u64 {
    let (start, end) = releasable_range(stretch, portions, start, end);
    end - start
}

/// From where to where; the same twice for nothing.
pub(crate) fn releasable_range(stretch: &Stretch, portions: Portions, start: u64, end: u64) -> (u64, u64) {
    let nothing = (stretch.start, stretch.start);
    if !stretch.expandable {
        return if start == stretch.start && end == stretch.end { (start, end) } else { nothing };
    }
    let page = portions.page(stretch.domain.kind).max(1);
    let (start, end) = (start.max(stretch.start), end.min(stretch.end));
    if start >= end {
        return nothing;
    }
    let first = (start - stretch.start).div_ceil(page).saturating_mul(page);
    let last = (end - stretch.start) / page;
    // The last page may be cut short where a file contradicts itself; then it goes with the rest.
    let whole = if end == stretch.end { end - stretch.start } else { last.saturating_mul(page) };
    if first < whole { (stretch.start + first, stretch.start + whole) } else { nothing }
}

#[cfg(test)]
mod tests {
    use vramscope_model::{PoolId, PoolKind, StreamId};

    use super::*;
    use crate::domain::Domain;

    const MIB: u64 = 1 << 20;

    fn stretch(mib: u64, expandable: bool) -> Stretch {
        let domain = Domain { pool: PoolId::DEFAULT, kind: PoolKind::Large, stream: StreamId(0) };
        Stretch { start: 1000 * MIB, end: (1000 + mib) * MIB, domain, expandable }
    }

    #[test]
    fn a_block_takes_part_of_its_first_and_last_page() {
        let check = |expandable, at: u64, size: u64, want: &[(u64, u64)]| {
            let stretch = stretch(80, expandable);
            let parts = parts_of(&stretch, Portions::of(None), (1000 + at) * MIB, size * MIB);
            let found: Vec<(u64, u64)> =
                parts.iter().flatten().map(|p| (p.unit.start / MIB - 1000, p.bytes / MIB)).collect();
            assert_eq!(found, want, "{size} at {at}");
        };
        check(true, 0, 5, &[(0, 5)]);
        check(true, 15, 10, &[(0, 5), (20, 5)]);
        check(true, 15, 55, &[(0, 5), (60, 10)]);
        check(true, 20, 20, &[]);
        check(true, 20, 21, &[(40, 1)]);
        check(true, 19, 21, &[(0, 1)]);
        check(true, 70, 50, &[(60, 10)]);
        check(true, 80, 5, &[]);
        check(false, 15, 55, &[(0, 55)]);
        check(false, 0, 80, &[(0, 80)]);
    }

    #[test]
    fn whole_segments_and_whole_pages_go_back() {
        let check = |expandable, from: u64, to: u64, want: u64| {
            let stretch = stretch(80, expandable);
            let bytes = releasable(&stretch, Portions::of(None), (1000 + from) * MIB, (1000 + to) * MIB);
            assert_eq!(bytes / MIB, want, "{from} to {to}");
        };
        check(false, 0, 80, 80);
        check(false, 0, 79, 0);
        check(true, 0, 80, 80);
        check(true, 1, 80, 60);
        check(true, 0, 79, 60);
        check(true, 5, 39, 0);
        check(true, 20, 40, 20);
    }
}
