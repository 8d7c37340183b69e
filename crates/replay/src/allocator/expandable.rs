//! Segments that grow in place: memory is mapped behind addresses that were reserved beforehand.
//!
//! Source: the allocator reference, §6.

use vramscope_model::{PoolKind, StreamId};

use super::block::{Block, Id, NONE, Use};
use super::config::SMALL_SEGMENT;
use super::machine::Allocator;
use super::tally::{SegmentAction, SegmentEvent};

/// What is reserved where the device's memory is not known. Addresses cost nothing.
const LARGE_RESERVATION: u64 = 2 << 40;
/// No device has as many addresses as this.
const LARGEST_RESERVATION: u64 = 1 << 48;

impl Allocator<'_> {
    /// Maps what is missing for a request behind the lowest place where it fits. Returns a block of at least that size, in no
    /// pool.
    pub(super) fn grow_in_place(&mut self, pool: u32, size: u64) -> Option<Id> {
        let mut block = match self.place_to_grow(pool, size) {
            Some(block) => block,
            None => self.reserve_addresses(pool, size)?,
        };
        if self.blocks[block].usage == Use::Unmapped && !self.map(block, size) {
            return None;
        }
        while self.blocks[block].size < size {
            let Block { size: so_far, next, .. } = self.blocks[block];
            // What was mapped so far stays, free, even if this fails.
            if next == NONE || !self.map(next, size - so_far) {
                return None;
            }
            block = next;
        }
        self.remove_free(block);
        Some(block)
    }

    /// Maps for a request as far as the driver has so many bytes left. What was mapped stays free.
    pub(super) fn grow_up_to(&mut self, request: u64, stream: StreamId, left: u64) {
        let Some(size) = self.config.round(request) else { return };
        if !self.config.expandable_segments {
            return;
        }
        let pool = self.pool_for(size, stream);
        let capacity = self.limits.capacity.replace(self.tally.total_reserved().saturating_add(left));
        if let Some(block) = self.grow_in_place(pool, size) {
            self.make_free(block);
        }
        self.limits.capacity = capacity;
    }

    /// The first of a row of idle neighbours that holds a request, at the lowest address where something can be mapped.
    fn place_to_grow(&self, pool: u32, size: u64) -> Option<Id> {
        self.pools[pool as usize].unmapped.iter().find_map(|&(_, unmapped)| {
            let prev = self.blocks[unmapped].prev;
            let first = if prev != NONE && self.blocks[prev].is_idle() { prev } else { unmapped };
            let (mut at, mut room) = (first, 0u64);
            while room < size && at != NONE && self.blocks[at].is_idle() {
                room = room.saturating_add(self.blocks[at].size);
                at = self.blocks[at].next;
            }
            (room >= size).then_some(first)
        })
    }

    /// The unit of mapping of a pool.
    pub(super) fn page(&self, pool: u32) -> u64 {
        match self.pools[pool as usize].kind {
            PoolKind::Small => SMALL_SEGMENT,
            PoolKind::Large => self.config.large_segment.max(1),
        }
    }

    /// Bytes of addresses in one reservation of a pool.
    pub(super) fn reservation(&self, pool: u32) -> u64 {
        let wanted = self.limits.total.map_or(LARGE_RESERVATION, |total| total.saturating_add(total / 8));
        let page = self.page(pool);
        wanted.max(page).checked_next_multiple_of(page).unwrap_or(page)
    }

    /// A new expandable segment, with nothing mapped, as one block.
    fn reserve_addresses(&mut self, pool: u32, size: u64) -> Option<Id> {
        let room = self.reservation(pool);
        if size > room || room > LARGEST_RESERVATION {
            return None;
        }
        let base = self.addresses.take(room);
        Some(self.add_reservation(pool, base, room))
    }

    /// An expandable segment at an address, with nothing mapped, as one block.
    pub(super) fn add_reservation(&mut self, pool: u32, base: u64, size: u64) -> Id {
        let segment = self.register(base, self.page(pool));
        let block = self.add_block(Block::alone(base, size, segment, pool, Use::Unmapped));
        self.insert_unmapped(block);
        block
    }

    /// Maps the front of an unmapped block, at least `size` bytes of it or all. The block becomes free, one with its free
    /// neighbours.
    fn map(&mut self, block: Id, size: u64) -> bool {
        let Block { addr, size: whole, next, segment, pool, .. } = self.blocks[block];
        let page = self.segments[segment].page.max(1);
        let bytes = size.min(whole).checked_next_multiple_of(page).unwrap_or(whole).min(whole);
        if !self.driver_has(bytes) {
            return false;
        }
        self.remove_unmapped(block);
        self.blocks[block].usage = Use::Free;
        if bytes < whole {
            let rest = self.add_block(Block {
                prev: block,
                next,
                ..Block::alone(addr + bytes, whole - bytes, segment, pool, Use::Unmapped)
            });
            if next != NONE {
                self.blocks[next].prev = rest;
            }
            let mapped = &mut self.blocks[block];
            mapped.next = rest;
            mapped.size = bytes;
            self.insert_unmapped(rest);
        }
        self.merge_with_neighbours(block);
        self.insert_free(block);
        let n_segments = self.segments.len();
        self.tally.segment(SegmentEvent { action: SegmentAction::Map, addr, size: bytes }, n_segments);
        true
    }

    /// Where the whole pages inside a block begin, and their bytes.
    pub(super) fn whole_pages(&self, block: Id) -> Option<(u64, u64)> {
        let Block { addr, size, segment, .. } = self.blocks[block];
        let (base, page) = (self.segments[segment].base, self.segments[segment].page.max(1));
        let first = addr.saturating_sub(base).div_ceil(page);
        let last = (addr.saturating_sub(base) + size) / page;
        (first < last).then(|| (base + first * page, (last - first) * page))
    }

    /// Unmaps the whole pages inside a free block. What is left of it stays free.
    pub(super) fn unmap(&mut self, block: Id) {
        if let Some((start, bytes)) = self.whole_pages(block) {
            self.unmap_pages(block, start, bytes);
        }
    }

    /// Unmaps a part of a free block.
    pub(super) fn unmap_pages(&mut self, block: Id, start: u64, bytes: u64) {
        let Block { addr, size, prev, next, segment, pool, free_since, .. } = self.blocks[block];
        self.remove_free(block);
        let (before, behind) = (start - addr, addr + size - start - bytes);
        let rest = |addr, size, prev, next| Block {
            prev,
            next,
            free_since,
            ..Block::alone(addr, size, segment, pool, Use::Free)
        };
        if before > 0 {
            let front = self.add_block(rest(addr, before, prev, block));
            self.link_next(prev, front);
            self.blocks[block].prev = front;
            self.insert_free(front);
        }
        if behind > 0 {
            let back = self.add_block(rest(start + bytes, behind, block, next));
            if next != NONE {
                self.blocks[next].prev = back;
            }
            self.blocks[block].next = back;
            self.insert_free(back);
        }
        let this = &mut self.blocks[block];
        this.addr = start;
        this.size = bytes;
        this.usage = Use::Unmapped;
        self.merge_with_neighbours(block);
        if self.blocks[block].is_split() {
            self.insert_unmapped(block);
        } else {
            // Nothing of the segment is mapped: its addresses are given back, too.
            self.blocks.remove(block);
            self.segments.remove(segment);
        }
        self.was_waited_for = true;
        let n_segments = self.segments.len();
        self.tally
            .segment(SegmentEvent { action: SegmentAction::Unmap, addr: start, size: bytes }, n_segments);
    }
}
