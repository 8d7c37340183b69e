//! Who holds the memory of a process: from a graph of objects to the paths that keep its blocks alive.
//!
//! [`find_holders`] gets a [`Heap`], which is numbers only, and [`Names`], which it asks about what it shows. It answers with [`Holders`].

mod chain;
mod components;
mod cuts;
mod cycles;
mod dominators;
mod entries;
mod find;
mod fingerprint;
mod graph;
mod holders;
mod kept;
mod names;
mod node_set;
mod others;
mod part;
mod paths;
mod roles;
mod roots;
mod rows;
pub mod script;
mod search;
mod trace;
mod unowned;
mod unreached;
mod vote;

pub use find::find_holders;
pub use graph::{Block, BlockState, Edges, Heap, Role, Root, RootKind};
pub use holders::{
    AlsoHeldBy, CPP, Class, Classes, HeldBlock, Holder, Holders, Link, NO_STORAGE, OTHER_HOLDERS, Options,
    PENDING_FREE, Status, Through,
};
pub use names::{AutogradEdge, Names, Object, ObjectKind, Reference};
pub use unowned::Known;
pub use vote::holder_of;
