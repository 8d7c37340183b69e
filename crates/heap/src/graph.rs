//! The graph of objects as numbers: what was found in a process, before anyone knows what it means.

use vramscope_model::Bytes;

/// Everything that is alive (or not) in a process. Nodes are the numbers from 0 to [`n_nodes`](Self::n_nodes); where a choice is to be made
/// between equals, the lower number wins, so older objects should have lower numbers.
///
/// Nothing in here needs to be right: numbers that lie outside are left out, and [`Holders::warnings`](crate::Holders::warnings) says so.
#[derive(Clone, Debug, Default)]
pub struct Heap {
    /// How many nodes there are. Some four bytes are needed for each.
    pub n_nodes: u32,
    /// References that were found by walking the Python heap. May end before the last node. Weak references are not among them.
    pub edges: Edges,
    /// The few that were found otherwise, as (from, to): of tensors to their storages, of storages to blocks, of the autograd graph.
    pub more_edges: Vec<(u32, u32)>,
    /// The memory that is asked about.
    pub blocks: Vec<Block>,
    /// Where paths begin.
    pub roots: Vec<Root>,
    /// Nodes with more references than were found: C code, the interpreter or a register holds them too.
    pub held_outside: Vec<u32>,
    /// What tensors (or their storages) are known to be.
    pub roles: Vec<(u32, Role)>,
    /// Nodes that are storages: they stand between tensors and blocks.
    pub storages: Vec<u32>,
    /// Nodes of the autograd graph. Every reference of the autograd graph begins or ends at one.
    pub autograd: Vec<u32>,
    /// Objects that paths go round where they can: optimizers, which refer to every parameter of the models that they serve.
    pub avoided: Vec<u32>,
    /// Containers in which parameters are meant to be: those that modules keep them in. Paths go round any other container of parameters.
    pub registries: Vec<u32>,
    /// Modules of a neural network: they are given up as a whole.
    pub modules: Vec<u32>,
    /// Objects that should be gone by now, with the reason that the user gave.
    pub dead: Vec<(u32, String)>,
    /// The tool's own objects. They are treated as if they were not there.
    pub hidden: Vec<u32>,
}

/// References from each node, side by side: those of node `n` are `targets[offsets[n]..offsets[n + 1]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edges {
    /// Where the references of each node begin, and at the end where the last ones end.
    pub offsets: Vec<u32>,
    /// What is referred to, in the order in which the object visits it.
    pub targets: Vec<u32>,
}

impl Edges {
    /// What a node refers to; nothing where the columns do not say.
    #[inline]
    pub fn of(&self, node: u32) -> &[u32] {
        let at = node as usize;
        match (self.offsets.get(at), self.offsets.get(at + 1)) {
            (Some(&start), Some(&end)) => self.targets.get(start as usize..end as usize).unwrap_or(&[]),
            _ => &[],
        }
    }
}

/// A block of a caching allocator, or host memory of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The node that stands for it; no object of Python's.
    pub node: u32,
    /// Where it starts.
    pub address: u64,
    /// Its bytes, after rounding.
    pub bytes: Bytes,
    /// The device it is on; nothing for memory of the host.
    pub device: Option<u32>,
    /// Whether it is in use or only waits.
    pub state: BlockState,
    /// When it was allocated, on any clock that grows (an event number, microseconds); nothing if it is not known.
    pub born: Option<u64>,
}

/// What a block is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// Someone holds it.
    Allocated,
    /// The program gave it back, but another stream may still use it.
    PendingFree,
}

/// A node that is alive by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Root {
    /// What it is.
    pub kind: RootKind,
    /// The node. References into it are not followed, so that no path runs through two roots.
    pub node: u32,
}

/// What a root is. The order is the order of preference: a path from a root further up is shown before any from one further down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RootKind {
    /// A module of the user's.
    OwnModule,
    /// A running frame of the user's code.
    OwnFrame,
    /// A class of the user's. It is a root only if something else keeps it alive.
    OwnClass,
    /// A suspended generator or coroutine. It is a root only if something else keeps it alive.
    Generator,
    /// A module of a library.
    LibraryModule,
    /// A running frame of a library.
    LibraryFrame,
    /// A class of a library. It is a root only if something else keeps it alive.
    LibraryClass,
    /// A `threading.local`, for one thread.
    ThreadLocal,
    /// A context variable.
    ContextVariable,
    /// The exception that a thread handles, and `sys.last_*`.
    Exception,
    /// `Out` and `_` of `IPython`.
    InteractiveOutput,
    /// What is registered with `atexit`.
    AtExit,
    /// Anything else of the interpreter: codecs, `gc.callbacks`, `gc.garbage`, hooks.
    Interpreter,
}

/// What a tensor is known to be. A block that is several of these is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// A parameter of a module.
    Parameter,
    /// The gradient of a parameter.
    Gradient,
    /// State of an optimizer.
    OptimizerState,
    /// A buffer of a module.
    Buffer,
}
