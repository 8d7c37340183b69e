//! Where the driver puts what it hands out.
//!
//! Addresses matter only to tell equally large free blocks apart (before torch 2.13), and to compare a replay with what
//! was recorded. So the replay of a recording uses the recorded ones, and every other does as the driver was seen to do:
//! what does not fit into a gap goes below everything else, in units of 32 MiB; what is left of its last unit is a gap.
//!
//! Source: the allocator reference, §14.8; `corpus/whatif/addresses.json`.

use std::collections::{BTreeMap, VecDeque};

/// Everything lies below this.
const TOP: u64 = 1 << 46;
/// Beyond these no device has addresses, and sums could not be trusted.
const LAST: u64 = 1 << 60;
const UNIT: u64 = 32 << 20;
/// What other parts of CUDA have taken of the first unit.
const TAKEN: u64 = 8 << 20;

/// The address space.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    /// Addresses that the next segments are to have.
    given: VecDeque<u64>,
    /// Where the lowest unit begins.
    low: u64,
    /// Gaps above it: their ends by their starts.
    gaps: BTreeMap<u64, u64>,
}

impl Default for Addresses {
    fn default() -> Self {
        let gaps = BTreeMap::from([(TOP - UNIT + TAKEN, TOP)]);
        Self { given: VecDeque::new(), low: TOP - UNIT, gaps }
    }
}

impl Addresses {
    /// Says which addresses the next segments are to have; those given before are forgotten.
    pub(super) fn give(&mut self, addresses: impl Iterator<Item = u64>) {
        self.given.clear();
        self.given.extend(addresses.filter(|&addr| addr < LAST));
    }

    /// Where a new segment of that size begins.
    pub(super) fn take(&mut self, size: u64) -> u64 {
        if let Some(addr) = self.given.pop_front() {
            return addr;
        }
        let gap =
            self.gaps.iter().find(|(start, end)| *end - *start >= size).map(|(&start, &end)| (start, end));
        if let Some((start, end)) = gap {
            self.gaps.remove(&start);
            if start + size < end {
                self.gaps.insert(start + size, end);
            }
            return start;
        }
        let units = size.checked_next_multiple_of(UNIT).unwrap_or(size);
        let Some(addr) = self.low.checked_sub(units) else { return 0 };
        self.low = addr;
        self.free(addr + size, units - size);
        addr
    }

    /// A segment was given back.
    pub(super) fn free(&mut self, addr: u64, size: u64) {
        if size == 0 || addr < self.low || addr >= TOP {
            return;
        }
        let (mut start, mut end) = (addr, addr + size);
        if let Some(behind) = self.gaps.remove(&end) {
            end = behind;
        }
        if let Some((&before, &its_end)) = self.gaps.range(..start).next_back()
            && its_end == start
        {
            self.gaps.remove(&before);
            start = before;
        }
        self.gaps.insert(start, end);
    }
}
