//! Where functions of each class keep the tensors that they saved.
//!
//! torch generates a Python type for each class, with getters that hand out a saved tensor as it lies in the function and run no hook. To ask them, a function is
//! needed. Functions of the user's are not asked: from torch 2.13 on that leaves a Python object behind, and another thread may be using them. So the getters are
//! shown an empty one: memory of ours, all zero. All they do is add the field's offset to the function's address.

use std::ptr;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::layout::Field;
use crate::own_memory::Memory;

/// Where the C++ object's address lies in a Python object that pybind11 made.
pub(crate) const IN_PYBIND: usize = 16;
/// Where a Python object's own fields begin. Builds in which that differs, such as free-threaded ones, are not asked.
const HEADER: usize = 16;
/// Words of the empty function; the largest generated class has about 200.
const WORDS: usize = 512;
/// Functions have their base class first; no field of theirs lies in it.
const FIRST_FIELD: usize = 64;
/// Addresses that are multiples of this have zero as their lowest byte.
const FLAG: usize = 256;
/// References that the empty function's Python object seems to have, so that it is never thrown away.
const REFERENCES: u64 = 1 << 20;

/// The empty function and its Python object, which no collector and no allocator knows.
pub(crate) struct EmptyFunction {
    function: Box<[u64; WORDS]>,
    /// Two words for the collector, which stay zero: not tracked; then the object.
    object: Box<[u64; 8]>,
    /// Bytes from one saved tensor to the next.
    size: usize,
    /// What the words of the function point to when it shall have lists: enough for any of them.
    items: Box<[u64]>,
    /// Bytes from what one word points to to what the next one points to.
    step: usize,
}

impl EmptyFunction {
    /// `in_object` is where a function's address lies in its Python object; `size` is that of a saved tensor.
    pub(crate) fn new(in_object: usize, size: usize) -> Option<Self> {
        if in_object != HEADER || !(16..=512).contains(&size) || !size.is_multiple_of(8) {
            return None;
        }
        let step = (size..=size * FLAG).step_by(size).find(|step| step.is_multiple_of(FLAG))?;
        let items = vec![0; ((WORDS + 1) * step + FLAG) / 8].into_boxed_slice();
        Some(Self { function: Box::new([0; WORDS]), object: Box::new([0; 8]), size, items, step })
    }

    /// Asks `attribute` of this type where it lies. `None` if the answer is not an address in the function.
    pub(crate) fn field(
        &mut self,
        memory: &mut Memory,
        kind: &Bound<'_, PyAny>,
        attribute: &str,
    ) -> Option<Field> {
        let name = attribute.strip_prefix("_raw_saved_")?.to_owned();
        let answer = self.ask(kind, attribute).ok()?;
        if !answer.is_instance_of::<PyTuple>() {
            let at = self.offset_of(memory, &answer)?;
            return Some(Field { name, at, list: false });
        }
        drop(answer);
        let at = self.list(memory, kind, attribute)?;
        Some(Field { name, at, list: true })
    }

    /// Where the list lies. Every word of the function is an address that is one step above the word before it, so that each two neighbours are the ends of a list, and
    /// the first item of the list tells which two they are. Lists are followed by a flag, one byte that must be zero: steps are multiples of 256.
    fn list(&mut self, memory: &mut Memory, kind: &Bound<'_, PyAny>, attribute: &str) -> Option<usize> {
        let items = self.items.as_ptr() as usize;
        let first = items.next_multiple_of(FLAG);
        for (place, word) in self.function.iter_mut().enumerate().skip(FIRST_FIELD / 8) {
            *word = (first + place * self.step) as u64;
        }
        let answer = self.ask(kind, attribute);
        self.function.fill(0);
        let answer = answer.ok()?.cast_into::<PyTuple>().ok()?;
        let told = memory.pointer_now(answer.get_item(0).ok()?.as_ptr() as usize + IN_PYBIND)?;
        let above = told.checked_sub(first)?;
        let place = above / self.step;
        (above.is_multiple_of(self.step)
            && answer.len() * self.size == self.step
            && (FIRST_FIELD / 8..WORDS).contains(&place))
        .then_some(place * 8)
    }

    fn offset_of(&self, memory: &mut Memory, saved: &Bound<'_, PyAny>) -> Option<usize> {
        let address = memory.pointer_now(saved.as_ptr() as usize + IN_PYBIND)?;
        let at = address.checked_sub(self.function.as_ptr() as usize)?;
        (FIRST_FIELD..=size_of_val(&*self.function) - self.size).contains(&at).then_some(at)
    }

    #[expect(unsafe_code, reason = "an object that Python did not make")]
    fn ask<'py>(&mut self, kind: &Bound<'py, PyAny>, attribute: &str) -> PyResult<Bound<'py, PyAny>> {
        let py = kind.py();
        let attribute = pyo3::types::PyString::new(py, attribute);
        *self.object = [0, 0, REFERENCES, kind.as_ptr() as u64, self.function.as_ptr() as u64, 0, 0, 0];
        let object = ptr::from_mut(&mut self.object[2]).cast::<pyo3::ffi::PyObject>();
        // SAFETY: `object` looks like an instance of `kind`, which is a type that torch generated for functions: header, then the function's address. It outlives the
        // call, and its count of references cannot reach zero in it. Generic lookup finds the type's own getter, which reads nothing of the function but, for a list,
        // the two pointers and a flag; both are in `self.function`, as is what they point to. That the getters do so was checked on real functions.
        let answer = unsafe {
            Bound::from_owned_ptr_or_err(py, pyo3::ffi::PyObject_GenericGetAttr(object, attribute.as_ptr()))
        };
        *self.object = [0; 8];
        answer.map_err(|_| PyRuntimeError::new_err("the getter did not answer"))
    }
}
