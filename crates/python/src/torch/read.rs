//! Reads what torch's objects hold, from the Python objects that the heap walk found, in one pass in which nothing of Python or torch runs.

mod fields;
mod nodes;

use rustc_hash::FxHashMap;

use super::class::{ClassId, Classes};
use super::getters::IN_PYBIND;
use super::graph::{Edge, Graph, Label, Node};
use super::layout::{Held, Layout};
use crate::own_memory::Memory;
use fields::Kind;

/// Addresses of the Python objects to begin with, by what they are: see [`Kinds`](super::kinds::Kinds).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Roots<'a> {
    pub(crate) tensors: &'a [usize],
    pub(crate) storages: &'a [usize],
    /// Wrappers of functions.
    pub(crate) functions: &'a [usize],
    /// The `ctx` of custom functions.
    pub(crate) contexts: &'a [usize],
    /// Saved tensors as Python sees them.
    pub(crate) saved: &'a [usize],
}

/// Reads all that can be reached from `roots`. `number` tells the number of a Python object by its address, and `None` for an address at which no live one is: only
/// addresses that it knows are believed to be Python objects.
pub(crate) fn read(layout: &Layout, roots: Roots<'_>, number: &dyn Fn(usize) -> Option<u32>) -> Graph {
    let mut graph =
        Graph { warnings: layout.warnings.clone(), names: vec!["?".to_owned()], ..Graph::default() };
    let Some(memory) = Memory::open() else {
        graph.warnings.push("this system does not let a process copy its own memory".to_owned());
        return graph;
    };
    let reader = Reader {
        layout,
        number,
        memory,
        classes: Classes::default(),
        graph,
        seen: FxHashMap::default(),
        kinds: Vec::new(),
        guessed: FxHashMap::default(),
    };
    reader.read(roots)
}

struct Reader<'a> {
    layout: &'a Layout,
    number: &'a dyn Fn(usize) -> Option<u32>,
    memory: Memory,
    classes: Classes,
    graph: Graph,
    /// By the address of the C++ object.
    seen: FxHashMap<usize, Node>,
    /// By class.
    kinds: Vec<Option<Kind>>,
    guessed: FxHashMap<ClassId, u32>,
}

impl Reader<'_> {
    fn read(mut self, roots: Roots<'_>) -> Graph {
        for &object in roots.tensors {
            self.tensor_root(object);
        }
        for &object in roots.storages {
            self.storage_root(object);
        }
        for &object in roots.functions {
            self.function_root(object);
        }
        for &object in roots.contexts {
            self.context_root(object);
        }
        for &object in roots.saved {
            self.saved_root(object);
        }
        // Whatever is found is put at the end of its list, so two cursors visit everything once, however deep the graph is.
        let (mut tensors, mut functions) = (0, 0);
        loop {
            // Tensors first: they lie near the function that saved them, in memory that was just copied.
            if let Some(tensor) = self.graph.tensors.get(tensors) {
                let (address, class) = (tensor.address, tensor.class);
                self.tensor(tensors as u32, address, class);
                tensors += 1;
            } else if let Some(function) = self.graph.functions.get(functions) {
                let (address, class) = (function.address, function.class);
                self.function(functions as u32, address, class);
                functions += 1;
            } else {
                break;
            }
        }
        self.graph.guessed = self.guessed.into_iter().collect();
        self.graph.guessed.sort_unstable();
        self.graph.classes = self.classes.into_classes();
        self.graph
    }

    fn tensor_root(&mut self, object: usize) {
        let held = self.layout.tensor.held;
        let Some(tensor) = self.memory.pointer(object + held.at).and_then(|address| self.tensor_at(address))
        else {
            return;
        };
        let Some(number) = (self.number)(object) else { return };
        let Node::Tensor(index) = tensor else { return };
        let owns = self.owns(object, held);
        let Some(known) = self.graph.tensors.get_mut(index as usize) else { return };
        match known.object {
            None => {
                known.object = Some(number);
                known.owners.found += u32::from(owns);
            }
            Some(other) if other != number => self.edge(Node::Object(number), tensor, Label::Alias),
            Some(_) => {}
        }
    }

    fn storage_root(&mut self, object: usize) {
        let held = self.layout.storage.held;
        let Some(storage) =
            self.memory.pointer(object + held.at).and_then(|address| self.storage_at(address))
        else {
            return;
        };
        let Some(number) = (self.number)(object) else { return };
        let Node::Storage(index) = storage else { return };
        let owns = self.owns(object, held);
        let Some(known) = self.graph.storages.get_mut(index as usize) else { return };
        match known.object {
            None => {
                known.object = Some(number);
                known.owners.found += u32::from(owns);
            }
            Some(other) if other != number => self.edge(Node::Object(number), storage, Label::Alias),
            Some(_) => {}
        }
    }

    fn function_root(&mut self, object: usize) {
        let Some(at) = self.layout.function.as_ref().map(|function| function.in_object) else { return };
        let Some(function) = self.memory.pointer(object + at).and_then(|address| self.function_at(address))
        else {
            return;
        };
        let Some(number) = (self.number)(object) else { return };
        let Node::Function(index) = function else { return };
        if let Some(known) = self.graph.functions.get_mut(index as usize)
            && known.object.is_none()
        {
            known.object = Some(number);
            known.owners.found += 1;
        }
    }

    /// A `ctx` may outlive its function, and then still has what was saved.
    fn context_root(&mut self, object: usize) {
        let Some(at) = self.layout.context else { return };
        let Some(number) = (self.number)(object) else { return };
        let function = self.memory.pointer(object + at.function);
        let alive = function.filter(|&function| {
            self.memory.word(function + at.back).is_some_and(|back| back & !1 == object as u64)
        });
        let alive = alive.and_then(|function| self.function_at(function));
        if alive.is_none()
            && let Some(saved) = at.saved
        {
            self.saved_list(Node::Object(number), object + saved, 0);
        }
    }

    fn saved_root(&mut self, object: usize) {
        let Some(owned) = self.layout.saved.as_ref().and_then(|saved| saved.owned) else { return };
        let Some(number) = (self.number)(object) else { return };
        if self.memory.byte(object + owned).is_some_and(|flags| flags & 1 == 1)
            && let Some(saved) = self.memory.pointer(object + IN_PYBIND)
        {
            self.saved(Node::Object(number), saved, 0);
        }
    }

    /// Whether this Python object is an owner of its C++ object, or only borrows it.
    fn owns(&mut self, object: usize, held: Held) -> bool {
        !held.may_borrow || self.memory.byte(object + held.at - 8) != Some(1)
    }

    fn edge(&mut self, from: Node, to: Node, label: Label) {
        let owners = match to {
            Node::Tensor(index) => {
                self.graph.tensors.get_mut(index as usize).map(|tensor| &mut tensor.owners)
            }
            Node::Storage(index) => {
                self.graph.storages.get_mut(index as usize).map(|storage| &mut storage.owners)
            }
            Node::Function(index) => {
                self.graph.functions.get_mut(index as usize).map(|function| &mut function.owners)
            }
            Node::Object(_) => None,
        };
        if let Some(owners) = owners {
            owners.found = owners.found.saturating_add(1);
        }
        self.graph.edges.push(Edge { from, to, label });
    }
}
