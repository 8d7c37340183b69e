//! Where the driver puts what it hands out.
//!
//! Addresses matter only to tell equally large free blocks apart (before torch 2.13), and to compare a replay with what
//! was recorded. So the replay of a recording uses the recorded ones, and every other does as a driver was seen to do:
//!
//! Segments lie in chunks, which are multiples of 32 MiB. A request takes the newest chunk that has room, in it the smallest hole
//! that is large enough. If none has, a new chunk is put right below the others, or where ones that are gone left room. A chunk goes
//! with its last segment. Which rooms there are at the beginning, the recording tells by what was put into them.
//!
//! Source: the allocator reference, §14.8; `corpus/whatif/programs/address_rule.py`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use super::gaps::Gaps;
use super::tally::{SegmentAction, SegmentEvent};

/// Below which chunks are put unless a recording tells.
const TOP: u64 = 1 << 46;
/// No segment is as large as this, and none begins so close to the last address there is.
const LARGEST: u64 = 1 << 48;
const LAST: u64 = u64::MAX - LARGEST;
/// The unit of chunks.
const UNIT: u64 = 32 << 20;
/// What must be left of a room beside the chunk that is put there, for its alignment.
const MARGIN: u64 = UNIT - 4096;
/// How many chunks are looked through for room: more than a process has that keeps its memory.
const MOST_CHUNKS: usize = 1024;

/// Where segments are put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Direction {
    /// As a driver was seen to do.
    #[default]
    AsSeen,
    /// Each above all others.
    Upwards,
    /// Each below all others.
    Downwards,
}

/// A row of units with segments in it.
#[derive(Clone, Debug)]
struct Chunk {
    start: u64,
    end: u64,
    holes: Gaps,
    /// Whether there is something in it that is no segment, so that it stays.
    stays: bool,
}

/// The address space.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    /// Addresses that the next segments are to have.
    given: VecDeque<u64>,
    /// What was obtained and given back when recorded, as far as it was not done yet, while all goes alike.
    recorded: VecDeque<SegmentEvent>,
    direction: Direction,
    /// Chunks by age, the oldest first.
    chunks: BTreeMap<u32, Chunk>,
    /// The ages of the chunks by where they start.
    ages: BTreeMap<u64, u32>,
    n_chunks: u32,
    /// What chunks that are gone left between others.
    rooms: Gaps,
    /// Where the lowest chunk starts.
    low: u64,
}

impl Default for Addresses {
    fn default() -> Self {
        Self {
            given: VecDeque::new(),
            recorded: VecDeque::new(),
            direction: Direction::AsSeen,
            chunks: BTreeMap::new(),
            ages: BTreeMap::new(),
            n_chunks: 0,
            rooms: Gaps::default(),
            low: TOP,
        }
    }
}

impl Addresses {
    /// The address space of a process before it obtained anything, from what it obtained and gave back. If that is all of it,
    /// `from_start`, memory will lie where it lay as long as it is obtained and given back alike.
    pub(super) fn of(events: Vec<SegmentEvent>, from_start: bool) -> Self {
        let mut known = Self { low: LAST, ..Self::default() };
        let mut at_first = Gaps::default();
        let mut first_used = Vec::new();
        // The last chunk that was not where it was expected but below all others: they go on from there.
        let mut jump = None;
        let sound = |e: &&SegmentEvent| e.size > 0 && e.addr < LAST && e.size < LARGEST;
        for &SegmentEvent { action, addr, size } in events.iter().filter(sound) {
            match action {
                SegmentAction::Free => known.free(addr, size),
                SegmentAction::Alloc => {
                    let lowest = known.low;
                    if known.put(addr, size) {
                        continue;
                    }
                    let end = (addr + size).next_multiple_of(UNIT);
                    first_used.push(addr);
                    if end <= lowest {
                        at_first.add(addr, end);
                        jump = Some((addr, end));
                    } else {
                        at_first.add(addr, addr + size);
                    }
                }
                SegmentAction::Map | SegmentAction::Unmap => {}
            }
        }
        let low = jump.map_or(TOP, |(_, end)| end);
        if let Some((addr, end)) = jump {
            at_first.take_at(addr, end - addr);
        }
        let mut this = Self { low, ..Self::default() };
        // The newest is taken first.
        let first_use =
            |(start, end): (u64, u64)| first_used.iter().position(|&addr| start <= addr && addr < end);
        let mut rooms: Vec<(u64, u64)> = at_first.iter().collect();
        rooms.sort_by_key(|&room| Reverse(first_use(room)));
        for (start, end) in rooms {
            this.add_hole(start, end);
        }
        // Of a process that obtains none by `cudaMalloc`, nothing is known.
        if !events.iter().any(|event| event.action == SegmentAction::Alloc) {
            this.direction = Direction::Upwards;
        }
        if from_start {
            this.recorded = events.into();
        }
        this
    }

    /// Takes note of where a segment was really put. Returns whether there was known to be room.
    fn put(&mut self, addr: u64, size: u64) -> bool {
        let lowest = self.low;
        let expected = self.place(size);
        if expected == addr {
            return true;
        }
        self.make_room(expected, size);
        if self.take_at(addr, size) {
            return true;
        }
        self.low = lowest;
        let end = addr.saturating_add(size).next_multiple_of(UNIT);
        self.add_chunk(addr - addr % UNIT, end, addr, end);
        self.take_at(addr, size);
        false
    }

    /// Where the next segment was put, if all was obtained and given back as recorded until now and this one is, too.
    fn as_recorded(&mut self, size: u64) -> Option<u64> {
        let next = self.recorded.pop_front()?;
        if next.action != SegmentAction::Alloc || next.size != size || next.addr >= LAST || size >= LARGEST {
            self.recorded.clear();
            return None;
        }
        self.put(next.addr, size);
        Some(next.addr)
    }

    /// Compares what is given back with what was.
    fn follow_free(&mut self, addr: u64) {
        // In which order it is given back at one go does not matter.
        let together = self.recorded.iter().take_while(|event| event.action == SegmentAction::Free);
        match together.map(|event| event.addr).position(|other| other == addr) {
            Some(place) => drop(self.recorded.remove(place)),
            None => self.recorded.clear(),
        }
    }

    /// Room in a chunk of which nothing else is known.
    pub(super) fn add_hole(&mut self, start: u64, end: u64) {
        let low = self.low;
        let age = self.add_chunk(start, end, start, end);
        self.low = low;
        if let Some(chunk) = self.chunks.get_mut(&age) {
            chunk.stays = true;
        }
    }

    /// The same with new segments in another direction, whatever room there is.
    pub(super) fn towards(&self, direction: Direction) -> Self {
        match direction {
            Direction::AsSeen => self.clone(),
            Direction::Upwards | Direction::Downwards => Self { direction, ..Self::default() },
        }
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
            Direction::AsSeen => self.as_recorded(size).unwrap_or_else(|| self.place(size)),
            Direction::Upwards => {
                let addr = self.low;
                self.low = addr.saturating_add(size).saturating_add(UNIT).min(LAST);
                addr
            }
            Direction::Downwards => {
                self.low = self.low.saturating_sub(size).saturating_sub(UNIT);
                self.low
            }
        }
    }

    fn place(&mut self, size: u64) -> u64 {
        let roomy = self.chunks.values_mut().rev().take(MOST_CHUNKS);
        if let Some(addr) = roomy.into_iter().find_map(|chunk| chunk.holes.take_smallest(size)) {
            return addr;
        }
        let length = size.checked_next_multiple_of(UNIT).unwrap_or(size);
        let end = self.rooms.last_of(length.saturating_add(MARGIN)).unwrap_or(self.low);
        let start = end.saturating_sub(length) / UNIT * UNIT;
        self.add_chunk(start, start + length, start + size, start + length);
        start
    }

    /// A new chunk, with one hole. Returns its age.
    fn add_chunk(&mut self, start: u64, end: u64, hole: u64, hole_end: u64) -> u32 {
        let mut holes = Gaps::default();
        holes.add(hole, hole_end);
        let age = self.n_chunks;
        self.n_chunks += 1;
        self.rooms.cut(start, end);
        self.low = self.low.min(start);
        self.ages.insert(start, age);
        self.chunks.insert(age, Chunk { start, end, holes, stays: false });
        age
    }

    /// Takes a certain range, if there is room.
    fn take_at(&mut self, addr: u64, size: u64) -> bool {
        let Some((_, age)) = self.ages.range(..=addr).next_back() else { return false };
        self.chunks.get_mut(age).is_some_and(|chunk| chunk.holes.take_at(addr, size))
    }

    /// A segment was given back.
    pub(super) fn free(&mut self, addr: u64, size: u64) {
        if !self.recorded.is_empty() {
            self.follow_free(addr);
        }
        self.make_room(addr, size);
    }

    fn make_room(&mut self, addr: u64, size: u64) {
        let Some((_, &age)) = self.ages.range(..=addr).next_back() else { return };
        let Some(chunk) = self.chunks.get_mut(&age) else { return };
        let end = addr.saturating_add(size);
        if end > chunk.end {
            return;
        }
        chunk.holes.add(addr, end);
        let is_empty = chunk.holes.iter().eq([(chunk.start, chunk.end)]);
        if !is_empty || chunk.stays {
            return;
        }
        let (start, end) = (chunk.start, chunk.end);
        self.chunks.remove(&age);
        self.ages.remove(&start);
        self.rooms.add(start, end);
        // What lies below everything is no room between chunks.
        if start == self.low
            && let Some(end) = self.rooms.take_first()
        {
            self.low = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn segments_go_into_the_newest_chunk_with_room_or_into_a_new_one_below() {
        let mut addresses = Addresses::default();
        let mut take = |mib: u64| (TOP - addresses.take(mib * MIB)) / MIB;
        assert_eq!(take(64), 64);
        assert_eq!(take(40), 128);
        assert_eq!(take(80), 224);
        // The newest chunk with room has 16 MiB after 80, then the one before it 24 MiB after 40.
        assert_eq!(take(2), 224 - 80);
        assert_eq!(take(20), 128 - 40);
        assert_eq!(take(20), 256);
    }

    #[test]
    fn chunks_go_with_their_last_segment_and_leave_room() {
        let mut addresses = Addresses::default();
        let taken: Vec<u64> = [64, 64, 64].map(|mib| addresses.take(mib * MIB)).into();
        addresses.free(taken[1], 64 * MIB);
        // Too little beside the alignment.
        assert_eq!(addresses.take(64 * MIB), taken[2] - 64 * MIB);
        assert_eq!(addresses.take(32 * MIB), taken[1] + 32 * MIB);
        // The lowest one gone, all goes on from the one before it.
        addresses.free(taken[2] - 64 * MIB, 64 * MIB);
        assert_eq!(addresses.take(128 * MIB), taken[2] - 128 * MIB);
    }

    /// As recorded: room in the middle is filled upwards, then all goes on far below.
    #[test]
    fn a_recording_tells_which_rooms_there_were() {
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
        let mut again = Addresses::of(events.into(), false);
        for (addr, mib) in obtained {
            assert_eq!(again.take(mib * MIB), addr, "{addr:#x}");
        }
        let given_back = vec![
            event(SegmentAction::Alloc, 0x8a00_0000, 32),
            event(SegmentAction::Free, 0x8a00_0000, 32),
            event(SegmentAction::Alloc, 0x8a00_0000, 20),
        ];
        let mut again = Addresses::of(given_back, false);
        assert_eq!(again.take(20 * MIB), 0x8a00_0000);
    }

    #[test]
    fn memory_lies_where_it_lay_as_long_as_all_goes_alike() {
        let event = |action, addr: u64, mib: u64| SegmentEvent { action, addr, size: mib * MIB };
        let recorded = vec![
            event(SegmentAction::Alloc, 0x9000_0000, 20),
            event(SegmentAction::Alloc, 0x1000_0000, 20),
            event(SegmentAction::Free, 0x9000_0000, 20),
            event(SegmentAction::Alloc, 0x5000_0000, 64),
        ];
        let mut again = Addresses::of(recorded.clone(), true);
        assert_eq!([20, 20].map(|mib| again.take(mib * MIB)), [0x9000_0000, 0x1000_0000]);
        again.free(0x9000_0000, 20 * MIB);
        assert_eq!(again.take(64 * MIB), 0x5000_0000);
        // Something else is obtained: from then on by the rule.
        let mut other = Addresses::of(recorded, true);
        assert_eq!(other.take(20 * MIB), 0x9000_0000);
        other.take(22 * MIB);
        assert_ne!(other.take(20 * MIB), 0x1000_0000);
    }
}
