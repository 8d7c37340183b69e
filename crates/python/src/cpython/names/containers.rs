//! References from what holds items, and from types made in C.

use pyo3::ffi;
use vramscope_heap::Reference;

use super::{
    Address, Walk, attributes, flags_of, full_type_name, is_text, memory, mro, text, type_flag, type_of, word,
};
use crate::cpython::memory::{SIZE, is_subtype};

impl Walk<'_> {
    /// References from a dict. Nothing if the value is not in it.
    ///
    /// # Safety
    /// `from` must be a dict.
    pub(super) unsafe fn in_dict(&self, before: Option<u32>, from: u32, value: Address) -> Option<Reference> {
        let dict = self.address(from)?;
        let to = self.node_at(value)?;
        // SAFETY: all are objects that are alive.
        unsafe {
            if attributes::dict(self.trusted.values.as_ref(), dict) == Some(value) {
                return None; // the instance dict of a class derived from dict
            }
            let key = self.key_of(from, dict, value);
            if let Some(before) = before {
                if let Some(frame) = self.frame_of(before)
                    && self.has_locals(frame, dict)
                {
                    let name = key.and_then(|key| text(key));
                    return Some(name.map_or(Reference::Item, |name| self.local(frame, name)));
                }
                let owner = self.address(before).filter(|&owner| {
                    attributes::dict(self.trusted.values.as_ref(), owner) == Some(dict)
                        || self.dict_of_function(owner) == Some(dict)
                });
                if owner.is_some() {
                    return Some(key.map_or(Reference::Item, |key| self.attribute(key, to)));
                }
            }
            let exact = type_of(dict) == &raw const ffi::PyDict_Type as Address;
            (exact || key.is_some() || memory::items(dict).any(|(k, _)| k == value))
                .then_some(Reference::Item)
        }
    }
}

/// References from anything else.
///
/// # Safety
/// All must be alive, and `class` the type of `object`.
pub(super) unsafe fn in_other(object: Address, class: Address, value: Address) -> Reference {
    // SAFETY: as the caller says.
    unsafe {
        let flags = flags_of(class);
        if flags & (type_flag::LIST | type_flag::TUPLE | type_flag::DICT) != 0 {
            return Reference::Item;
        }
        if flags & type_flag::EXCEPTION != 0 {
            return in_exception(object, value);
        }
        let sets = [&raw const ffi::PySet_Type as Address, &raw const ffi::PyFrozenSet_Type as Address];
        if sets.into_iter().any(|set| is_subtype(class, set)) {
            return Reference::Item;
        }
        if class == &raw const ffi::PyCFunction_Type as Address {
            let own = ffi::PyCFunction_GetSelf(object as *mut _) as Address == value;
            return if own { Reference::Attribute("__self__".to_owned()) } else { Reference::Unknown };
        }
        let to_dict = flags_of(type_of(value)) & type_flag::DICT != 0;
        for class in mro(class) {
            let name = full_type_name(class);
            match name.as_str() {
                "functools._lru_cache_wrapper" | "_thread._local" if to_dict => return Reference::Hidden,
                "collections.deque" | "functools._lru_cache_wrapper" => return Reference::Item,
                "traceback" if full_type_name(type_of(value)) == "frame" => {
                    return Reference::Attribute("tb_frame".to_owned());
                }
                "traceback" => return Reference::Attribute("tb_next".to_owned()),
                "numpy.ndarray" => return Reference::Attribute("base".to_owned()),
                "hamt_bitmap_node" | "hamt_array_node" | "hamt_collision_node" if is_static(class) => {
                    return in_context(object, value);
                }
                name => {
                    if let Some(reference) = super::builtin_types::in_builtin(object, class, name, value) {
                        return reference;
                    }
                }
            }
        }
        Reference::Unknown
    }
}

/// An exception's own fields.
unsafe fn in_exception(exception: Address, value: Address) -> Reference {
    const ARGUMENTS: usize = 24;
    // SAFETY: it is an exception. The new references are given back at once; the exception keeps its own.
    unsafe {
        let is = |get: unsafe extern "C" fn(*mut ffi::PyObject) -> *mut ffi::PyObject| {
            let got = get(exception as *mut _);
            ffi::Py_DecRef(got);
            got as Address == value
        };
        let name = if is(ffi::PyException_GetTraceback) {
            "__traceback__"
        } else if is(ffi::PyException_GetCause) {
            "__cause__"
        } else if is(ffi::PyException_GetContext) {
            "__context__"
        } else if word(exception + ARGUMENTS) == value {
            "args"
        } else {
            return Reference::Unknown;
        };
        Reference::Attribute(name.to_owned())
    }
}

/// The nodes of the tree in which a context has its variables: pairs of variable and value, or of null and a further node.
unsafe fn in_context(node: Address, value: Address) -> Reference {
    const PAIRS: usize = 32;
    const NAME: usize = 16;
    // SAFETY: these nodes begin with their number of items, which are references or null; variables of contexts have their name first.
    unsafe {
        if full_type_name(type_of(value)).starts_with("hamt_") && is_static(type_of(value)) {
            return Reference::Hidden;
        }
        let items = word(node + SIZE);
        let item = |i: usize| word(node + PAIRS + 8 * i);
        for pair in 0..items / 2 {
            let (key, found) = (item(2 * pair), item(2 * pair + 1));
            if found == value && key != 0 && is_context_variable(type_of(key)) {
                let name = word(key + NAME);
                if is_text(name)
                    && let Some(name) = text(name)
                {
                    return Reference::Named(format!("contextvars.{name}"));
                }
            }
        }
        Reference::Unknown
    }
}

/// Whether a type is one of the interpreter's own. A class statement can take any name.
pub(super) unsafe fn is_static(class: Address) -> bool {
    // SAFETY: the caller has a type that is alive.
    unsafe { flags_of(class) & type_flag::HEAP_TYPE == 0 }
}

unsafe fn is_context_variable(class: Address) -> bool {
    // SAFETY: the caller has a type that is alive.
    unsafe { is_static(class) && full_type_name(class).ends_with("ContextVar") }
}
