//! Blocks and the segments that they lie in.

use rustc_hash::FxHashSet;
use vramscope_model::BlockState;

/// A block's number in [`Blocks`]. Numbers are used again.
pub(super) type Id = u32;
/// No block.
pub(super) const NONE: Id = Id::MAX;

/// What a block is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// The program holds it.
    Held,
    /// The program gave it back, but another stream may still use it.
    Pending,
    /// It can be handed out.
    Free,
    /// There is no memory behind its addresses (in expandable segments only).
    Unmapped,
}

impl Use {
    /// The state as snapshots show it; they do not show what is not mapped.
    pub(super) fn state(self) -> Option<BlockState> {
        match self {
            Self::Held => Some(BlockState::Allocated),
            Self::Pending => Some(BlockState::PendingFree),
            Self::Free => Some(BlockState::Inactive),
            Self::Unmapped => None,
        }
    }
}

/// A block: a part of a segment.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) addr: u64,
    pub(super) size: u64,
    /// The neighbours inside the segment, by address.
    pub(super) prev: Id,
    pub(super) next: Id,
    /// The place of its segment in [`Segments`].
    pub(super) segment: u32,
    /// Which pool it belongs to.
    pub(super) pool: u32,
    pub(super) usage: Use,
    /// The number of searches in its pool when it became free.
    pub(super) free_since: u32,
    /// How many blocks were made before it.
    pub(super) created: u32,
    /// Whose it is; of no meaning where nobody holds it.
    pub(super) owner: u32,
}

impl Block {
    /// A block without neighbours.
    pub(super) fn alone(addr: u64, size: u64, segment: u32, pool: u32, usage: Use) -> Self {
        Self { addr, size, prev: NONE, next: NONE, segment, pool, usage, free_since: 0, created: 0, owner: 0 }
    }

    /// Whether it is less than its segment.
    pub(super) fn is_split(&self) -> bool {
        self.prev != NONE || self.next != NONE
    }

    /// Whether the allocator may take it: it is free or not mapped.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.usage, Use::Free | Use::Unmapped)
    }
}

/// A segment: memory from one call of `cudaMalloc`, or the addresses of an expandable segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) base: u64,
    /// The unit of mapping; 0 for a segment from `cudaMalloc`.
    pub(super) page: u64,
    /// How many segments were obtained before it.
    pub(super) registration: u32,
}

impl Segment {
    pub(super) fn is_expandable(&self) -> bool {
        self.page > 0
    }
}

/// Things with numbers that are used again once the thing is gone.
#[derive(Clone, Debug)]
pub(super) struct Slots<T> {
    items: Vec<T>,
    vacant: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { items: Vec::new(), vacant: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub(super) fn add(&mut self, item: T) -> u32 {
        if let Some(slot) = self.vacant.pop() {
            self.items[slot as usize] = item;
            return slot;
        }
        self.items.push(item);
        (self.items.len() - 1) as u32
    }

    pub(super) fn remove(&mut self, slot: u32) {
        self.vacant.push(slot);
    }

    /// All that are there, with their numbers.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (u32, &T)> {
        let vacant: FxHashSet<u32> = self.vacant.iter().copied().collect();
        (0u32..).zip(&self.items).filter(move |(slot, _)| !vacant.contains(slot))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.items.len() - self.vacant.len()
    }
}

impl<T> std::ops::Index<u32> for Slots<T> {
    type Output = T;
    #[inline]
    fn index(&self, slot: u32) -> &T {
        &self.items[slot as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slots<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.items[slot as usize]
    }
}
