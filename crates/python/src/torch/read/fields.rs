//! What tensors and functions refer to.

use std::rc::Rc;

use super::super::class::{ClassId, Family};
use super::super::graph::{Label, Node};
use super::super::names::last_part;
use super::super::scan::{self, Found};
use super::Reader;

/// Longer lists of next functions, saved tensors or hooks are taken to be damaged.
const LONGEST_LIST: usize = 1 << 20;
/// The class of a custom function's C++ side.
const PYTHON_FUNCTION: &str = "torch::autograd::PyNode";
/// A tensor that has nothing but a storage.
const PLAIN_TENSOR: &str = "c10::TensorImpl";

/// How functions of one class are read.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A custom function of Python: its `ctx` has what it saved.
    Context,
    Known(Rc<[Saved]>),
    Guess,
}

/// A saved tensor, or a list of them, in functions of one class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    name: u16,
    at: usize,
    list: bool,
}

impl Reader<'_> {
    pub(super) fn tensor(&mut self, index: u32, address: usize, class: ClassId) {
        let this = Node::Tensor(index);
        if let Some(storage) = self
            .memory
            .pointer(address + self.layout.tensor.storage)
            .and_then(|storage| self.storage_at(storage))
        {
            self.edge(this, storage, Label::Storage);
        }
        if self.classes.name(class) != PLAIN_TENSOR {
            for component in scan::tensors(&mut self.memory, &mut self.classes, address, 16) {
                if let Some(component) = self.tensor_at(component) {
                    self.edge(this, component, Label::Component);
                }
            }
        }
        let layout = self.layout;
        let Some(at) = &layout.autograd else { return };
        let Some(meta) = self.memory.pointer(address + at.meta) else { return };
        // Derived classes have the same first fields.
        let Some((class, Family::AutogradMeta)) = self.classes.of(&mut self.memory, meta) else { return };
        if let Some(grad) = self.memory.pointer(meta + at.grad).and_then(|grad| self.tensor_at(grad)) {
            self.edge(this, grad, Label::Grad);
        }
        if let Some(function) = at
            .grad_fn
            .and_then(|place| self.memory.pointer(meta + place))
            .and_then(|function| self.function_at(function))
        {
            self.edge(this, function, Label::GradFn);
        }
        if !self.classes.name(class).ends_with("ViewMeta") {
            return;
        }
        if let Some(at) = at.base
            && self.memory.byte(meta + at.present) == Some(1)
            && let Some(base) = self.memory.pointer(meta + at.base).and_then(|base| self.tensor_at(base))
        {
            self.edge(this, base, Label::Base);
        }
    }

    pub(super) fn function(&mut self, index: u32, address: usize, class: ClassId) {
        let this = Node::Function(index);
        let layout = self.layout;
        let Some(at) = &layout.function else { return };
        if let Some((begin, end)) = self.list(address + at.next, at.stride) {
            for edge in (begin..end).step_by(at.stride) {
                if let Some(next) = self.memory.pointer(edge).and_then(|next| self.function_at(next)) {
                    self.edge(this, next, Label::Next);
                }
            }
        }
        for &hooks in &at.hooks {
            self.hooks(this, address + hooks);
        }
        let name = self.classes.name(class);
        if name == "torch::autograd::AccumulateGrad" {
            if let Some(variable) = at
                .variable
                .and_then(|place| self.memory.pointer(address + place))
                .and_then(|variable| self.tensor_at(variable))
            {
                self.edge(this, variable, Label::Variable);
            }
            return;
        }
        if name == "torch::autograd::CopySlices" {
            if let Some(inner) = at
                .inner
                .and_then(|place| self.memory.pointer(address + place))
                .and_then(|inner| self.function_at(inner))
            {
                self.edge(this, inner, Label::Inner);
            }
            return;
        }
        match self.kind(class) {
            Kind::Context => {
                let Some(context) = self.layout.context else { return };
                let object = self.memory.word(address + context.back).map_or(0, |back| (back & !1) as usize);
                if let Some(saved) = context.saved
                    && (self.number)(object).is_some()
                {
                    self.saved_list(this, object + saved, 0);
                }
            }
            Kind::Known(fields) => {
                for &field in fields.iter() {
                    if field.list {
                        self.saved_list(this, address + field.at, field.name);
                    } else {
                        self.saved(this, address + field.at, field.name);
                    }
                }
            }
            // Its own fields begin where those of the end of the graph do, whose first one is the leaf.
            Kind::Guess => self.guess(this, address, class, at.variable.unwrap_or(at.next + 24)),
        }
    }

    pub(super) fn guess(&mut self, this: Node, address: usize, class: ClassId, from: usize) {
        *self.guessed.entry(class).or_default() += 1;
        let Some(saved) = &self.layout.saved else { return };
        let Some(hooks) = saved.hooks else { return };
        for found in scan::saved(&mut self.memory, &mut self.classes, address, from, saved.size, hooks) {
            match found {
                Found::Saved(place) => self.saved(this, place, 0),
                Found::Tensor(tensor) => {
                    if let Some(tensor) = self.tensor_at(tensor) {
                        self.edge(this, tensor, Label::Saved(0));
                    }
                }
            }
        }
    }

    pub(super) fn kind(&mut self, class: ClassId) -> Kind {
        if let Some(Some(kind)) = self.kinds.get(class as usize) {
            return kind.clone();
        }
        let kind = self.kind_of_name(class);
        if self.kinds.len() <= class as usize {
            self.kinds.resize(class as usize + 1, None);
        }
        if let Some(place) = self.kinds.get_mut(class as usize) {
            *place = Some(kind.clone());
        }
        kind
    }

    pub(super) fn kind_of_name(&mut self, class: ClassId) -> Kind {
        let name = self.classes.name(class);
        if name == PYTHON_FUNCTION {
            return Kind::Context;
        }
        // Others may give their classes the names of torch's.
        let fields = self
            .layout
            .saved
            .as_ref()
            .filter(|_| name.starts_with("torch::autograd::"))
            .and_then(|saved| saved.fields.get(last_part(name)));
        let Some(fields) = fields else { return Kind::Guess };
        let names = &mut self.graph.names;
        let mut number = |name: &String| {
            let known = names.iter().position(|known| known == name);
            known.unwrap_or_else(|| {
                names.push(name.clone());
                names.len() - 1
            })
        };
        Kind::Known(
            fields
                .iter()
                .map(|field| Saved {
                    name: u16::try_from(number(&field.name)).unwrap_or(0),
                    at: field.at,
                    list: field.list,
                })
                .collect(),
        )
    }

    /// The saved tensor at this place.
    pub(super) fn saved(&mut self, this: Node, place: usize, name: u16) {
        if let Some(tensor) = self.memory.pointer(place).and_then(|tensor| self.tensor_at(tensor)) {
            self.edge(this, tensor, Label::Saved(name));
        }
        let layout = self.layout;
        let Some(at) = &layout.saved else { return };
        let Some(hooks) = at.hooks.and_then(|hooks| self.memory.pointer(place + hooks)) else { return };
        if !self.classes.is(&mut self.memory, hooks, Family::SavedHooks) {
            return;
        }
        self.packed(this, hooks, name);
        for function in &at.functions {
            if let Some(function) =
                self.memory.pointer(place + function).and_then(|function| self.function_at(function))
            {
                self.edge(this, function, Label::Maker(name));
            }
        }
    }

    pub(super) fn saved_list(&mut self, this: Node, place: usize, name: u16) {
        let Some(size) = self.layout.saved.as_ref().map(|saved| saved.size) else { return };
        if let Some((begin, end)) = self.list(place, size) {
            for saved in (begin..end).step_by(size) {
                self.saved(this, saved, name);
            }
        }
    }

    /// The Python objects that hooks made of a saved tensor.
    pub(super) fn packed(&mut self, this: Node, hooks: usize, name: u16) {
        let layout = self.layout;
        let Some(at) = &layout.saved else { return };
        for place in &at.packed {
            if let Some(object) =
                self.memory.word(hooks + place).and_then(|object| (self.number)(object as usize))
            {
                self.edge(this, Node::Object(object), Label::Packed(name));
            }
        }
    }

    pub(super) fn hooks(&mut self, this: Node, place: usize) {
        let Some((begin, end)) = self.list(place, 8) else { return };
        for hook in (begin..end).step_by(8) {
            let Some(hook) = self
                .memory
                .pointer(hook)
                .filter(|&hook| self.classes.is(&mut self.memory, hook, Family::Hook))
            else {
                continue;
            };
            // One Python object, behind the virtual table.
            let object = (8..32)
                .step_by(8)
                .find_map(|at| self.memory.word(hook + at).and_then(|word| (self.number)(word as usize)));
            if let Some(object) = object {
                self.edge(this, Node::Object(object), Label::Hook);
            }
        }
    }

    /// Where the items of the vector at `place` begin and end, if they can be such.
    pub(super) fn list(&mut self, place: usize, stride: usize) -> Option<(usize, usize)> {
        let (begin, end) = (self.memory.pointer(place)?, self.memory.pointer(place + 8)?);
        let bytes = end.checked_sub(begin)?;
        (bytes > 0 && bytes.is_multiple_of(stride) && bytes / stride <= LONGEST_LIST).then_some((begin, end))
    }
}
