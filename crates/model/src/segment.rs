//! The allocator's state when a snapshot was taken.

use crate::symbols::{PoolId, StackId, StreamId};
use crate::units::Bytes;

/// Which of the two kinds of pool a segment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PoolKind {
    /// For blocks of up to 1 MiB.
    Small,
    /// For larger blocks.
    Large,
}

/// What a block is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockState {
    /// The program holds it.
    Allocated,
    /// The program gave it back, but another stream may still use it.
    PendingFree,
    /// Free for another request.
    Inactive,
}

/// A block: a part of a segment that is handed out, pending or free as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it starts.
    pub addr: u64,
    /// Its bytes, after rounding.
    pub size: Bytes,
    /// The bytes that were asked for; absent in snapshots made before torch 2.0.
    pub requested: Option<Bytes>,
    /// What it is doing.
    pub state: BlockState,
    /// Where it was allocated.
    pub stack: StackId,
}

/// A segment: memory obtained from the driver at one go, or a mapped range of an expandable segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it starts.
    pub addr: u64,
    /// Its bytes.
    pub size: Bytes,
    /// Bytes of its allocated blocks, as the file states them.
    pub stated_allocated: Bytes,
    /// Bytes of its allocated and pending blocks, as the file states them.
    pub stated_active: Bytes,
    /// The stream that it serves.
    pub stream: StreamId,
    /// The kind of pool that it belongs to.
    pub kind: PoolKind,
    /// The pool that it belongs to.
    pub pool: PoolId,
    /// Whether it can grow in place.
    pub expandable: bool,
    /// Where it was obtained.
    pub stack: StackId,
    /// Its blocks by address.
    pub blocks: Vec<Block>,
}

impl Segment {
    /// Bytes of the blocks in a state.
    pub fn bytes_in(&self, state: BlockState) -> Bytes {
        self.blocks.iter().filter(|b| b.state == state).map(|b| b.size).sum()
    }

    /// The address just behind it.
    pub fn end(&self) -> u64 {
        self.addr.saturating_add(self.size.0)
    }

    /// Whether the blocks lie side by side from its start to its end, without gap or overlap.
    pub fn is_tiled(&self) -> bool {
        let mut at = self.addr;
        for block in &self.blocks {
            if block.addr != at {
                return false;
            }
            match at.checked_add(block.size.0) {
                Some(next) => at = next,
                None => return false,
            }
        }
        at == self.end()
    }
}
