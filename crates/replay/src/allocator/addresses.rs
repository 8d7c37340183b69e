//! Where the driver puts what it hands out.
//!
//! Addresses matter only to tell equally large free blocks apart (before torch 2.13), and to compare a replay with what
//! was recorded. So the replay of a recording uses the recorded ones, and every other does as the driver was seen to do:
//! memory goes into the lowest gap that it fits in, else below everything else, in units of 32 MiB; what is left of its
//! last unit is a gap. Which gaps there are at the beginning, a recording tells by what was put into them.
//!
//! Source: the allocator reference, §14.8; `corpus/whatif/addresses.json`.

use std::collections::{BTreeMap, VecDeque};

use super::tally::{SegmentAction, SegmentEvent};

/// Where the lowest unit begins unless a recording tells.
const TOP: u64 = 1 << 46;
/// No segment is as large as this, and none begins so close to the last address there is.
const LARGEST: u64 = 1 << 48;
const LAST: u64 = u64::MAX - LARGEST;
const UNIT: u64 = 32 << 20;

/// Where segments are put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Direction {
    /// As the driver was seen to do.
    #[default]
    AsSeen,
    /// Each above all others.
    Upwards,
    /// Each below all others.
    Downwards,
}

/// The address space.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    /// Addresses that the next segments are to have.
    given: VecDeque<u64>,
    /// Where the lowest unit begins.
    low: u64,
    gaps: Gaps,
    direction: Direction,
}

impl Default for Addresses {
    fn default() -> Self {
        Self { given: VecDeque::new(), low: TOP, gaps: Gaps::default(), direction: Direction::AsSeen }
    }
}

impl Addresses {
    /// The address space of a process before it obtained anything, from what it obtained and gave back.
    pub(super) fn of(events: impl Iterator<Item = SegmentEvent>) -> Self {
        let mut known = Self { low: LAST, ..Self::default() };
        let mut at_first = Gaps::default();
        // The last unit that did not follow below the one before it: all others go on from there.
        let mut jump = None;
        for event in events.filter(|e| e.size > 0 && e.addr < LAST && e.size < LARGEST) {
            let SegmentEvent { action, addr, size } = event;
            match action {
                SegmentAction::Free => known.free(addr, size),
                SegmentAction::Alloc if known.gaps.take_at(addr, size) => {}
                SegmentAction::Alloc => {
                    let end = (addr + size).next_multiple_of(UNIT);
                    if addr > known.low {
                        // Where nothing was expected to be free.
                        at_first.add(addr, addr + size);
                        continue;
                    }
                    if end != known.low {
                        at_first.add(addr, end);
                        jump = Some((addr, end));
                    }
                    known.low = addr - addr % UNIT;
                    known.gaps.add(addr + size, end);
                }
                SegmentAction::Map | SegmentAction::Unmap => {}
            }
        }
        let low = jump.map_or(TOP, |(_, end)| end);
        if let Some((addr, end)) = jump {
            at_first.take_at(addr, end - addr);
        }
        Self { low, gaps: at_first, ..Self::default() }
    }

    /// The same with new segments in another direction, whatever gaps there are.
    pub(super) fn towards(&self, direction: Direction) -> Self {
        let low = if direction == Direction::AsSeen { self.low } else { TOP };
        Self { direction, low, ..self.clone() }
    }

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
        match self.direction {
            Direction::AsSeen => {}
            Direction::Upwards => {
                let addr = self.low;
                self.low = addr.saturating_add(size).saturating_add(UNIT);
                return addr;
            }
            Direction::Downwards => {
                self.low = self.low.saturating_sub(size).saturating_sub(UNIT);
                return self.low;
            }
        }
        if let Some(addr) = self.gaps.take_lowest(size) {
            return addr;
        }
        let units = size.checked_next_multiple_of(UNIT).unwrap_or(size);
        let Some(addr) = self.low.checked_sub(units) else { return 0 };
        self.low = addr;
        self.gaps.add(addr + size, addr + units);
        addr
    }

    /// A segment was given back.
    pub(super) fn free(&mut self, addr: u64, size: u64) {
        if addr < LAST {
            self.gaps.add(addr, addr.saturating_add(size));
        }
    }
}

/// Ranges of addresses that are free: their ends by their starts. None touch.
#[derive(Clone, Debug, Default)]
struct Gaps(BTreeMap<u64, u64>);

impl Gaps {
    fn add(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        while let Some((&before, &its_end)) = self.0.range(..=end).next_back()
            && its_end >= start
        {
            self.0.remove(&before);
            (start, end) = (start.min(before), end.max(its_end));
        }
        self.0.insert(start, end);
    }

    /// Takes a range out if all of it is free.
    fn take_at(&mut self, addr: u64, size: u64) -> bool {
        let Some((&start, &end)) = self.0.range(..=addr).next_back() else { return false };
        let behind = addr.saturating_add(size);
        if end < behind {
            return false;
        }
        self.0.remove(&start);
        if start < addr {
            self.0.insert(start, addr);
        }
        if behind < end {
            self.0.insert(behind, end);
        }
        true
    }

    fn take_lowest(&mut self, size: u64) -> Option<u64> {
        let addr = self.0.iter().find(|(start, end)| *end - *start >= size).map(|(&start, _)| start)?;
        self.take_at(addr, size);
        Some(addr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn memory_goes_into_gaps_and_then_downwards_in_units() {
        let mut addresses = Addresses::default();
        let mut take = |mib: u64| (TOP - addresses.take(mib * MIB)) / MIB;
        assert_eq!(take(64), 64);
        assert_eq!(take(40), 128);
        assert_eq!(take(80), 224);
        // The lowest gap is what 80 MiB left of three units, then what 40 left of two.
        assert_eq!(take(2), 224 - 80);
        assert_eq!(take(20), 128 - 40);
        assert_eq!(take(20), 256);
    }

    /// As recorded: a gap in the middle is filled upwards, then all goes on far below.
    #[test]
    fn a_recording_tells_which_gaps_there_were() {
        let event = |action, addr: u64, mib: u64| SegmentEvent { action, addr, size: mib * MIB };
        let obtained = [
            (0x8a00_0000, 32),
            (0x8c00_0000, 20),
            (0x8d40_0000, 20),
            (0x4800_0000, 28),
            (0x4600_0000, 30),
            (0x4200_0000, 36),
        ];
        let events = obtained.map(|(addr, mib)| event(SegmentAction::Alloc, addr, mib));
        let mut again = Addresses::of(events.into_iter());
        for (addr, mib) in obtained {
            assert_eq!(again.take(mib * MIB), addr, "{addr:#x}");
        }
        let given_back =
            [event(SegmentAction::Alloc, 0x8a00_0000, 32), event(SegmentAction::Free, 0x8a00_0000, 32)];
        let mut again =
            Addresses::of(given_back.into_iter().chain([event(SegmentAction::Alloc, 0x8a00_0000, 20)]));
        assert_eq!(again.take(20 * MIB), 0x8a00_0000);
    }
}
