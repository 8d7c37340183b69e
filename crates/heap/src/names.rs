//! What objects and references are called, asked only for what lies on a path.

use std::borrow::Cow;

/// Gives names to nodes and to the references between them.
pub trait Names {
    /// What a node is.
    fn object(&self, node: u32) -> Object;

    /// How `from` refers to `to`. `before` is the object before `from` on the path, if there is one: a dict holds attributes only where an
    /// instance comes before it. Not asked of storages, whose references are never spelled.
    fn reference(&self, before: Option<u32>, from: u32, to: u32) -> Reference;

    /// All names by which `from` refers to `to`, that of [`reference`](Self::reference) first: more than one where variables or attributes of
    /// one namespace have the same value. Asked only where the heap has more than one reference between the two.
    fn names(&self, before: Option<u32>, from: u32, to: u32) -> Vec<Reference> {
        vec![self.reference(before, from, to)]
    }
}

/// What is shown of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its type: `list`, `Tensor`, `Node`, `ConvolutionBackward0`.
    pub type_name: String,
    /// What to show: `__main__`, `list of 40`, `Tensor [64, 512] float32`. The type is shown where this is empty.
    pub detail: String,
}

/// Kinds of objects that are treated differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A module.
    Module,
    /// A class.
    Class,
    /// A function or method.
    Function,
    /// A frame, running or not, or a generator.
    Frame,
    /// A tensor. It need not have a Python object.
    Tensor,
    /// A storage.
    Storage,
    /// A block of memory.
    Block,
    /// A node of the autograd graph.
    Autograd,
    /// A part of its owner that has no name of its own: an instance's `__dict__`, a module's namespace.
    Namespace,
    /// A variable of a closure.
    Cell,
    /// A list, tuple, dict, set or deque.
    Container,
    /// Any other object.
    Instance,
}

/// How one object refers to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reference {
    /// A global of a module: `module.name`. Begins the path anew.
    Global {
        /// The module.
        module: String,
        /// The global.
        name: String,
    },
    /// A local variable of a running or suspended frame: `function:name`. Begins the path anew.
    Local {
        /// The function that runs in the frame.
        function: String,
        /// The variable.
        name: String,
    },
    /// An attribute of a class: `Class.name`. Begins the path anew.
    ClassAttribute {
        /// The class.
        class: String,
        /// The attribute.
        name: String,
    },
    /// A variable of a closure: `function.<closure>.name`. Begins the path anew.
    Closure {
        /// The function.
        function: String,
        /// The variable.
        name: String,
    },
    /// The defaults of a function: `function.__defaults__`. Begins the path anew; the default values are items of it.
    Defaults {
        /// The function.
        function: String,
    },
    /// The defaults of keyword-only parameters: `function.__kwdefaults__`. Begins the path anew; the default values are items of it.
    KeywordDefaults {
        /// The function.
        function: String,
    },
    /// Anything else that has a name of its own: `sys.last_value`, `contextvars.name`. Begins the path anew.
    Named(String),
    /// An attribute or slot of an instance, or a child, parameter or buffer of a module: `.name`. A number is an index.
    Attribute(String),
    /// An item of a list, tuple, dict, set or deque: `[*]`.
    Item,
    /// Not spelled: from an instance to its `__dict__`, from a cell to its value, from a tensor to its storage.
    Hidden,
    /// A reference of the autograd graph. Not spelled.
    Autograd(AutogradEdge),
    /// Something inside an object of a C type: `.?`
    Unknown,
}

/// How nodes of the autograd graph refer to others, and others to them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AutogradEdge {
    /// From a tensor to the node that made it.
    GradFn,
    /// From a node to the next of the backward pass.
    Next,
    /// From a node to a tensor that it saved, with the name of the saved value.
    Saved(String),
    /// From an accumulator to the tensor whose gradient it accumulates.
    Variable,
    /// From a node to the object of a custom function.
    Context,
}

impl AutogradEdge {
    /// What is shown of it: `saved input`.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Self::GradFn => ".grad_fn".into(),
            Self::Next => "next".into(),
            Self::Saved(name) if name.is_empty() => "saved".into(),
            Self::Saved(name) => format!("saved {name}").into(),
            Self::Variable => ".variable".into(),
            Self::Context => "ctx".into(),
        }
    }
}

impl Reference {
    /// Whether the path begins here anew: what was spelled before is left out.
    pub fn begins_anew(&self) -> bool {
        !matches!(self, Self::Attribute(_) | Self::Item | Self::Hidden | Self::Autograd(_) | Self::Unknown)
    }

    /// The same reference by another variable or attribute; nothing if it is not by one.
    #[must_use]
    pub fn renamed(&self, name: String) -> Option<Self> {
        Some(match self {
            Self::Global { module, .. } => Self::Global { module: module.clone(), name },
            Self::Local { function, .. } => Self::Local { function: function.clone(), name },
            Self::ClassAttribute { class, .. } => Self::ClassAttribute { class: class.clone(), name },
            Self::Attribute(_) => Self::Attribute(name),
            _ => return None,
        })
    }

    /// What is shown of it behind the object that it belongs to: `.losses` behind `__main__`. Empty for those that are not shown.
    pub fn step(&self) -> Cow<'static, str> {
        match self {
            Self::Global { name, .. } | Self::ClassAttribute { name, .. } => format!(".{name}").into(),
            Self::Local { name, .. } => format!(":{name}").into(),
            Self::Closure { name, .. } => format!(".<closure>.{name}").into(),
            Self::Defaults { .. } => ".__defaults__".into(),
            Self::KeywordDefaults { .. } => ".__kwdefaults__".into(),
            Self::Autograd(edge) => edge.name(),
            _ => self.spelling(),
        }
    }

    /// What it adds to a path; empty where it is not spelled.
    pub fn spelling(&self) -> Cow<'static, str> {
        match self {
            Self::Global { module, name } => format!("{module}.{name}").into(),
            Self::Local { function, name } => format!("{function}:{name}").into(),
            Self::ClassAttribute { class, name } => format!("{class}.{name}").into(),
            Self::Closure { function, name } => format!("{function}.<closure>.{name}").into(),
            Self::Defaults { function } => format!("{function}.__defaults__").into(),
            Self::KeywordDefaults { function } => format!("{function}.__kwdefaults__").into(),
            Self::Named(name) => name.clone().into(),
            Self::Attribute(name) if is_index(name) => "[*]".into(),
            Self::Attribute(name) => format!(".{name}").into(),
            Self::Item => "[*]".into(),
            Self::Hidden | Self::Autograd(_) => "".into(),
            Self::Unknown => ".?".into(),
        }
    }
}

/// `nn.Sequential` and `nn.ModuleList` name their children by number.
fn is_index(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
}
