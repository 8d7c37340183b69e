//! Which Python types are torch's, so that the heap walk can sort what it meets. One question a type, none of which runs Python code.

use pyo3::prelude::*;
use pyo3::types::PyType;

use super::layout::Layout;
use crate::cpython::type_field::FREED_BY;

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

/// torch's base types.
pub(crate) struct Kinds {
    /// Each with what its instances, and those of types derived from it, are.
    pub(crate) bases: Vec<(Py<PyType>, Kind)>,
    /// Wrappers of functions have types without a common base, but all are freed by the function at this address.
    pub(crate) wrappers_freed_by: Option<u64>,
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
        let mut bases = vec![(tensor, Kind::Tensor), (storage, Kind::Storage), (context, Kind::Context)];
        bases.extend(saved.map(|saved| (saved, Kind::SavedTensor)));
        Ok(Self { bases, wrappers_freed_by: layout.wrappers_freed_by })
    }

    /// What instances of the type are; `None` if they are nothing of torch.
    #[expect(unsafe_code, reason = "the interpreter's own functions and fields of types")]
    pub(crate) fn of(&self, kind: &Bound<'_, PyType>) -> Option<Kind> {
        let py = kind.py();
        let is = |base: &Py<PyType>| {
            // SAFETY: both are types, and alive; the answer comes from the order of bases that each type keeps, not from Python code.
            unsafe { pyo3::ffi::PyType_IsSubtype(kind.as_ptr().cast(), base.bind(py).as_ptr().cast()) != 0 }
        };
        if let Some(&(_, kind)) = self.bases.iter().find(|(base, _)| is(base)) {
            return Some(kind);
        }
        let freed_by = self.wrappers_freed_by?;
        // SAFETY: a type is alive as long as it is borrowed, and every type object has this word.
        let own = unsafe { kind.as_ptr().cast::<u64>().add(FREED_BY / 8).read() };
        (own == freed_by).then_some(Kind::Function)
    }
}
