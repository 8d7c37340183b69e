//! What torch's C++ objects hold, as plain numbers: tensors, storages, functions of the backward pass, and who refers to whom.

use std::ops::Range;

use super::class::{Class, ClassId};

/// One of the things that were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// An index into [`Graph::tensors`].
    Tensor(u32),
    /// An index into [`Graph::storages`].
    Storage(u32),
    /// An index into [`Graph::functions`].
    Function(u32),
    /// A Python object, by the number that the heap walk gave it.
    Object(u32),
}

/// A `TensorImpl`.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) address: usize,
    pub(crate) class: ClassId,
    /// The `torch.Tensor` that stands for it in Python, by the number that the heap walk gave it: the two are one thing. Tensors that Python never saw have none.
    pub(crate) object: Option<u32>,
    pub(crate) owners: Owners,
    /// The part of [`Graph::sizes`] that is its shape.
    pub(crate) shape: Range<u32>,
    /// The number of its data type: `dtype_name` tells its name.
    pub(crate) dtype: Option<u8>,
}

/// A `StorageImpl`: memory that tensors share.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    pub(crate) address: usize,
    /// Its `torch.UntypedStorage`, if Python has one.
    pub(crate) object: Option<u32>,
    pub(crate) owners: Owners,
    /// Where its bytes are; 0 if it has none, as on the meta device.
    pub(crate) data: usize,
    /// How many bytes it has; 0 where that is not a plain number.
    pub(crate) bytes: u64,
    pub(crate) device: Device,
}

/// A function of the backward pass: `grad_fn` in Python.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) address: usize,
    pub(crate) class: ClassId,
    /// Its Python object: for a custom function its `ctx`, for others a wrapper that Python made. The two are one thing.
    pub(crate) object: Option<u32>,
    pub(crate) owners: Owners,
}

/// How many owners a C++ object counts, and how many of them were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owners {
    /// Its own count; `None` if that could not be read.
    pub(crate) counted: Option<u32>,
    /// Those that were found: references in [`Graph::edges`] and its Python object.
    pub(crate) found: u32,
    /// Its C++ owners together hold one reference to its Python object.
    pub(crate) keep_object: bool,
}

impl Owners {
    /// Owners that only C++ code can explain: what it counts, less what was found.
    pub(crate) fn unexplained(&self) -> u32 {
        self.counted.map_or(0, |counted| counted.saturating_sub(self.found))
    }
}

/// Where the bytes of a storage are: torch's number for the kind of device, and which one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) kind: i8,
    /// -1 where there is no more than one.
    pub(crate) index: i8,
}

impl Device {
    pub(crate) const UNKNOWN: Self = Self { kind: -1, index: -1 };

    /// torch's name for the kind. The numbers are part of its file format and do not change.
    pub(crate) fn name(self) -> &'static str {
        match self.kind {
            0 => "cpu",
            1 => "cuda",
            6 => "hip",
            9 => "xla",
            11 => "ort",
            12 => "xpu",
            13 => "mps",
            14 => "meta",
            15 => "hpu",
            17 => "lazy",
            18 => "ipu",
            19 => "mtia",
            20 => "privateuseone",
            _ => "unknown",
        }
    }
}

/// torch's name for a data type. The numbers are part of its file format and do not change.
pub(crate) fn dtype_name(dtype: u8) -> &'static str {
    const NAMES: [&str; 30] = [
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float32",
        "float64",
        "complex32",
        "complex64",
        "complex128",
        "bool",
        "qint8",
        "quint8",
        "qint32",
        "bfloat16",
        "quint4x2",
        "quint2x4",
        "bits1x8",
        "bits2x4",
        "bits4x2",
        "bits8",
        "bits16",
        "float8_e5m2",
        "float8_e4m3fn",
        "float8_e5m2fnuz",
        "float8_e4m3fnuz",
        "uint16",
        "uint32",
        "uint64",
    ];
    NAMES.get(dtype as usize).copied().unwrap_or("other")
}

/// How one thing refers to another. Each is an owning reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Label {
    /// A tensor and the function that computes its gradient's way on.
    GradFn,
    /// A function and the one that comes after it in the backward pass.
    Next,
    /// A function and a tensor that it saved: the number is an index into [`Graph::names`].
    Saved(u16),
    /// A function and the Python objects that a pack hook made of a saved tensor: what it returned, and the hooks.
    Packed(u16),
    /// A function with a saved tensor that a hook packed, and the function which made that tensor.
    Maker(u16),
    /// The end of the backward pass and the leaf into which it adds the gradient.
    Variable,
    Grad,
    /// A view and the tensor that it is a view of.
    Base,
    /// A tensor and its storage.
    Storage,
    /// A function and its hooks.
    Hook,
    /// A function that wraps another: an in-place operation on a view.
    Inner,
    /// A tensor and the tensors that it is made of: the indices and values of a sparse one, the value of a wrapped one.
    Component,
    /// A second Python object of the same tensor.
    Alias,
}

/// One reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Edge {
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) label: Label,
}

/// All that was found.
#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) storages: Vec<Storage>,
    pub(crate) functions: Vec<Function>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) classes: Vec<Class>,
    /// The names of saved tensors, as the function's attributes in Python: `self`, `weight`.
    pub(crate) names: Vec<String>,
    /// The shapes of tensors, one after another.
    pub(crate) sizes: Vec<i64>,
    /// Classes of functions that say nothing about what they saved, and how many of each there are. What of theirs looks like a saved tensor is taken for one; there may be more.
    pub(crate) guessed: Vec<(ClassId, u32)>,
    /// What could not be read, and what that means for the answer.
    pub(crate) warnings: Vec<String>,
}

impl Graph {
    pub(crate) fn shape(&self, tensor: &Tensor) -> &[i64] {
        self.sizes.get(tensor.shape.start as usize..tensor.shape.end as usize).unwrap_or_default()
    }

    pub(crate) fn class_name(&self, class: ClassId) -> &str {
        self.classes.get(class as usize).map_or("", |class| &class.name)
    }
}
