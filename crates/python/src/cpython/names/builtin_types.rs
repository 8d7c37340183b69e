//! What types of the standard library that are made in C call their parts. Their own getters are asked, which run no code of Python's.

use std::ffi::CStr;

use pyo3::ffi;
use vramscope_heap::Reference;

use super::containers::is_static;
use super::{Address, full_type_name, mro, type_of};
use crate::cpython::memory::{dict_of_type, item};

/// Attributes by the last part of the type's name, which is written in several ways.
const ATTRIBUTES: [(&str, &[&CStr]); 3] = [
    ("Task", &[c"_result", c"_exception", c"_coro"]),
    ("Future", &[c"_result", c"_exception"]),
    ("Token", &[c"old_value", c"var"]),
];

/// Types that only stand between their owner and its items.
const PASSAGES: [&str; 19] = [
    "list_iterator",
    "list_reverseiterator",
    "tuple_iterator",
    "set_iterator",
    "dict_keyiterator",
    "dict_valueiterator",
    "dict_itemiterator",
    "dict_keys",
    "dict_values",
    "dict_items",
    "mappingproxy",
    "iterator",
    "enumerate",
    "reversed",
    "zip",
    "map",
    "filter",
    "collections._deque_iterator",
    "Context",
];

/// A reference from an instance of such a type; `class` is one of the types that it is an instance of, and `name` is what that is called.
///
/// # Safety
/// All must be alive.
pub(super) unsafe fn in_builtin(
    object: Address,
    class: Address,
    name: &str,
    value: Address,
) -> Option<Reference> {
    // SAFETY: as the caller says.
    unsafe {
        let is_part = |part: Address| full_type_name(type_of(part)).starts_with("itertools.");
        match name {
            // What one branch has seen and another has not, in pieces.
            "itertools._tee_dataobject" | "itertools.teedataobject" if !is_part(value) => {
                Some(Reference::Item)
            }
            // Up to 3.12 a list has the items.
            "_queue.SimpleQueue" if type_of(value) != &raw const ffi::PyList_Type as Address => {
                Some(Reference::Item)
            }
            "_queue.SimpleQueue" => Some(Reference::Hidden),
            name if name.starts_with("itertools.") || name == "hamt" || PASSAGES.contains(&name) => {
                Some(Reference::Hidden)
            }
            name => by_getter(object, class, name, value),
        }
    }
}

/// The attribute whose getter, one of C's, gives the value.
unsafe fn by_getter(object: Address, class: Address, name: &str, value: Address) -> Option<Reference> {
    let name = name.rsplit('.').next().unwrap_or(name);
    let (_, attributes) = ATTRIBUTES.iter().find(|(of, _)| *of == name)?;
    // SAFETY: as the caller of `in_builtin` says. A class statement can take any name, and a derived class can have getters of its own, so it
    // must be the object's very type, with getters that no class statement makes.
    unsafe {
        if type_of(object) != class {
            return None;
        }
        let classes = mro(class);
        let found = attributes.iter().find(|attribute| {
            let first = classes.iter().find_map(|&class| item(dict_of_type(class)?, attribute));
            let is_of_c = first.is_some_and(|getter| {
                full_type_name(type_of(getter)) == "getset_descriptor" && is_static(type_of(getter))
            });
            if !is_of_c {
                return false;
            }
            let got = ffi::PyObject_GetAttrString(object as *mut _, attribute.as_ptr());
            if got.is_null() {
                ffi::PyErr_Clear();
                return false;
            }
            // The object keeps its own.
            ffi::Py_DecRef(got);
            got as Address == value
        })?;
        Some(Reference::Attribute(found.to_string_lossy().into_owned()))
    }
}
