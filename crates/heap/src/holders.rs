//! The answer: who holds how much.

use vramscope_model::Bytes;

/// What to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Holders of less are summed into a row of their class.
    pub min_bytes: Bytes,
    /// At most this many holders; the rest is summed in the same way.
    pub max_holders: Option<usize>,
}

/// Who holds the memory of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// Bytes of all blocks.
    pub total: Bytes,
    /// The same by class; they sum to the total.
    pub classes: Classes,
    /// The same by path, class and way, most bytes first; they sum to the total. Rows that sum up what is too small to show
    /// ([`OTHER_HOLDERS`]) come last, one for each class.
    pub holders: Vec<Holder>,
    /// The part of [`Classes::cpp_held`] of which nothing is known, not even a storage.
    pub unexplained: Bytes,
    /// Each block with its holder, by address.
    pub blocks: Vec<HeldBlock>,
    /// What was wrong with the graph.
    pub warnings: Vec<String>,
}

/// Bytes by class. Each block is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    /// Parameters of modules.
    pub parameters: Bytes,
    /// Gradients of parameters.
    pub gradients: Bytes,
    /// State of optimizers.
    pub optimizer_state: Bytes,
    /// Reached only through the autograd graph.
    pub activations: Bytes,
    /// Buffers of modules.
    pub buffers: Bytes,
    /// Reached by Python references alone.
    pub user_held: Bytes,
    /// Reached by nothing that is alive: waits for Python's collector.
    pub cycle_garbage: Bytes,
    /// Given back by the program, but another stream may still use it.
    pub pending: Bytes,
    /// Held by C++ only.
    pub cpp_held: Bytes,
}

/// What memory is, or why it is still there. A block belongs to the first of these that fits: pending; garbage; what it is (parameter, gradient,
/// state, buffer); reached by Python references; reached through the autograd graph; held by C++.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// See [`Classes::parameters`].
    Parameters,
    /// See [`Classes::gradients`].
    Gradients,
    /// See [`Classes::optimizer_state`].
    OptimizerState,
    /// See [`Classes::activations`].
    Activations,
    /// See [`Classes::buffers`].
    Buffers,
    /// See [`Classes::user_held`].
    UserHeld,
    /// See [`Classes::cycle_garbage`].
    CycleGarbage,
    /// See [`Classes::pending`].
    Pending,
    /// See [`Classes::cpp_held`].
    CppHeld,
}

impl Class {
    /// All classes, in the order in which they are shown.
    pub const ALL: [Self; 9] = [
        Self::Parameters,
        Self::Gradients,
        Self::OptimizerState,
        Self::Activations,
        Self::Buffers,
        Self::UserHeld,
        Self::CycleGarbage,
        Self::Pending,
        Self::CppHeld,
    ];

    /// Its name in data: `user_held`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Gradients => "gradients",
            Self::OptimizerState => "optimizer_state",
            Self::Activations => "activations",
            Self::Buffers => "buffers",
            Self::UserHeld => "user_held",
            Self::CycleGarbage => "cycle_garbage",
            Self::Pending => "pending",
            Self::CppHeld => "cpp_held",
        }
    }
}

impl Classes {
    /// The bytes of one class.
    pub fn of(&self, class: Class) -> Bytes {
        match class {
            Class::Parameters => self.parameters,
            Class::Gradients => self.gradients,
            Class::OptimizerState => self.optimizer_state,
            Class::Activations => self.activations,
            Class::Buffers => self.buffers,
            Class::UserHeld => self.user_held,
            Class::CycleGarbage => self.cycle_garbage,
            Class::Pending => self.pending,
            Class::CppHeld => self.cpp_held,
        }
    }

    /// Adds to one class.
    pub fn add(&mut self, class: Class, bytes: Bytes) {
        *match class {
            Class::Parameters => &mut self.parameters,
            Class::Gradients => &mut self.gradients,
            Class::OptimizerState => &mut self.optimizer_state,
            Class::Activations => &mut self.activations,
            Class::Buffers => &mut self.buffers,
            Class::UserHeld => &mut self.user_held,
            Class::CycleGarbage => &mut self.cycle_garbage,
            Class::Pending => &mut self.pending,
            Class::CppHeld => &mut self.cpp_held,
        } += bytes;
    }

    /// All of them.
    pub fn sum(&self) -> Bytes {
        Class::ALL.into_iter().map(|class| self.of(class)).sum()
    }
}

/// The path of memory that the program gave back.
pub const PENDING_FREE: &str = "pending free";
/// The path of storages and tensors that C++ alone holds.
pub const CPP: &str = "C++ (no Python object)";
/// The path of blocks for which not even a storage was found.
pub const NO_STORAGE: &str = "C++ (no storage found)";
/// The path of the rows that sum up what is too small to show.
pub const OTHER_HOLDERS: &str = "… other holders";

/// Blocks that are held by the same path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The path: `__main__.losses[*]`, `unreachable: Node.me`, `C code: deque[*]`, or one of [`PENDING_FREE`], [`CPP`], [`NO_STORAGE`] and
    /// [`OTHER_HOLDERS`].
    ///
    /// References that repeat three times or more (items: four) are folded: `head.next….value` is the value of every node of a linked list
    /// but the first. A path of more than 64 references is cut, and ends in `…` too.
    pub path: String,
    /// What the memory hangs on beyond the path.
    pub through: Option<Through>,
    /// What the memory is.
    pub class: Class,
    /// Bytes of the blocks.
    pub bytes: Bytes,
    /// Bytes of all blocks, of this row or not, that would be freed if the path were given up: those that the holding objects dominate.
    ///
    /// The holding object is the last object on the path; if the path ends in `[*]`, the container; for garbage, the object to which the
    /// closing edge leads. An object is not counted if something else refers to it, too, so that it would stay, or the same by another name, as
    /// after `b = a`; of parameters and buffers, if something else has their module. Where one path stands for several objects, this is the sum over them, each block counted once, and
    /// with those of the row's blocks that only several of its objects together hold. It is less than `bytes` where others hold the same
    /// memory (see [`also_held_by`](Self::also_held_by)), and more where the objects hold other memory too.
    pub exclusive_bytes: Bytes,
    /// Who else holds the blocks, most bytes first: what has to be given up, too, before they are free.
    ///
    /// To give up a path is to cut the reference that it ends with; where that is `[*]`, everything that the container refers to. Another
    /// variable or attribute of the same module, function, class or instance with the same value is another path. A tuple
    /// cannot be changed, so what refers to the tuple is cut instead. Parameters and buffers are there for their module, so the cut is at
    /// the outermost module on the path, and neither optimizers nor the autograd graph, C code, garbage and running functions count as others:
    /// they refer to modules by design, or for a while. Of gradients, state of optimizers, garbage and what C++ holds nothing is said.
    ///
    /// Once this row's path is given up for all of its blocks, the best paths to those that are still reached are found as for the rows
    /// themselves, and given up in turn, three times. Where one of them is spelled as the row is, it is the row's own; what is found under one name
    /// again and again is given up with the list, dict or set that it is in. At most
    /// five others are named. Looked at are the sixteen largest groups of rows that others hold too, unless too much of the heap refers to
    /// them; of more than a thousand blocks, every so many are asked who else holds them. What all this leaves out is in
    /// [`held_by_more`](Self::held_by_more).
    pub also_held_by: Vec<AlsoHeldBy>,
    /// Bytes of the blocks that would still not be free if all of [`also_held_by`](Self::also_held_by) were given up, too.
    pub held_by_more: Bytes,
    /// How many blocks.
    pub blocks: u64,
    /// Equal for equal leaks, in other runs and under other versions of Python too. 12 hexadecimal digits.
    pub fingerprint: String,
    /// From the root down to the memory, for the block that stands for the others. Empty where there is nothing to show.
    pub chain: Vec<Link>,
}

/// Another path to blocks of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlsoHeldBy {
    /// The path. For parameters and buffers it is that of their module.
    pub path: String,
    /// What the memory hangs on beyond the path.
    pub through: Option<Through>,
    /// Bytes of the row's blocks that hang on what the path names, though the row's own path is given up. Where it names too many objects to
    /// find each, those that hang on the list, dict or set that they are in.
    pub bytes: Bytes,
    /// How many blocks.
    pub blocks: u64,
}

/// What memory can hang on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Through {
    /// The autograd graph of the object that the path names.
    Autograd,
}

impl Through {
    /// Its name: `autograd graph`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Autograd => "autograd graph",
        }
    }
}

/// An object of a chain, and the reference that leads on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What to show of the object: `__main__`, `list of 40`, `61 autograd nodes, the last ConvolutionBackward0`.
    pub object: String,
    /// Its type.
    pub type_name: String,
    /// The reference that leads on: `.losses`, `[*]`, `saved input`. Empty at the end.
    pub reference: String,
    /// Whether that reference may be the one too many.
    pub suspect: bool,
    /// Whether the object is meant to be alive.
    pub status: Status,
    /// Why the status is what it is; empty if unknown.
    pub reason: String,
}

/// Whether an object is meant to be alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It is.
    Alive,
    /// It should be gone.
    Dead,
    /// Nobody knows.
    Unknown,
}

impl Status {
    /// Its name: `alive`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Dead => "dead",
            Self::Unknown => "unknown",
        }
    }
}

/// A block and who holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldBlock {
    /// Where it starts.
    pub address: u64,
    /// Its bytes.
    pub bytes: Bytes,
    /// The device it is on; nothing for memory of the host.
    pub device: Option<u32>,
    /// The index of its holder in [`Holders::holders`].
    pub holder: u32,
}
