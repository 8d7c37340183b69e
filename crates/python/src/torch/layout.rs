//! Where things lie in torch's C++ objects: offsets in bytes, each found on examples. What could not be found is `None`, and is then not read.

use rustc_hash::FxHashMap;

/// The offsets that hold for the torch that is loaded.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) tensor: TensorAt,
    pub(crate) storage: StorageAt,
    pub(crate) autograd: Option<AutogradAt>,
    pub(crate) function: Option<FunctionAt>,
    pub(crate) context: Option<ContextAt>,
    pub(crate) saved: Option<SavedAt>,
    /// The address of what frees the wrappers of functions, which their types have in common.
    pub(crate) wrappers_freed_by: Option<u64>,
    /// What could not be found, and what that means.
    pub(crate) warnings: Vec<String>,
}

/// How a Python object holds its C++ object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// Of the pointer, in the Python object.
    pub(crate) at: usize,
    /// The pointer follows a flag that says that the object is only borrowed: releases before 2.10.
    pub(crate) may_borrow: bool,
    /// Of the pointer back, in the C++ object.
    pub(crate) back: Option<usize>,
    /// The count of owners is where it is expected.
    pub(crate) counts: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TensorAt {
    pub(crate) held: Held,
    pub(crate) storage: usize,
    /// Of the number of dimensions, which the sizes follow.
    pub(crate) sizes: Option<usize>,
    /// Of the two bytes that number the data type.
    pub(crate) dtype: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct StorageAt {
    pub(crate) held: Held,
    pub(crate) data: usize,
    pub(crate) bytes: usize,
    /// Of the byte with the kind of device; the next one has its index.
    pub(crate) device: Option<usize>,
}

/// What a tensor has for the backward pass.
#[derive(Clone, Debug)]
pub(crate) struct AutogradAt {
    /// In the tensor.
    pub(crate) meta: usize,
    pub(crate) grad: usize,
    pub(crate) grad_fn: Option<usize>,
    pub(crate) base: Option<BaseAt>,
}

/// The tensor that a view is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BaseAt {
    pub(crate) base: usize,
    /// Of the byte that says whether it is there.
    pub(crate) present: usize,
}

/// A function of the backward pass.
#[derive(Clone, Debug)]
pub(crate) struct FunctionAt {
    /// In the wrapper.
    pub(crate) in_object: usize,
    /// Of the first of the two pointers between which the next functions lie.
    pub(crate) next: usize,
    /// From one of them to another, in bytes.
    pub(crate) stride: usize,
    pub(crate) count: Count,
    /// Of the pointer to its Python object.
    pub(crate) back: Option<usize>,
    /// The leaf, in `AccumulateGrad`.
    pub(crate) variable: Option<usize>,
    /// The function that was done in place, in `CopySlices`.
    pub(crate) inner: Option<usize>,
    /// Of the vectors of hooks.
    pub(crate) hooks: Vec<usize>,
}

/// Where the number of owners of a function is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// In the function, as in tensors: releases from 2.13 on.
    Inside,
    /// In the control block of `std::shared_ptr`, to which the function has a pointer.
    Beside,
    Unknown,
}

/// A custom function of Python: its `ctx`, and the C++ function that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContextAt {
    /// Of the pointer to the C++ function, in `ctx`.
    pub(crate) function: usize,
    /// Of the pointer to `ctx`, in the C++ function.
    pub(crate) back: usize,
    /// Of the first of the two pointers between which the saved tensors lie, in `ctx`.
    pub(crate) saved: Option<usize>,
}

/// A saved tensor; the pointer to the tensor comes first.
#[derive(Clone, Debug)]
pub(crate) struct SavedAt {
    /// In bytes.
    pub(crate) size: usize,
    /// Of the pointer to the hooks that packed it.
    pub(crate) hooks: Option<usize>,
    /// Of the Python objects, in the hooks.
    pub(crate) packed: Vec<usize>,
    /// Of the pointers to functions that it holds when it is packed.
    pub(crate) functions: Vec<usize>,
    /// Of the byte, in a Python object, whose lowest bit says that a saved tensor belongs to it. `None` where there are no such objects.
    pub(crate) owned: Option<usize>,
    /// What functions of each class save, by the last part of the class's name.
    pub(crate) fields: FxHashMap<String, Vec<Field>>,
}

/// One saved tensor, or a list of them, in functions of one class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// As in Python: `self`, `weight`.
    pub(crate) name: String,
    /// In the function.
    pub(crate) at: usize,
    /// It is the first of the two pointers between which saved tensors lie.
    pub(crate) list: bool,
}
