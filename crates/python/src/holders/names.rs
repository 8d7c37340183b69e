//! What nodes and references are called: the heap walk names Python's, torch's are named here.

use std::fmt::Write as _;

use vramscope_heap::{AutogradEdge, Names, Object, ObjectKind, Reference};
use vramscope_view::holders::Bytes;

use super::Blocks;
use super::joined::Joined;
use crate::torch::graph::{Label, Node, Tensor, dtype_name};

/// Names of both.
pub(super) struct JoinedNames<'a, 'py> {
    joined: &'a Joined<'py>,
    blocks: &'a Blocks,
}

impl<'a, 'py> JoinedNames<'a, 'py> {
    pub(super) fn new(joined: &'a Joined<'py>, blocks: &'a Blocks) -> Self {
        Self { joined, blocks }
    }

    fn saved(&self, name: u16) -> AutogradEdge {
        AutogradEdge::Saved(self.joined.torch.names.get(name as usize).cloned().unwrap_or_default())
    }

    fn tensor(&self, node: u32, tensor: &Tensor) -> Object {
        let type_name =
            tensor.object.map_or_else(|| "Tensor".to_owned(), |_| self.joined.walk.object(node).type_name);
        let mut detail = format!("{type_name} {:?}", self.joined.torch.shape(tensor));
        if let Some(dtype) = tensor.dtype {
            let _ = write!(detail, " {}", dtype_name(dtype));
        }
        if tensor.object.is_none() {
            detail.push_str(", of C++");
        }
        Object { kind: ObjectKind::Tensor, type_name, detail }
    }
}

impl Names for JoinedNames<'_, '_> {
    fn object(&self, node: u32) -> Object {
        let torch = &self.joined.torch;
        match self.joined.origin(node) {
            Some(Node::Tensor(index)) if let Some(tensor) = torch.tensors.get(index as usize) => {
                self.tensor(node, tensor)
            }
            Some(Node::Storage(index)) if let Some(storage) = torch.storages.get(index as usize) => Object {
                kind: ObjectKind::Storage,
                type_name: "Storage".to_owned(),
                detail: format!("storage of {}", Bytes(storage.bytes)),
            },
            Some(Node::Function(index)) if let Some(function) = torch.functions.get(index as usize) => {
                let class = torch.class_name(function.class);
                let class = class.rsplit("::").next().unwrap_or(class);
                // The object of a custom function has the name that the user gave it.
                let type_name = match function.object {
                    Some(object) if class == "PyNode" => self.joined.walk.object(object).type_name,
                    _ => class.to_owned(),
                };
                Object { kind: ObjectKind::Autograd, type_name, detail: String::new() }
            }
            _ if node < self.joined.walk.n_nodes() => self.joined.walk.object(node),
            _ => {
                let block = self
                    .blocks
                    .as_ref()
                    .and_then(|blocks| blocks.get((node - self.joined.n_nodes()) as usize));
                Object {
                    kind: ObjectKind::Block,
                    type_name: "block".to_owned(),
                    detail: block
                        .map_or_else(String::new, |block| format!("block of {}", Bytes(block.bytes))),
                }
            }
        }
    }

    fn names(&self, before: Option<u32>, from: u32, to: u32) -> Vec<Reference> {
        let python = self.joined.walk.n_nodes();
        match self.joined.label(from, to) {
            None if from < python && to < python => self.joined.walk.names(before, from, to),
            _ => vec![self.reference(before, from, to)],
        }
    }

    fn reference(&self, before: Option<u32>, from: u32, to: u32) -> Reference {
        let python = self.joined.walk.n_nodes();
        match self.joined.label(from, to) {
            Some(Label::GradFn | Label::Maker(_)) => Reference::Autograd(AutogradEdge::GradFn),
            Some(Label::Next | Label::Inner) => Reference::Autograd(AutogradEdge::Next),
            Some(Label::Saved(name) | Label::Packed(name)) => Reference::Autograd(self.saved(name)),
            Some(Label::Variable) => Reference::Autograd(AutogradEdge::Variable),
            Some(Label::Hook) => Reference::Autograd(AutogradEdge::Context),
            Some(Label::Grad) => Reference::Attribute("grad".to_owned()),
            Some(Label::Base) => Reference::Attribute("_base".to_owned()),
            None if from < python && to < python => self.joined.walk.reference(before, from, to),
            Some(Label::Storage | Label::Component | Label::Alias) | None => Reference::Hidden,
        }
    }
}
