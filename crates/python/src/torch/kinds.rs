//! Which Python types are torch's, so that the heap walk can sort what it meets. One question a type, none of which runs Python code.

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::layout::Layout;

/// What an instance of a type is for torch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tensor,
    Storage,
    /// The wrapper of a function of the backward pass.
    Function,
    /// The `ctx` of a custom function.
    Context,
    /// A saved tensor as Python sees it; from torch 2.13 on it may own what was saved.
    SavedTensor,
}

/// Where a type keeps the function that frees its instances: the same since Python 3.0.
pub(super) const FREED_BY: usize = 48;

/// torch's base types.
pub(crate) struct Kinds {
    tensor: Py<PyType>,
    storage: Py<PyType>,
    context: Py<PyType>,
    saved: Option<Py<PyType>>,
    wrappers_freed_by: Option<u64>,
}

impl Kinds {
    pub(crate) fn new(py: Python<'_>, layout: &Layout) -> PyResult<Self> {
        let native = py.import("torch._C")?;
        let kind = |name: &str| -> PyResult<Py<PyType>> {
            Ok(native.getattr(name)?.cast_into::<PyType>()?.unbind())
        };
        let tensor = kind("TensorBase").or_else(|_| kind("_TensorBase"))?;
        let storage = kind("StorageBase")?;
        let context = kind("_FunctionBase")?;
        let saved = native.getattr("_autograd").and_then(|autograd| autograd.getattr("SavedTensor"));
        let saved = saved.ok().and_then(|saved| saved.cast_into::<PyType>().ok()).map(Bound::unbind);
        Ok(Self { saved, tensor, storage, context, wrappers_freed_by: layout.wrappers_freed_by })
    }

    /// What instances of the type are; `None` if they are nothing of torch.
    #[expect(unsafe_code, reason = "the interpreter's own functions and fields of types")]
    pub(crate) fn of(&self, kind: &Bound<'_, PyType>) -> Option<Kind> {
        let py = kind.py();
        let is = |base: &Py<PyType>| {
            // SAFETY: both are types, and alive; the answer comes from the order of bases that each type keeps, not from Python code.
            unsafe { pyo3::ffi::PyType_IsSubtype(kind.as_ptr().cast(), base.bind(py).as_ptr().cast()) != 0 }
        };
        if is(&self.tensor) {
            return Some(Kind::Tensor);
        }
        if is(&self.storage) {
            return Some(Kind::Storage);
        }
        if is(&self.context) {
            return Some(Kind::Context);
        }
        if self.saved.as_ref().is_some_and(is) {
            return Some(Kind::SavedTensor);
        }
        let freed_by = self.wrappers_freed_by?;
        // SAFETY: a type is alive as long as it is borrowed, and every type object has this word.
        let own = unsafe { kind.as_ptr().cast::<u64>().add(FREED_BY / 8).read() };
        (own == freed_by).then_some(Kind::Function)
    }
}
