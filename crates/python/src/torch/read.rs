//! Reads what torch's objects hold, from the Python objects that the heap walk found, in one pass in which nothing of Python or torch runs.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::class::{ClassId, Classes, Family};
use super::getters::IN_PYBIND;
use super::graph::{Device, Edge, Function, Graph, Label, Node, Owners, Storage, Tensor};
use super::layout::{Count, Held, Layout};
use super::memory::Memory;
use super::names::last_part;
use super::scan::{self, Found};

/// Tensors of more dimensions are taken to be damaged.
const MOST_DIMENSIONS: u64 = 64;
/// Up to this many sizes lie in the tensor itself.
const INLINE_DIMENSIONS: u64 = 5;
/// Longer lists of next functions, saved tensors or hooks are taken to be damaged.
const LONGEST_LIST: usize = 1 << 20;
/// The class of a custom function's C++ side.
const PYTHON_FUNCTION: &str = "torch::autograd::PyNode";
/// A tensor that has nothing but a storage.
const PLAIN_TENSOR: &str = "c10::TensorImpl";
/// Sizes above this are not plain numbers: torch marks symbolic ones in the highest bits.
const LARGEST_SIZE: u64 = 1 << 56;

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

/// How functions of one class are read.
#[derive(Clone, Debug)]
enum Kind {
    /// A custom function of Python: its `ctx` has what it saved.
    Context,
    Known(Rc<[Saved]>),
    Guess,
}

/// A saved tensor, or a list of them, in functions of one class.
#[derive(Clone, Copy, Debug)]
struct Saved {
    name: u16,
    at: usize,
    list: bool,
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

    /// The tensor at this address, if it is one that lives.
    fn tensor_at(&mut self, address: usize) -> Option<Node> {
        if let Some(&known) = self.seen.get(&address) {
            return Some(known).filter(|known| matches!(known, Node::Tensor(_)));
        }
        let (class, family) = self.classes.of(&mut self.memory, address)?;
        if family != Family::Tensor {
            return None;
        }
        let held = self.layout.tensor.held;
        let (object, owners) = self.owners(address, held)?;
        let shape = self.shape(address);
        let dtype = self.layout.tensor.dtype.and_then(|at| self.memory.byte(address + at));
        let node = Node::Tensor(self.graph.tensors.len() as u32);
        self.graph.tensors.push(Tensor { address, class, object, owners, shape, dtype });
        self.seen.insert(address, node);
        Some(node)
    }

    /// Who owns a tensor or storage, as far as it says so itself. `None` if nobody does: it is being destroyed.
    fn owners(&mut self, address: usize, held: Held) -> Option<(Option<u32>, Owners)> {
        let word = self.memory.word(address + 8)?;
        let count = word as u32;
        if held.counts && count == 0 {
            return None;
        }
        let mut owners = Owners { counted: held.counts.then_some(count), found: 0, keep_object: false };
        let back = held.back.and_then(|back| self.memory.word(address + back)).unwrap_or(0);
        let object = (back & !1) as usize;
        let Some(number) = (object != 0).then(|| (self.number)(object)).flatten() else {
            return Some((None, owners));
        };
        if self.memory.pointer(object + held.at) != Some(address) {
            return Some((None, owners));
        }
        owners.found = u32::from(self.owns(object, held));
        // Up to 2.9 a mark in the pointer says who owns whom; from 2.10 on the highest bit of the count says that there is an object, which all other owners together keep.
        owners.keep_object = back & 1 == 1 || (word >> 63 == 1 && count > 1);
        Some((Some(number), owners))
    }

    fn shape(&mut self, tensor: usize) -> std::ops::Range<u32> {
        let start = self.graph.sizes.len() as u32;
        if let Some(at) = self.layout.tensor.sizes
            && let Some(dimensions) =
                self.memory.word(tensor + at).filter(|&dimensions| dimensions <= MOST_DIMENSIONS)
        {
            let inline = tensor + at + 8;
            let sizes =
                if dimensions <= INLINE_DIMENSIONS { Some(inline) } else { self.memory.pointer(inline) };
            if let Some(sizes) = sizes {
                for n in 0..dimensions as usize {
                    let size = self.memory.word(sizes + 8 * n).unwrap_or(0);
                    self.graph.sizes.push(size as i64);
                }
            }
        }
        start..self.graph.sizes.len() as u32
    }

    fn storage_at(&mut self, address: usize) -> Option<Node> {
        if let Some(&known) = self.seen.get(&address) {
            return Some(known).filter(|known| matches!(known, Node::Storage(_)));
        }
        if !self.classes.is(&mut self.memory, address, Family::Storage) {
            return None;
        }
        let at = self.layout.storage;
        let (object, owners) = self.owners(address, at.held)?;
        let data = self.memory.word(address + at.data).unwrap_or(0) as usize;
        let bytes = self.memory.word(address + at.bytes).filter(|&bytes| bytes < LARGEST_SIZE).unwrap_or(0);
        let device = at.device.and_then(|device| {
            Some(Device {
                kind: self.memory.byte(address + device)? as i8,
                index: self.memory.byte(address + device + 1)? as i8,
            })
        });
        let node = Node::Storage(self.graph.storages.len() as u32);
        self.graph.storages.push(Storage {
            address,
            object,
            owners,
            data,
            bytes,
            device: device.unwrap_or(Device::UNKNOWN),
        });
        self.seen.insert(address, node);
        Some(node)
    }

    fn function_at(&mut self, address: usize) -> Option<Node> {
        if let Some(&known) = self.seen.get(&address) {
            return Some(known).filter(|known| matches!(known, Node::Function(_)));
        }
        let (class, family) = self.classes.of(&mut self.memory, address)?;
        let layout = self.layout;
        let at = layout.function.as_ref().filter(|_| family == Family::Function)?;
        let counted = at.count.of(&mut self.memory, address);
        if counted == Some(0) {
            return None;
        }
        let mut owners = Owners { counted, found: 0, keep_object: false };
        let context = matches!(self.kind(class), Kind::Context);
        let (back, forth) = match self.layout.context.filter(|_| context) {
            Some(context) => (Some(context.back), context.function),
            None => (at.back, at.in_object),
        };
        let back = back.and_then(|back| self.memory.word(address + back)).unwrap_or(0);
        let python = (back & !1) as usize;
        let object = (python != 0)
            .then(|| (self.number)(python))
            .flatten()
            .filter(|_| self.memory.pointer(python + forth) == Some(address));
        if object.is_some() {
            // Where the count is not inside, `ctx` refers to its function only weakly.
            owners.found = u32::from(!context || at.count == Count::Inside);
            let counts_object = at.count == Count::Inside
                && self.memory.word(address + 8).is_some_and(|word| word >> 63 == 1);
            owners.keep_object = if at.count == Count::Inside {
                counts_object && counted.is_some_and(|counted| counted > 1)
            } else {
                context
            };
        }
        let node = Node::Function(self.graph.functions.len() as u32);
        self.graph.functions.push(Function { address, class, object, owners });
        self.seen.insert(address, node);
        Some(node)
    }

    fn tensor(&mut self, index: u32, address: usize, class: ClassId) {
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

    fn function(&mut self, index: u32, address: usize, class: ClassId) {
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

    fn guess(&mut self, this: Node, address: usize, class: ClassId, from: usize) {
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

    fn kind(&mut self, class: ClassId) -> Kind {
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

    fn kind_of_name(&mut self, class: ClassId) -> Kind {
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
    fn saved(&mut self, this: Node, place: usize, name: u16) {
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

    fn saved_list(&mut self, this: Node, place: usize, name: u16) {
        let Some(size) = self.layout.saved.as_ref().map(|saved| saved.size) else { return };
        if let Some((begin, end)) = self.list(place, size) {
            for saved in (begin..end).step_by(size) {
                self.saved(this, saved, name);
            }
        }
    }

    /// The Python objects that hooks made of a saved tensor.
    fn packed(&mut self, this: Node, hooks: usize, name: u16) {
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

    fn hooks(&mut self, this: Node, place: usize) {
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
    fn list(&mut self, place: usize, stride: usize) -> Option<(usize, usize)> {
        let (begin, end) = (self.memory.pointer(place)?, self.memory.pointer(place + 8)?);
        let bytes = end.checked_sub(begin)?;
        (bytes > 0 && bytes.is_multiple_of(stride) && bytes / stride <= LONGEST_LIST).then_some((begin, end))
    }
}
