//! Questions about single nodes, for those who know what they mean.

use std::ffi::CStr;

use pyo3::prelude::*;

use super::memory::{Address, flags_of, is_subtype, item, items, type_flag, type_of};
use super::{Namespace, Walk, attributes};

impl Walk<'_> {
    /// The attribute of an instance, as far as it is the instance's own: not the class's, and nothing that is computed.
    pub(crate) fn own_attribute(&self, node: u32, name: &CStr) -> Option<u32> {
        let at = self.address(node)?;
        // SAFETY: the node is an instance that is alive, and the layout has been found to be true.
        unsafe {
            let dict = attributes::dict(self.trusted.values.as_ref(), at);
            let value = if let Some(dict) = dict.filter(|&dict| items(dict).next().is_some()) {
                item(dict, name)
            } else {
                let layout = self.trusted.values.as_ref()?;
                attributes::inline_values(layout, at)
                    .into_iter()
                    .find(|&(key, _)| {
                        pyo3::ffi::PyUnicode_CompareWithASCIIString(key as *mut _, name.as_ptr()) == 0
                    })
                    .map(|(_, value)| value)
            };
            self.graph.find(value?)
        }
    }

    /// How many references there are to the node's object.
    pub(crate) fn references_to(&self, node: u32) -> u32 {
        // SAFETY: the node is an object that is alive.
        let count =
            self.address(node).map_or(0, |at| unsafe { super::graph::count(at, self.trusted.immortals) });
        u32::try_from(count).unwrap_or(0)
    }

    /// How many references to the node's object were not found.
    pub(crate) fn unexplained(&self, node: u32) -> u32 {
        self.graph.unexplained.get(node as usize).map_or(0, |&count| u32::try_from(count).unwrap_or(0))
    }

    /// The containers in which modules of a neural network keep their children, parameters and buffers.
    pub(crate) fn registries(&self) -> impl Iterator<Item = u32> {
        let registries = self.namespaces.iter().filter(|(_, of)| matches!(of, Namespace::Registry(_)));
        registries.map(|(&node, _)| node)
    }

    /// Whether it is a list, tuple, dict or something derived from one of these.
    pub(crate) fn is_container(&self, node: u32) -> bool {
        const CONTAINERS: usize = type_flag::DICT | type_flag::LIST | type_flag::TUPLE;
        // SAFETY: the node is an object that is alive.
        self.address(node).is_some_and(|at| unsafe { flags_of(type_of(at)) } & CONTAINERS != 0)
    }
    /// The node's object if it is an instance of a class. The reference that is returned outlives the walk.
    pub(crate) fn instance_of(&self, node: u32, class: &Bound<'_, PyAny>) -> Option<Py<PyAny>> {
        let at = self.address(node)?;
        let py = class.py();
        // SAFETY: the node is an object that is alive, and `class` is one; only the order of bases that each type keeps is read.
        unsafe {
            let is_one = is_subtype(type_of(at), class.as_ptr() as Address);
            is_one.then(|| Bound::from_borrowed_ptr(py, at as *mut pyo3::ffi::PyObject).unbind())
        }
    }
}
