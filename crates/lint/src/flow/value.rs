//! What is known about a value: a small lattice whose top is "unknown".

use std::sync::Arc;

use smallvec::SmallVec;

use crate::names::{ClassId, FunctionId};

/// A file of the project by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileId(pub(crate) u32);

/// What is known about a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Value {
    /// Nothing.
    #[default]
    Unknown,
    /// Numbers, text, `None`, shapes, devices, dtypes, arrays of `NumPy`: nothing that holds device memory or a graph.
    Plain,
    Tensor(Tensor),
    /// Lists, tuples, dicts, sets, iterators.
    Group(Arc<Group>),
    /// An instance of a class.
    Object(Class),
    /// A class.
    Type(Class),
    /// A function of the project; bound to an object if it was read as a method.
    Function(FileId, FunctionId),
    /// Something imported, by its dotted name.
    External(Arc<str>),
}

/// A tensor or array of a deep-learning framework.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) graph: Graph,
    pub(crate) place: Place,
    pub(crate) size: Size,
    /// Whether it is only a window into a larger tensor, by basic indexing.
    pub(crate) is_view: bool,
    /// The operations of which it is the result, in the graph of the function that was followed.
    pub(crate) nodes: Nodes,
}

/// Operations by their numbers in a [`Tape`](super::tape::Tape).
pub(crate) type Nodes = SmallVec<[u32; 2]>;

/// Whether a tensor drags the graph of its computation along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Graph {
    /// It does not: data, detached, computed without gradients, or of a type that has none.
    Detached,
    Unknown,
    /// It does if names mean what they usually mean: what `model(x)` returns.
    Likely,
    /// It does.
    Attached,
}

/// Where a tensor lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Host,
    Device,
    Unknown,
}

/// How large a tensor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// One number.
    Scalar,
    /// One number an item: the result of `argmax` and its like.
    Indices,
    Array,
    Unknown,
}

/// Several values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) kind: GroupKind,
    /// What is known of all elements; of a dict: of its values.
    pub(crate) element: Value,
    /// Of a tuple or list that was written out: each.
    pub(crate) parts: Vec<Value>,
    /// Whether it drops old elements by itself: `deque(maxlen=…)`.
    pub(crate) is_bounded: bool,
    /// How many groups are in one another here.
    depth: u8,
}

/// Deeper groups of groups are taken for what lies in them: values that grow with each assignment would have no end.
const DEEPEST: u8 = 4;

/// How many operations are remembered of a sum; of what is left out it is not known that it stays.
const NODES: usize = 16;

impl Group {
    pub(crate) fn new(kind: GroupKind, element: Value, parts: Vec<Value>, is_bounded: bool) -> Self {
        let depth = parts.iter().chain([&element]).map(Value::depth).max().unwrap_or(0) + 1;
        if depth > DEEPEST {
            let flat = |it: &Value| it.tensor_within().map_or(Value::Unknown, |it| Value::Tensor(it.clone()));
            let parts: Vec<Value> = parts.iter().map(flat).collect();
            return Self { kind, element: flat(&element), parts, is_bounded, depth: 1 };
        }
        Self { kind, element, parts, is_bounded, depth }
    }

    /// The same group of other values.
    pub(crate) fn with(&self, element: Value, parts: Vec<Value>) -> Self {
        Self::new(self.kind, element, parts, self.is_bounded)
    }
}

/// What kind of group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupKind {
    List,
    Tuple,
    Dict,
    Set,
    /// Made anew as it is read: generators, `zip`, `map`.
    Iterator,
}

/// A class of the project, or one imported.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    Project(FileId, ClassId),
    External(Arc<str>),
}

impl Tensor {
    pub(crate) fn data() -> Self {
        Self {
            graph: Graph::Detached,
            place: Place::Unknown,
            size: Size::Unknown,
            is_view: false,
            nodes: Nodes::new(),
        }
    }

    fn join(&self, other: &Self) -> Self {
        let mut nodes = self.nodes.clone();
        for node in &other.nodes {
            if nodes.len() < NODES && !nodes.contains(node) {
                nodes.push(*node);
            }
        }
        Self {
            // What one branch attaches is attached if that branch is taken.
            graph: self.graph.max(other.graph),
            place: if self.place == other.place { self.place } else { Place::Unknown },
            size: if self.size == other.size { self.size } else { Size::Unknown },
            is_view: self.is_view && other.is_view,
            nodes,
        }
    }
}

impl Value {
    pub(crate) fn group(kind: GroupKind, element: Self) -> Self {
        Self::Group(Arc::new(Group::new(kind, element, Vec::new(), false)))
    }

    /// A group that was written out.
    pub(crate) fn written_out(kind: GroupKind, parts: Vec<Self>) -> Self {
        let element = parts.iter().cloned().reduce(|a, b| a.join(&b)).unwrap_or_default();
        Self::Group(Arc::new(Group::new(kind, element, parts, false)))
    }

    fn depth(&self) -> u8 {
        self.as_group().map_or(0, |it| it.depth)
    }

    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    pub(crate) fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    pub(crate) fn as_group(&self) -> Option<&Group> {
        match self {
            Self::Group(group) => Some(group),
            _ => None,
        }
    }

    /// The tensor that it is or that its elements are.
    pub(crate) fn tensor_within(&self) -> Option<&Tensor> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            Self::Group(group) => group
                .parts
                .iter()
                .filter_map(Self::tensor_within)
                .max_by_key(|it| it.graph)
                .or_else(|| group.element.tensor_within()),
            _ => None,
        }
    }

    /// What is known when either may be the case.
    pub(crate) fn join(&self, other: &Self) -> Self {
        if self == other {
            return self.clone();
        }
        match (self, other) {
            (Self::Tensor(a), Self::Tensor(b)) => Self::Tensor(a.join(b)),
            (Self::Group(a), Self::Group(b)) if a.kind == b.kind => {
                let parts = if a.parts.len() == b.parts.len() {
                    a.parts.iter().zip(&b.parts).map(|(a, b)| a.join(b)).collect()
                } else {
                    Vec::new()
                };
                let is_bounded = a.is_bounded && b.is_bounded;
                Self::Group(Arc::new(Group::new(
                    a.kind,
                    a.element.join_element(&b.element),
                    parts,
                    is_bounded,
                )))
            }
            // `total = 0` before the loop, `total += loss` in it; `hidden = None` at first.
            (Self::Tensor(_) | Self::Group(_) | Self::Object(_), Self::Plain) => self.clone(),
            (Self::Plain, Self::Tensor(_) | Self::Group(_) | Self::Object(_)) => other.clone(),
            _ => Self::Unknown,
        }
    }

    /// Like `join`, but an empty group, of whose elements nothing is known, does not make one forget the other's.
    fn join_element(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Unknown, known) | (known, Self::Unknown) => known.clone(),
            _ => self.join(other),
        }
    }

    /// The same value as the result of one operation.
    pub(crate) fn computed_by(&self, node: u32) -> Self {
        match self {
            Self::Tensor(tensor) => {
                Self::Tensor(Tensor { nodes: std::iter::once(node).collect(), ..tensor.clone() })
            }
            Self::Group(group) => Self::Group(Arc::new(group.with(
                group.element.computed_by(node),
                group.parts.iter().map(|it| it.computed_by(node)).collect(),
            ))),
            _ => self.clone(),
        }
    }

    /// Without what has a meaning only in the function that it comes from.
    pub(crate) fn without_nodes(&self) -> Self {
        match self {
            Self::Tensor(tensor) => Self::Tensor(Tensor { nodes: Nodes::new(), ..tensor.clone() }),
            Self::Group(group) => {
                Self::Group(Arc::new(group.with(
                    group.element.without_nodes(),
                    group.parts.iter().map(Self::without_nodes).collect(),
                )))
            }
            _ => self.clone(),
        }
    }
}
