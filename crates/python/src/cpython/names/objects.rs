//! What objects are called.

use pyo3::ffi;
use vramscope_heap::{Object, ObjectKind};

use super::functions::name_of_function;
use super::{
    Address, Namespace, StatePart, Walk, flags_of, full_type_name, memory, type_flag, type_name, type_of,
    word,
};
use crate::cpython::memory::{SIZE, is_subtype};

impl Walk<'_> {
    /// What a node is.
    pub(super) fn describe(&self, node: u32) -> Object {
        let object =
            |kind, type_name: &str, detail: String| Object { kind, type_name: type_name.to_owned(), detail };
        if let Some(part) = self.parts.get(&node) {
            let (of, detail) = match part {
                StatePart::Exception => ("thread", "exception that is handled"),
                StatePart::Context => ("thread", "context variables"),
                StatePart::Dict => ("thread", "thread-local data"),
                StatePart::Exit | StatePart::ExitList => ("interpreter", "functions to call at exit"),
            };
            return object(ObjectKind::Namespace, of, detail.to_owned());
        }
        let Some(at) = self.address(node) else {
            let function = self.frame_of(node).map_or_else(String::new, |frame| self.function_of(frame));
            return object(ObjectKind::Frame, "frame", format!("frame of {function}"));
        };
        // SAFETY: the node is an object that is alive as long as the walk is.
        unsafe { self.describe_object(node, at) }
    }

    /// # Safety
    /// `at` must be alive, and the object of the node.
    unsafe fn describe_object(&self, node: u32, at: Address) -> Object {
        // SAFETY: as the caller says.
        unsafe {
            let class = type_of(at);
            let flags = flags_of(class);
            let type_name = type_name(class);
            let (kind, detail) = if flags & type_flag::TYPE != 0 {
                (ObjectKind::Class, format!("class {}", memory::type_name(at)))
            } else if is_subtype(class, &raw const ffi::PyModule_Type as Address) {
                (ObjectKind::Module, format!("module {}", self.name_of_module(node)))
            } else if let Some(namespace) = self.namespaces.get(&node) {
                let detail = match namespace {
                    Namespace::Module(module) => format!("namespace of {}", self.name_of_module(*module)),
                    _ => format!("dict of {}", ffi::PyDict_Size(at as *mut _)),
                };
                (ObjectKind::Namespace, detail)
            } else if class == memory::cell_type() {
                (ObjectKind::Cell, String::new())
            } else if let Some(n) = number_of_items(at, class, self.special.deque) {
                (ObjectKind::Container, format!("{type_name} of {n}"))
            } else {
                match full_type_name(class).as_str() {
                    _ if class == self.special.function => {
                        (ObjectKind::Function, format!("function {}", name_of_function(at)))
                    }
                    "method" => (ObjectKind::Function, "bound method".to_owned()),
                    "builtin_function_or_method" => (ObjectKind::Function, String::new()),
                    "frame" | "generator" | "coroutine" | "async_generator" => {
                        let function =
                            self.frame_of(node).map(|frame| self.function_of(frame)).unwrap_or_default();
                        let of = if type_name == "frame" { "frame of" } else { &type_name };
                        (ObjectKind::Frame, format!("{of} {function}").trim_end().to_owned())
                    }
                    _ => (ObjectKind::Instance, String::new()),
                }
            };
            Object { kind, type_name, detail }
        }
    }
}

/// How many items a container has.
unsafe fn number_of_items(at: Address, class: Address, deque: Address) -> Option<usize> {
    // SAFETY: the caller has an object that is alive, and its type.
    unsafe {
        let flags = flags_of(class);
        if flags & (type_flag::LIST | type_flag::TUPLE) != 0 {
            return Some(word(at + SIZE));
        }
        if flags & type_flag::DICT != 0 {
            return usize::try_from(ffi::PyDict_Size(at as *mut _)).ok();
        }
        let sets = [&raw const ffi::PySet_Type as Address, &raw const ffi::PyFrozenSet_Type as Address];
        if sets.into_iter().any(|set| is_subtype(class, set)) {
            return usize::try_from(ffi::PySet_Size(at as *mut _)).ok();
        }
        let deque = is_subtype(class, deque);
        deque.then(|| word(at + SIZE))
    }
}
