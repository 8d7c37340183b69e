//! A trace against the segments of the same snapshot.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use vramscope_model::{Action, Block, BlockState, Bytes, Device, Events, Segment};

use super::trace::{Slot, Slots};

/// A number of blocks and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Blocks.
    pub blocks: u64,
    /// Their bytes: of the block where there is one, else as requested.
    pub bytes: Bytes,
}

impl Difference {
    fn add(&mut self, bytes: Bytes) {
        self.blocks += 1;
        self.bytes += bytes;
    }
}

/// How the end of a trace and the segments compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Blocks that both hold for allocated.
    pub same: Difference,
    /// Of those, blocks whose requested size is another one in the trace.
    pub size_differs: u64,
    /// Blocks allocated at the trace's end that the segments do not show as allocated.
    pub only_in_trace: Difference,
    /// Allocated blocks whose last event is a free.
    pub only_in_segments: Difference,
    /// Blocks pending in one of the two only.
    pub pending_differs: u64,
    /// Allocated blocks that the trace never mentions: they are older than it.
    pub older: Difference,
    /// Of those, blocks that carry a stack all the same, so that they were allocated while recording.
    pub older_with_stack: Difference,
    /// Bytes that the trace obtained from the driver and that belong to no segment.
    pub mapped_only_in_trace: Bytes,
    /// Bytes of segments that the trace gave back to the driver.
    pub mapped_only_in_segments: Bytes,
    /// Bytes of segments that the trace never mentions: they are older than it.
    pub segments_older: Bytes,
}

impl Agreement {
    /// Blocks of which the two tell different things.
    pub fn blocks_that_differ(&self) -> u64 {
        self.size_differs + self.only_in_trace.blocks + self.only_in_segments.blocks + self.pending_differs
    }

    /// Bytes of segments of which the two tell different things.
    pub fn mapping_that_differs(&self) -> Bytes {
        self.mapped_only_in_trace + self.mapped_only_in_segments
    }
}

/// Compares what a trace leads to with what the segments show.
pub(super) fn compare(device: &Device, slots: &Slots) -> Agreement {
    let mut agreement = Agreement::default();
    let blocks: FxHashMap<u64, &Block> = device
        .segments
        .iter()
        .flat_map(|s| &s.blocks)
        .filter(|b| b.state != BlockState::Inactive)
        .map(|b| (b.addr, b))
        .collect();
    for segment in &device.segments {
        for block in segment.blocks.iter().filter(|b| b.state != BlockState::Inactive) {
            compare_block(&mut agreement, block, slots.get(&block.addr).copied(), &device.events);
        }
    }
    #[expect(clippy::iter_over_hash_type, reason = "sums do not depend on the order")]
    for (addr, &slot) in slots {
        if blocks.contains_key(addr) {
            continue;
        }
        match slot {
            Slot::Live(alloc) => agreement
                .only_in_trace
                .add(Bytes(device.events.sizes().get(alloc.index()).copied().unwrap_or(0))),
            Slot::Pending => agreement.pending_differs += 1,
            Slot::Gone => {}
        }
    }
    compare_mapping(&mut agreement, &device.events, &device.segments);
    agreement
}

fn compare_block(agreement: &mut Agreement, block: &Block, slot: Option<Slot>, events: &Events) {
    let allocated = block.state == BlockState::Allocated;
    match slot {
        Some(Slot::Live(alloc)) if allocated => {
            agreement.same.add(block.size);
            let requested = events.sizes().get(alloc.index()).map(|&size| Bytes(size));
            agreement.size_differs += u64::from(block.requested.is_some() && block.requested != requested);
        }
        Some(_) if allocated => agreement.only_in_segments.add(block.size),
        Some(Slot::Live(_) | Slot::Gone) => agreement.pending_differs += 1,
        None if allocated => {
            agreement.older.add(block.size);
            if block.stack.has_frames() {
                agreement.older_with_stack.add(block.size);
            }
        }
        // Pending in both, or given back before the trace begins.
        Some(Slot::Pending) | None => {}
    }
}

fn compare_mapping(agreement: &mut Agreement, events: &Events, segments: &[Segment]) {
    let mut ranges = Ranges::default();
    for event in events.iter() {
        let mapped = match event.action {
            Action::SegmentAlloc | Action::SegmentMap => true,
            Action::SegmentFree | Action::SegmentUnmap => false,
            _ => continue,
        };
        ranges.assign(event.addr, event.addr.saturating_add(event.size.0), mapped);
    }
    let mut mapped_in_both = Bytes::ZERO;
    for segment in segments {
        let mut known = 0;
        for (start, end, mapped) in ranges.within(segment.addr, segment.end()) {
            known += end - start;
            if mapped {
                mapped_in_both += Bytes(end - start);
            } else {
                agreement.mapped_only_in_segments += Bytes(end - start);
            }
        }
        agreement.segments_older += segment.size - Bytes(known);
    }
    agreement.mapped_only_in_trace = Bytes(ranges.mapped()) - mapped_in_both;
}

/// What last happened to each stretch of addresses.
#[derive(Default)]
struct Ranges {
    /// Start → (end, whether it was mapped); they do not overlap.
    parts: BTreeMap<u64, (u64, bool)>,
}

impl Ranges {
    fn assign(&mut self, start: u64, end: u64, mapped: bool) {
        if start >= end {
            return;
        }
        let overlapping: Vec<(u64, u64, bool)> = self.overlapping(start, end).collect();
        for (s, e, was) in overlapping {
            self.parts.remove(&s);
            if s < start {
                self.parts.insert(s, (start, was));
            }
            if e > end {
                self.parts.insert(end, (e, was));
            }
        }
        self.parts.insert(start, (end, mapped));
    }

    fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64, bool)> {
        let first = self.parts.range(..start).next_back().filter(move |&(_, &(e, _))| e > start);
        first.into_iter().chain(self.parts.range(start..end)).map(|(&s, &(e, mapped))| (s, e, mapped))
    }

    /// The stretches inside a range, cut at its ends.
    fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64, bool)> {
        self.overlapping(start, end).map(move |(s, e, mapped)| (s.max(start), e.min(end), mapped))
    }

    /// Bytes that were mapped last.
    fn mapped(&self) -> u64 {
        self.parts.iter().filter(|&(_, &(_, mapped))| mapped).map(|(&s, &(e, _))| e - s).sum()
    }
}

#[cfg(test)]
mod tests {
    use vramscope_model::{Symbols, script};

    use super::super::check_device;
    use super::*;

    fn device(text: &str) -> Device {
        script::snapshot(&mut Symbols::default(), text).unwrap().devices.remove(0)
    }

    #[test]
    fn each_kind_of_difference_is_counted() {
        let mut d =
            device("segment 8KiB\nalloc a 512\nalloc b 700\nalloc c 512\nalloc d 512\nfree c\nrequest d");
        let compared = |d: &Device| check_device(d).agreement.unwrap();
        assert_eq!(compared(&d).blocks_that_differ(), 0);

        d.segments[0].blocks[0].state = BlockState::Inactive;
        assert_eq!(compared(&d).only_in_trace, Difference { blocks: 1, bytes: Bytes(512) });
        d.segments[0].blocks[1].requested = Some(Bytes(600));
        assert_eq!(compared(&d).size_differs, 1);
        d.segments[0].blocks[2].state = BlockState::Allocated;
        assert_eq!(compared(&d).only_in_segments, Difference { blocks: 1, bytes: Bytes(512) });
        d.segments[0].blocks[3].state = BlockState::Inactive;
        assert_eq!(compared(&d).pending_differs, 1);
        assert_eq!(compared(&d).blocks_that_differ(), 4);
    }

    #[test]
    fn mapped_ranges_are_compared_with_segments() {
        let mut d = device("segment 1024\nalloc a 512\nalloc b 512");
        let compared = |d: &Device| check_device(d).agreement.unwrap();
        assert_eq!(compared(&d).mapping_that_differs(), Bytes::ZERO);
        d.events.set(0, vramscope_model::Event { size: Bytes(4096), ..d.events.get(0) });
        assert_eq!(compared(&d).mapped_only_in_trace, Bytes(3072));
        d.events.set(0, vramscope_model::Event { action: Action::SegmentFree, ..d.events.get(0) });
        assert_eq!(compared(&d).mapped_only_in_segments, Bytes(1024));
        d.events.set(0, vramscope_model::Event { addr: 0, ..d.events.get(0) });
        assert_eq!(compared(&d).segments_older, Bytes(1024));
    }

    #[test]
    fn the_last_word_on_an_address_counts() {
        let mut ranges = Ranges::default();
        ranges.assign(0, 100, true);
        ranges.assign(40, 60, false);
        ranges.assign(50, 70, true);
        ranges.assign(7, 7, false);
        let all: Vec<_> = ranges.within(0, 1000).collect();
        assert_eq!(all, [(0, 40, true), (40, 50, false), (50, 70, true), (70, 100, true)]);
        assert_eq!(ranges.within(45, 65).collect::<Vec<_>>(), [(45, 50, false), (50, 65, true)]);
        assert_eq!(ranges.mapped(), 90);
    }
}
