//! What was there when the recording began: segments and the blocks in them.
//!
//! Source: the allocator reference, §13.

use std::collections::BTreeMap;

use vramscope_model::{Action, DeviceRecording, EventIdx, PoolId, PoolKind, StreamId};

use super::block::{Block, Id, NONE, Use};
use super::machine::{Allocator, LARGE_REST};
use super::private::PrivatePools;

/// Segments for small requests have this size, those for large ones are larger.
const SMALL_SEGMENT: u64 = 2 << 20;

/// A segment, or a mapped range of an expandable one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) end: u64,
    kind: PoolKind,
    stream: StreamId,
    expandable: bool,
}

/// A block in one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartBlock {
    pub(super) addr: u64,
    /// Its bytes, as far as rounding tells.
    pub(super) size: u64,
    /// Whose it is.
    pub(super) owner: u32,
    pub(super) is_pending: bool,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Start {
    pub(super) ranges: BTreeMap<u64, Range>,
    /// By address.
    pub(super) blocks: Vec<StartBlock>,
    /// The lowest address ever mapped in expandable segments of a kind and stream.
    lowest: Vec<((PoolKind, StreamId), u64)>,
}

impl Start {
    /// The ranges at the beginning: those at the end, with everything taken back that happened in between.
    pub(super) fn of(device: &DeviceRecording, private: &PrivatePools) -> Self {
        let mut this = Self::default();
        let Some(state) = device.last_state().filter(|_| device.trace_reaches_state()) else { return this };
        for segment in state.segments.iter().filter(|s| s.pool == PoolId::DEFAULT) {
            let range = Range {
                end: segment.end(),
                kind: segment.kind,
                stream: segment.stream,
                expandable: segment.expandable,
            };
            this.ranges.insert(segment.addr, range);
            this.note_lowest(segment.addr, range);
        }
        for (i, event) in device.events.iter().enumerate().rev() {
            if private.has(EventIdx(i as u32)) {
                continue;
            }
            let small = event.size.0 == SMALL_SEGMENT;
            let range = Range {
                end: event.addr.saturating_add(event.size.0),
                kind: if small { PoolKind::Small } else { PoolKind::Large },
                stream: event.stream,
                expandable: matches!(event.action, Action::SegmentMap | Action::SegmentUnmap),
            };
            match event.action {
                Action::SegmentAlloc => drop(this.ranges.remove(&event.addr)),
                Action::SegmentFree => drop(this.ranges.insert(event.addr, range)),
                Action::SegmentMap => {
                    this.note_lowest(event.addr, range);
                    this.cut(event.addr, range.end);
                }
                Action::SegmentUnmap => this.join(event.addr, range),
                _ => {}
            }
        }
        this.drop_overlaps();
        this
    }

    /// What overlaps cannot be true. The first of two is believed.
    fn drop_overlaps(&mut self) {
        let mut end = 0;
        self.ranges.retain(|&addr, range| {
            let is_sound = end <= addr && addr < range.end;
            if is_sound {
                end = range.end;
            }
            is_sound
        });
    }

    fn note_lowest(&mut self, addr: u64, range: Range) {
        if !range.expandable {
            return;
        }
        let of = (range.kind, range.stream);
        match self.lowest.iter_mut().find(|(key, _)| *key == of) {
            Some((_, lowest)) => *lowest = addr.min(*lowest),
            None => self.lowest.push((of, addr)),
        }
    }

    /// Takes what lies between two addresses out of the range around them.
    fn cut(&mut self, from: u64, to: u64) {
        let Some((&start, &range)) = self.ranges.range(..=from).next_back() else { return };
        if range.end < to {
            return;
        }
        self.ranges.remove(&start);
        if start < from {
            self.ranges.insert(start, Range { end: from, ..range });
        }
        if to < range.end {
            self.ranges.insert(to, range);
        }
    }

    /// Adds a mapped range, as one with those that it touches.
    fn join(&mut self, addr: u64, mut range: Range) {
        let mut start = addr;
        if let Some((&behind, &next)) = self.ranges.range(addr..).next()
            && behind == range.end
            && next.expandable
        {
            self.ranges.remove(&behind);
            range = Range { end: next.end, ..next };
        }
        if let Some((&before, &prev)) = self.ranges.range(..addr).next_back()
            && prev.end == addr
            && prev.expandable
        {
            start = before;
            range = Range { end: range.end, ..prev };
        }
        self.ranges.insert(start, range);
    }

    /// The segments from `cudaMalloc`: address and bytes.
    pub(super) fn segments(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges
            .iter()
            .filter(|(_, range)| !range.expandable)
            .map(|(&addr, range)| (addr, range.end - addr))
    }

    /// Bytes that were reserved but in nobody's hands.
    pub(super) fn free_bytes(&self) -> u64 {
        let reserved =
            self.ranges.iter().fold(0u64, |sum, (addr, range)| sum.saturating_add(range.end - addr));
        self.blocks.iter().fold(reserved, |left, block| left.saturating_sub(block.size))
    }

    /// What lies in a range, piece by piece.
    fn pieces(&self, addr: u64, range: Range, max_split: Option<u64>, out: &mut Vec<Piece>) {
        let (first, last) = (
            self.blocks.partition_point(|b| b.addr < addr),
            self.blocks.partition_point(|b| b.addr < range.end),
        );
        let mut at = addr;
        let mut blocks = self.blocks.get(first..last).unwrap_or_default().iter().peekable();
        while let Some(block) = blocks.next() {
            let next = blocks.peek().map_or(range.end, |next| next.addr);
            let room = next - block.addr;
            let mut size = block.size.min(room);
            // Too little to be split off: it stayed with the block.
            let unsplit = room - size <= LARGE_REST || max_split.is_some_and(|max| size >= max);
            if range.kind == PoolKind::Large && !range.expandable && unsplit {
                size = room;
            }
            if size == 0 {
                continue;
            }
            if at < block.addr {
                out.push(Piece { addr: at, size: block.addr - at, usage: Use::Free, owner: 0 });
            }
            let usage = if block.is_pending { Use::Pending } else { Use::Held };
            out.push(Piece { addr: block.addr, size, usage, owner: block.owner });
            at = block.addr + size;
        }
        if at < range.end {
            out.push(Piece { addr: at, size: range.end - at, usage: Use::Free, owner: 0 });
        }
    }
}

/// A part of a segment that is in one state.
#[derive(Clone, Copy, Debug)]
struct Piece {
    addr: u64,
    size: u64,
    usage: Use,
    owner: u32,
}

impl Allocator<'_> {
    /// Takes over what was there. `place` is told each block that somebody holds. Nothing of it counts as a call.
    pub(super) fn adopt(&mut self, start: &Start, mut place: impl FnMut(u32, Id)) {
        let max_split = self.config.max_split_size;
        let mut growing: BTreeMap<(PoolKind, StreamId), Vec<(u64, Range)>> = BTreeMap::new();
        let mut pieces = Vec::new();
        for (&addr, &range) in &start.ranges {
            if range.expandable {
                growing.entry((range.kind, range.stream)).or_default().push((addr, range));
                continue;
            }
            let pool = self.pool(range.kind, range.stream);
            let segment = self.register(addr, 0);
            pieces.clear();
            start.pieces(addr, range, max_split, &mut pieces);
            self.lay_out(pool, segment, &pieces, &mut place);
        }
        for ((kind, stream), ranges) in growing {
            let pool = self.pool(kind, stream);
            let room = self.reservation(pool);
            let lowest = start.lowest.iter().find(|(of, _)| *of == (kind, stream)).map(|(_, lowest)| *lowest);
            let mut ranges = ranges.into_iter().peekable();
            while let Some(&(first, _)) = ranges.peek() {
                let base = lowest.filter(|&lowest| lowest <= first && first - lowest < room).unwrap_or(first);
                let end = base.saturating_add(room);
                let segment = self.register(base, self.page(pool));
                pieces.clear();
                let mut at = base;
                while let Some((addr, range)) = ranges.next_if(|(_, range)| range.end <= end || at == base) {
                    if at < addr {
                        pieces.push(Piece { addr: at, size: addr - at, usage: Use::Unmapped, owner: 0 });
                    }
                    start.pieces(addr, range, None, &mut pieces);
                    at = range.end;
                }
                if at < end {
                    pieces.push(Piece { addr: at, size: end - at, usage: Use::Unmapped, owner: 0 });
                }
                self.lay_out(pool, segment, &pieces, &mut place);
            }
        }
        let reserved =
            start.ranges.iter().fold(0u64, |sum, (addr, range)| sum.saturating_add(range.end - addr));
        self.tally.begin(reserved, self.segments.len());
    }

    /// Makes blocks of the pieces of a segment.
    fn lay_out(&mut self, pool: u16, segment: u32, pieces: &[Piece], place: &mut impl FnMut(u32, Id)) {
        let mut prev = NONE;
        for piece in pieces {
            let &Piece { addr, size, usage, owner } = piece;
            let block = Block {
                addr,
                size,
                prev,
                next: NONE,
                segment,
                pool,
                usage,
                free_since: 0,
                created: 0,
                owner,
            };
            let id = self.add_block(block);
            self.link_next(prev, id);
            prev = id;
            match usage {
                Use::Free => self.insert_free(id),
                Use::Unmapped => self.insert_unmapped(id),
                Use::Pending => drop(self.pending.insert(id)),
                Use::Held => self.tally.hold(size),
            }
            if matches!(usage, Use::Held | Use::Pending) {
                place(owner, id);
            }
        }
    }
}
