//! What was there when the recording began: segments and the blocks in them.
//!
//! Source: the allocator reference, §13.

use std::collections::BTreeMap;

use vramscope_model::{Action, DeviceRecording, EventIdx, PoolId, PoolKind, StreamId};

use super::block::{Block, Id, NONE, Use};
use super::machine::{Allocator, LARGE_REST};
use super::private::PrivatePools;
use crate::domain::Domain;
use crate::ground::{Ground, Purposes, Stretch};

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
    /// Segments and mapped ranges by address.
    stretches: Vec<Stretch>,
    /// By address.
    pub(super) blocks: Vec<StartBlock>,
    /// The lowest address ever mapped in expandable segments of a kind and stream.
    lowest: BTreeMap<(PoolKind, StreamId), u64>,
}

impl Start {
    /// The default pools at the beginning, without blocks.
    pub(super) fn of(
        device: &DeviceRecording,
        ground: &Ground,
        purposes: &Purposes,
        private: &PrivatePools,
    ) -> Self {
        let is_default = |stretch: &&Stretch| stretch.domain.pool == PoolId::DEFAULT;
        let mut this =
            Self { stretches: ground.stretches().filter(is_default).copied().collect(), ..Self::default() };
        let expandable = this.stretches.iter().filter(|stretch| stretch.expandable);
        let mut mapped: Vec<(Domain, u64)> =
            expandable.map(|stretch| (stretch.domain, stretch.start)).collect();
        for (i, event) in device.events.iter().enumerate() {
            if event.action == Action::SegmentMap && !private.has(EventIdx(i as u32)) {
                mapped.push((purposes.of(i, &event), event.addr));
            }
        }
        for (Domain { kind, stream, .. }, addr) in mapped {
            let lowest = this.lowest.entry((kind, stream)).or_insert(addr);
            *lowest = addr.min(*lowest);
        }
        this
    }

    /// Bytes reserved.
    fn reserved(&self) -> u64 {
        self.stretches.iter().fold(0u64, |sum, stretch| sum.saturating_add(stretch.size()))
    }

    /// The segments from `cudaMalloc`: address and bytes.
    pub(super) fn segments(&self) -> impl Iterator<Item = (u64, u64)> {
        self.stretches.iter().filter(|s| !s.expandable).map(|s| (s.start, s.size()))
    }

    /// Bytes that were reserved but in nobody's hands.
    pub(super) fn free_bytes(&self) -> u64 {
        self.blocks.iter().fold(self.reserved(), |left, block| left.saturating_sub(block.size))
    }

    /// What lies in a range, piece by piece.
    fn pieces(&self, stretch: &Stretch, max_split: Option<u64>, out: &mut Vec<Piece>) {
        let &Stretch { start: addr, end, domain, expandable } = stretch;
        let (first, last) =
            (self.blocks.partition_point(|b| b.addr < addr), self.blocks.partition_point(|b| b.addr < end));
        let mut at = addr;
        let mut blocks = self.blocks.get(first..last).unwrap_or_default().iter().peekable();
        while let Some(block) = blocks.next() {
            let next = blocks.peek().map_or(end, |next| next.addr);
            let room = next - block.addr;
            let mut size = block.size.min(room);
            // Too little to be split off: it stayed with the block.
            let unsplit = room - size <= LARGE_REST || max_split.is_some_and(|max| size >= max);
            if domain.kind == PoolKind::Large && !expandable && unsplit {
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
        if at < end {
            out.push(Piece { addr: at, size: end - at, usage: Use::Free, owner: 0 });
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
        let mut growing: BTreeMap<(PoolKind, StreamId), Vec<&Stretch>> = BTreeMap::new();
        let mut pieces = Vec::new();
        for stretch in &start.stretches {
            let Domain { kind, stream, .. } = stretch.domain;
            if stretch.expandable {
                growing.entry((kind, stream)).or_default().push(stretch);
                continue;
            }
            let pool = self.pool(kind, stream);
            let segment = self.register(stretch.start, 0);
            pieces.clear();
            start.pieces(stretch, max_split, &mut pieces);
            self.lay_out(pool, segment, &pieces, &mut place);
        }
        for ((kind, stream), stretches) in growing {
            let pool = self.pool(kind, stream);
            let room = self.reservation(pool);
            let lowest = start.lowest.get(&(kind, stream)).copied();
            let mut stretches = stretches.into_iter().peekable();
            while let Some(first) = stretches.peek().map(|stretch| stretch.start) {
                let base = lowest.filter(|&lowest| lowest <= first && first - lowest < room).unwrap_or(first);
                let end = base.saturating_add(room);
                let segment = self.register(base, self.page(pool));
                pieces.clear();
                let mut at = base;
                while let Some(stretch) = stretches.next_if(|stretch| stretch.end <= end || at == base) {
                    if at < stretch.start {
                        pieces.push(Piece {
                            addr: at,
                            size: stretch.start - at,
                            usage: Use::Unmapped,
                            owner: 0,
                        });
                    }
                    start.pieces(stretch, None, &mut pieces);
                    at = stretch.end;
                }
                if at < end {
                    pieces.push(Piece { addr: at, size: end - at, usage: Use::Unmapped, owner: 0 });
                }
                self.lay_out(pool, segment, &pieces, &mut place);
            }
        }
        self.tally.begin(start.reserved(), self.segments.len());
    }

    /// Makes blocks of the pieces of a segment.
    fn lay_out(&mut self, pool: u32, segment: u32, pieces: &[Piece], place: &mut impl FnMut(u32, Id)) {
        let mut prev = NONE;
        for piece in pieces {
            let &Piece { addr, size, usage, owner } = piece;
            let block = Block { prev, owner, ..Block::alone(addr, size, segment, pool, usage) };
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
