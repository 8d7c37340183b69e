//! How objects and references are called, asked only for what lies on a path. No code of the user's runs: no attribute is looked up on an
//! object of theirs, nothing is compared or printed by their methods.

mod builtin_types;
mod containers;
mod frames;
mod functions;
mod objects;

use vramscope_heap::{Names, Object, Reference};

use super::memory::{
    Address, flags_of, full_type_name, is_text, mro, text, type_flag, type_name, type_of, word,
};
use super::{Namespace, StatePart, Walk, attributes, memory};

impl Names for Walk<'_> {
    fn object(&self, node: u32) -> Object {
        self.describe(node)
    }

    fn reference(&self, before: Option<u32>, from: u32, to: u32) -> Reference {
        match self.parts.get(&from) {
            Some(StatePart::Exception) => return Reference::Named("sys.exc_info()".to_owned()),
            Some(StatePart::Context | StatePart::Dict | StatePart::ExitList) => return Reference::Hidden,
            Some(StatePart::Exit) if self.parts.contains_key(&to) => return Reference::Hidden,
            Some(StatePart::Exit) => return self.at_exit(to),
            None => {}
        }
        if before.is_some_and(|node| self.parts.get(&node) == Some(&StatePart::ExitList)) {
            return self.at_exit(to);
        }
        if let Some(frame) = self.frame_of(from) {
            return self.in_frame(frame, to);
        }
        let (Some(object), Some(value)) = (self.address(from), self.address(to)) else {
            return Reference::Unknown;
        };
        if let Some(&namespace) = self.namespaces.get(&from) {
            return self.in_namespace(namespace, from, to);
        }
        // SAFETY: the nodes are objects that are alive as long as the walk is.
        unsafe {
            let class = type_of(object);
            let flags = flags_of(class);
            if flags & type_flag::TYPE != 0 {
                let is_dict = memory::dict_of_type(object) == Some(value);
                return if is_dict { Reference::Hidden } else { Reference::Unknown };
            }
            if let Some(reference) = self.in_function(object, class, value) {
                return reference;
            }
            if flags & type_flag::DICT != 0
                && let Some(reference) = self.in_dict(before, from, value)
            {
                return reference;
            }
            if let Some(reference) = self.in_instance(object, value, to) {
                return reference;
            }
            containers::in_other(object, class, value)
        }
    }

    fn names(&self, before: Option<u32>, from: u32, to: u32) -> Vec<Reference> {
        let first = self.reference(before, from, to);
        let all = self.names_of(from, to).into_iter();
        // A name that is not that of a variable or an attribute is the only one.
        let renamed: Option<Vec<Reference>> = all.map(|name| first.renamed(name)).collect();
        renamed.filter(|names| names.first() == Some(&first)).unwrap_or_else(|| vec![first])
    }
}

impl Walk<'_> {
    /// References by attributes.
    ///
    /// # Safety
    /// `object` must be alive.
    unsafe fn in_instance(&self, object: Address, value: Address, to: u32) -> Option<Reference> {
        let layout = self.trusted.values.as_ref();
        // SAFETY: the caller says so; the layout has been found to be true.
        unsafe {
            if attributes::dict(layout, object) == Some(value) {
                return Some(Reference::Hidden);
            }
            if let Some(layout) = layout
                && let Some((key, _)) =
                    attributes::inline_values(layout, object).into_iter().find(|&(_, v)| v == value)
            {
                return Some(self.attribute(key, to));
            }
            let name = attributes::slots(object).into_iter().find(|&(_, v)| v == value)?.0;
            Some(Reference::Attribute(name))
        }
    }

    /// All names of variables or attributes by which a frame, a dict or an instance refers to a value, in the order in which they are looked for.
    fn names_of(&self, from: u32, to: u32) -> Vec<String> {
        if let Some(frame) = self.frame_of(from) {
            return self.variables(frame, to);
        }
        let (Some(object), Some(value)) = (self.address(from), self.address(to)) else { return Vec::new() };
        let is_it = |&(_, found): &(Address, Address)| found == value;
        // SAFETY: the nodes are objects that are alive as long as the walk is; the layout has been found to be true.
        unsafe {
            let keys: Vec<Address> = if self.is_dict(from) {
                memory::items(object).filter(is_it).map(|(key, _)| key).collect()
            } else if let Some(layout) = &self.trusted.values {
                attributes::inline_values(layout, object)
                    .into_iter()
                    .filter(is_it)
                    .map(|(key, _)| key)
                    .collect()
            } else {
                Vec::new()
            };
            let mut names: Vec<String> = keys.into_iter().filter_map(|key| text(key)).collect();
            names.extend(
                attributes::slots(object).into_iter().filter(|&(_, v)| v == value).map(|(name, _)| name),
            );
            names
        }
    }

    /// An attribute. The registries of an `nn.Module` are not shown.
    ///
    /// # Safety
    /// `key` must be an object that is alive.
    unsafe fn attribute(&self, key: Address, to: u32) -> Reference {
        if matches!(self.namespaces.get(&to), Some(Namespace::Registry(_))) {
            return Reference::Hidden;
        }
        // SAFETY: the caller says that it is alive.
        unsafe { text(key) }.map_or(Reference::Item, Reference::Attribute)
    }

    /// References from dicts whose keys are names.
    fn in_namespace(&self, namespace: Namespace, from: u32, to: u32) -> Reference {
        let (Some(dict), Some(value)) = (self.address(from), self.address(to)) else {
            return Reference::Unknown;
        };
        match namespace {
            Namespace::AllThreads => return Reference::Hidden,
            Namespace::Module(_) | Namespace::Class(_) | Namespace::ThreadLocal | Namespace::Registry(_) => {}
        }
        // SAFETY: namespaces are dicts that are alive.
        let name = unsafe { self.key_of(from, dict, value).and_then(|key| text(key)) };
        let Some(name) = name else { return Reference::Item };
        match namespace {
            Namespace::Module(module) => Reference::Global { module: self.name_of_module(module), name },
            Namespace::Class(class) => {
                // SAFETY: the node is a type that is alive.
                let class = self.address(class).map_or_else(String::new, |class| unsafe { type_name(class) });
                Reference::ClassAttribute { class, name }
            }
            Namespace::Registry(module) if self.shows_items(module) || !is_identifier(&name) => {
                Reference::Item
            }
            Namespace::ThreadLocal | Namespace::Registry(_) | Namespace::AllThreads => {
                Reference::Attribute(name)
            }
        }
    }

    /// Whether a module's children are items rather than attributes.
    fn shows_items(&self, module: u32) -> bool {
        const CONTAINERS: [&str; 5] =
            ["ModuleList", "Sequential", "ModuleDict", "ParameterList", "ParameterDict"];
        let Some(module) = self.address(module) else { return false };
        // SAFETY: the node is an instance that is alive.
        unsafe {
            mro(type_of(module)).into_iter().any(|class| {
                let module = memory::dict_of_type(class).and_then(|dict| memory::item(dict, c"__module__"));
                CONTAINERS.contains(&type_name(class).as_str())
                    && module.and_then(|m| text(m)).is_some_and(|m| m.starts_with("torch."))
            })
        }
    }

    /// The name of a module.
    pub(super) fn name_of_module(&self, module: u32) -> String {
        let namespace = self.graph.modules.binary_search_by_key(&module, |m| m.0);
        let namespace = namespace.ok().map_or(0, |at| self.graph.modules[at].1);
        if namespace == 0 {
            return "?".to_owned();
        }
        // SAFETY: a module's namespace is a dict, and lives as long as the module.
        unsafe { memory::item(namespace, c"__name__").and_then(|name| text(name)) }
            .unwrap_or_else(|| "?".to_owned())
    }

    /// The key under which a dict has a value.
    ///
    /// # Safety
    /// `dict` must be the dict of the node.
    pub(super) unsafe fn key_of(&self, node: u32, dict: Address, value: Address) -> Option<Address> {
        const LARGE: isize = 64;
        // SAFETY: it is a dict that is alive.
        unsafe {
            if pyo3::ffi::PyDict_Size(dict as *mut _) < LARGE {
                return memory::items(dict).find(|&(_, v)| v == value).map(|(key, _)| key);
            }
            let mut keys = self.keys.borrow_mut();
            let keys = keys.entry(node).or_insert_with(|| {
                let mut keys = rustc_hash::FxHashMap::default();
                for (key, value) in memory::items(dict) {
                    keys.entry(value).or_insert(key);
                }
                keys
            });
            keys.get(&value).copied()
        }
    }

    /// Whether a node is a dict.
    pub(super) fn is_dict(&self, node: u32) -> bool {
        // SAFETY: the node is an object that is alive.
        self.address(node).is_some_and(|at| unsafe { flags_of(type_of(at)) } & type_flag::DICT != 0)
    }
}

fn is_identifier(name: &str) -> bool {
    name.chars().enumerate().all(|(i, c)| c == '_' || c.is_alphabetic() || (i > 0 && c.is_alphanumeric()))
        && !name.is_empty()
}
