//! References from functions, cells and modules.

use std::ffi::CStr;
use std::sync::OnceLock;

use pyo3::ffi;
use vramscope_heap::Reference;

use super::{Address, Walk, flags_of, text, type_flag, type_of};
use crate::cpython::attributes;
use crate::cpython::memory::{is_subtype, symbol, tuple};

type Get = unsafe extern "C" fn(*mut ffi::PyObject) -> *mut ffi::PyObject;

/// What functions tell by functions of C that are not in the stable interface.
struct Getters {
    closure: Option<Get>,
    defaults: Option<Get>,
    keyword_defaults: Option<Get>,
    code: Option<Get>,
}

fn getters() -> &'static Getters {
    static GETTERS: OnceLock<Getters> = OnceLock::new();
    // SAFETY: these functions have this signature in all releases.
    let get = |name: &CStr| symbol(name).map(|f| unsafe { std::mem::transmute::<_, Get>(f) });
    GETTERS.get_or_init(|| Getters {
        closure: get(c"PyFunction_GetClosure"),
        defaults: get(c"PyFunction_GetDefaults"),
        keyword_defaults: get(c"PyFunction_GetKwDefaults"),
        code: get(c"PyFunction_GetCode"),
    })
}

/// What a getter gives for a function: a borrowed reference, or 0.
///
/// # Safety
/// `function` must be a function that is alive.
unsafe fn part(get: Option<Get>, function: Address) -> Address {
    // SAFETY: the caller says so; nothing is given away.
    get.map_or(0, |get| unsafe { get(function as *mut _) } as Address)
}

impl Walk<'_> {
    /// References from a function, a cell or a module. Nothing for those from others, and for attributes of functions.
    ///
    /// # Safety
    /// All must be alive, and `class` the type of `object`.
    pub(super) unsafe fn in_function(
        &self,
        object: Address,
        class: Address,
        value: Address,
    ) -> Option<Reference> {
        // SAFETY: as the caller says.
        unsafe {
            if class == crate::cpython::memory::cell_type() {
                return Some(Reference::Hidden);
            }
            if is_subtype(class, &raw const ffi::PyModule_Type as Address) {
                if ffi::PyModule_GetDict(object as *mut _) as Address == value {
                    return Some(Reference::Hidden);
                }
                let node = self.node_at(object)?;
                return match self.name_of_module(node).as_str() {
                    "atexit" => self.node_at(value).map(|to| self.at_exit(to)),
                    _ => None,
                };
            }
            if class != self.special.function {
                return None;
            }
            let parts = getters();
            let function = || name_of_function(object);
            if part(parts.defaults, object) == value {
                return Some(Reference::Defaults { function: function() });
            }
            if part(parts.keyword_defaults, object) == value {
                return Some(Reference::KeywordDefaults { function: function() });
            }
            let closure = part(parts.closure, object);
            let at = tuple(closure).into_iter().position(|cell| cell == value)?;
            let name = free_variables(part(parts.code, object)).get(at).and_then(|&name| text(name));
            Some(Reference::Closure { function: function(), name: name.unwrap_or_else(|| "?".to_owned()) })
        }
    }

    /// What is registered with `atexit`: a function, its arguments or its keyword arguments.
    pub(super) fn at_exit(&self, registered: u32) -> Reference {
        // SAFETY: the node is an object that is alive.
        let flags = self.address(registered).map_or(0, |at| unsafe { flags_of(type_of(at)) });
        let name = match flags {
            flags if flags & type_flag::TUPLE != 0 => "atexit[*].args",
            flags if flags & type_flag::DICT != 0 => "atexit[*].keywords",
            _ => "atexit[*]",
        };
        Reference::Named(name.to_owned())
    }

    /// The dict of a function's attributes.
    ///
    /// # Safety
    /// `object` must be alive.
    pub(super) unsafe fn dict_of_function(&self, object: Address) -> Option<Address> {
        // SAFETY: as the caller says.
        unsafe { attributes::dict(self.trusted.values.as_ref(), object) }
    }
}

/// The names of the variables that a code object takes from around it.
unsafe fn free_variables(code: Address) -> Vec<Address> {
    if code == 0 {
        return Vec::new();
    }
    // SAFETY: it is a code object. Making the tuple, where it is made, runs no code; its names are kept by the code object.
    unsafe {
        let free = ffi::PyObject_GetAttrString(code as *mut _, c"co_freevars".as_ptr());
        if free.is_null() {
            ffi::PyErr_Clear();
            return Vec::new();
        }
        let names = tuple(free as Address);
        ffi::Py_DecRef(free);
        names
    }
}

/// The name of a function.
///
/// # Safety
/// `function` must be a function that is alive.
pub(super) unsafe fn name_of_function(function: Address) -> String {
    // SAFETY: as the caller says; its name is looked up in C.
    unsafe {
        let name = ffi::PyObject_GetAttrString(function as *mut _, c"__name__".as_ptr());
        if name.is_null() {
            ffi::PyErr_Clear();
            return String::new();
        }
        let name_text = text(name as Address);
        ffi::Py_DecRef(name);
        name_text.unwrap_or_default()
    }
}
