//! What was free at a moment, by the requests that it could serve.

use std::collections::BTreeMap;

use vramscope_model::{Bytes, PoolId};

use crate::domain::{Domain, Portions};
use crate::layout::Layout;
use crate::units::{releasable, releasable_range};

/// Bytes of one pool, kind and stream at one moment: `reserved = held + pending + releasable + stranded`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Free {
    /// Segments, or mapped ranges of expandable ones.
    pub segments: u64,
    /// Obtained from the driver.
    pub reserved: Bytes,
    /// In blocks that the program holds.
    pub held: Bytes,
    /// In blocks given back that another stream may still use.
    pub pending: Bytes,
    /// Free, and `empty_cache()` would return it: whole segments, and whole pages of expandable ones. (Of private pools
    /// only once their graphs are gone.)
    pub releasable: Bytes,
    /// Free, in segments and pages of which something is in use.
    pub stranded: Bytes,
    /// The largest free block. A larger request needs new memory.
    pub largest: Bytes,
}

impl Free {
    /// All free bytes.
    pub fn free(&self) -> Bytes {
        self.releasable + self.stranded
    }
}

impl Layout {
    /// What is free in each pool, of each kind, on each stream.
    pub fn free(&self, portions: Portions) -> BTreeMap<Domain, Free> {
        let mut pools: BTreeMap<Domain, Free> = BTreeMap::new();
        for stretch in self.stretches() {
            let sums = pools.entry(stretch.domain).or_default();
            sums.segments += 1;
            sums.reserved += Bytes(stretch.size());
            for block in self.blocks_in(stretch) {
                // A block that reaches beyond its segment (in damaged files) counts as far as the segment goes.
                let inside = Bytes(block.end().min(stretch.end) - block.addr);
                *if block.pending { &mut sums.pending } else { &mut sums.held } += inside;
            }
            for gap in self.gaps_in(stretch) {
                let whole = releasable(stretch, portions, gap.start, gap.end);
                sums.releasable += Bytes(whole);
                sums.stranded += Bytes(gap.size() - whole);
                sums.largest = sums.largest.max(Bytes(gap.size()));
            }
        }
        pools
    }

    /// Gives back to the driver what `empty_cache()` does: what is releasable of the default pool, for private ones keep
    /// theirs. Returns how many bytes.
    pub fn give_back(&mut self, portions: Portions) -> Bytes {
        let mut ranges = Vec::new();
        for stretch in self.stretches().filter(|s| s.domain.pool == PoolId::DEFAULT) {
            for gap in self.gaps_in(stretch) {
                let (start, end) = releasable_range(stretch, portions, gap.start, gap.end);
                if start < end {
                    ranges.push((start, end, stretch.expandable));
                }
            }
        }
        let gone = ranges.into_iter().filter_map(|(start, end, expandable)| {
            if expandable { self.ground.cut(start, end) } else { self.ground.remove(start) }
        });
        gone.map(|stretch| Bytes(stretch.size())).sum()
    }
}

/// The sum over several pools; the largest free block of any.
pub fn total<'a>(pools: impl IntoIterator<Item = &'a Free>) -> Free {
    pools.into_iter().fold(Free::default(), |sum, one| Free {
        segments: sum.segments + one.segments,
        reserved: sum.reserved + one.reserved,
        held: sum.held + one.held,
        pending: sum.pending + one.pending,
        releasable: sum.releasable + one.releasable,
        stranded: sum.stranded + one.stranded,
        largest: sum.largest.max(one.largest),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::drawing::{DOMAIN, MIB, layout};

    #[test]
    fn what_is_free_goes_back_or_is_stranded() {
        let check = |drawing: &str, releasable: u64, stranded: u64, largest: u64| {
            let free = layout(drawing).free(Portions::of(None));
            let one = free[&DOMAIN];
            assert_eq!(one.releasable.0 / MIB, releasable, "releasable in {drawing}");
            assert_eq!(one.stranded.0 / MIB, stranded, "stranded in {drawing}");
            assert_eq!(one.largest.0 / MIB, largest, "largest in {drawing}");
            assert_eq!(one.reserved, one.held + one.free(), "{drawing}");
            let mut left = layout(drawing);
            assert_eq!(left.give_back(Portions::of(None)), one.releasable, "{drawing}");
            let left = left.free(Portions::of(None)).remove(&DOMAIN).unwrap_or_default();
            let same = (left.releasable, left.stranded, left.held);
            assert_eq!(same, (Bytes::ZERO, one.stranded, one.held), "{drawing}");
        };
        check("a..b .....", 5, 2, 5);
        check("aaaa", 0, 0, 0);
        // Of an expandable segment the second page is wholly free.
        check("~aa.........................................", 20 + 3, 18, 41);
        check("~aa.......................................bb", 20, 19, 39);
    }
}
