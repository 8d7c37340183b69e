//! A pool: the free blocks for small or for large requests of one stream.

use std::collections::BTreeSet;

use vramscope_model::PoolKind;

use super::block::Id;

/// A free block as it is found: smaller ones first, equally large ones by [`Tie`](super::Tie).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) size: u64,
    pub(super) tie: u64,
    pub(super) id: Id,
}

impl Key {
    /// Sorts before every block of at least that size.
    pub(super) fn at_least(size: u64) -> Self {
        Self { size, tie: 0, id: 0 }
    }
}

/// The free blocks of one kind and stream. A request never sees those of another stream.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub(super) kind: PoolKind,
    /// Free blocks, in the order in which they are found.
    pub(super) free: BTreeSet<Key>,
    /// What is not mapped in expandable segments, by address.
    pub(super) unmapped: BTreeSet<(u64, Id)>,
}

impl Pool {
    pub(super) fn new(kind: PoolKind) -> Self {
        Self { kind, free: BTreeSet::new(), unmapped: BTreeSet::new() }
    }

    /// Bytes that are free, and the largest block of them.
    pub(super) fn free_bytes(&self) -> (u64, u64) {
        let sum = self.free.iter().fold(0u64, |sum, key| sum.saturating_add(key.size));
        (sum, self.free.last().map_or(0, |key| key.size))
    }
}
