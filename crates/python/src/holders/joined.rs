//! The Python heap and torch's C++ objects under one numbering: what is both a Python object and a C++ one is one node.

use rustc_hash::FxHashMap;

use super::tag;
use crate::cpython::Walk;
use crate::torch::graph::{Graph, Label, Node};
use crate::torch::layout::Layout;
use crate::torch::read::{Roots, read};

/// Both.
pub(super) struct Joined<'py> {
    /// The Python heap. Its nodes come first.
    pub(super) walk: Walk<'py>,
    /// torch's objects.
    pub(super) torch: Graph,
    tensors: Vec<u32>,
    storages: Vec<u32>,
    functions: Vec<u32>,
    n_nodes: u32,
    labels: FxHashMap<(u32, u32), Label>,
    origin: FxHashMap<u32, Node>,
}

impl<'py> Joined<'py> {
    /// Reads torch's objects from those that the walk found.
    pub(super) fn new(walk: Walk<'py>, layout: &Layout) -> Self {
        let addresses = |wanted: &[u8]| -> Vec<usize> {
            walk.instances
                .iter()
                .filter(|(_, tag)| wanted.contains(tag))
                .filter_map(|&(node, _)| walk.address(node))
                .collect()
        };
        let roots = Roots {
            tensors: &addresses(&[tag::PARAMETER, tag::TENSOR]),
            storages: &addresses(&[tag::STORAGE]),
            functions: &addresses(&[tag::FUNCTION]),
            contexts: &addresses(&[tag::CONTEXT]),
            saved: &addresses(&[tag::SAVED]),
        };
        let torch = read(layout, roots, &|address| walk.node_at(address));
        let mut n_nodes = walk.n_nodes();
        let mut number = |object: Option<u32>| {
            object.unwrap_or_else(|| {
                let new = n_nodes;
                n_nodes = n_nodes.saturating_add(1);
                new
            })
        };
        let tensors: Vec<u32> = torch.tensors.iter().map(|t| number(t.object)).collect();
        // A storage and its Python object are two: a list of storages is a path that can be spelled, the memory below it is not.
        let storages: Vec<u32> = torch.storages.iter().map(|_| number(None)).collect();
        let functions: Vec<u32> = torch.functions.iter().map(|f| number(f.object)).collect();
        let mut origin = FxHashMap::default();
        for (index, &node) in tensors.iter().enumerate() {
            origin.insert(node, Node::Tensor(index as u32));
        }
        for (index, &node) in storages.iter().enumerate() {
            origin.insert(node, Node::Storage(index as u32));
        }
        for (index, &node) in functions.iter().enumerate() {
            origin.insert(node, Node::Function(index as u32));
        }
        let mut joined =
            Self { walk, torch, tensors, storages, functions, n_nodes, labels: FxHashMap::default(), origin };
        joined.labels = joined
            .torch
            .edges
            .iter()
            .filter_map(|edge| Some(((joined.node(edge.from)?, joined.node(edge.to)?), edge.label)))
            .collect();
        joined
    }

    /// The number of one of torch's things.
    pub(super) fn node(&self, node: Node) -> Option<u32> {
        match node {
            Node::Tensor(index) => self.tensors.get(index as usize).copied(),
            Node::Storage(index) => self.storages.get(index as usize).copied(),
            Node::Function(index) => self.functions.get(index as usize).copied(),
            Node::Object(number) => Some(number),
        }
    }

    /// What of torch has a number.
    pub(super) fn origin(&self, node: u32) -> Option<Node> {
        self.origin.get(&node).copied()
    }

    /// How one of torch's things refers to another.
    pub(super) fn label(&self, from: u32, to: u32) -> Option<Label> {
        self.labels.get(&(from, to)).copied()
    }

    /// The storages with their numbers.
    pub(super) fn storages(&self) -> impl Iterator<Item = (u32, &crate::torch::graph::Storage)> {
        self.storages.iter().copied().zip(&self.torch.storages)
    }

    /// References of Python's storages to the memory that they stand for. Where the memory's other owners are all that keeps the object, it is
    /// no owner of its own.
    pub(super) fn storage_objects(&self) -> impl Iterator<Item = (u32, u32)> {
        self.storages().filter_map(|(node, storage)| {
            let object = storage.object?;
            let is_kept = storage.owners.keep_object && self.walk.references_to(object) == 1;
            (!is_kept).then_some((object, node))
        })
    }

    /// The numbers of the functions of the backward pass, in order.
    pub(super) fn functions(&self) -> Vec<u32> {
        let mut functions = self.functions.clone();
        functions.sort_unstable();
        functions
    }

    /// How many numbers are taken.
    pub(super) fn n_nodes(&self) -> u32 {
        self.n_nodes
    }

    /// What could not be looked at.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        self.walk.warnings.iter().chain(&self.torch.warnings).cloned()
    }
}
