//! Heaps written down as short texts, for tests.
//!
//! ```text
//! root own-module __main__        # a root and its kind; the node is a module, class or frame by the kind
//! list losses                     # an object: its kind or type, then its name
//! tensor loss 16MiB born 3        # with a storage and a block of its own, `loss.storage` and `loss.block`
//! __main__ global(losses) losses  # from, reference, to
//! losses [*] loss
//! ```
//!
//! Kinds are `module`, `class`, `function`, `frame`, `namespace`, `cell`, `autograd`, `list`, `tuple`, `dict`, `storage`, `block` (with bytes, and
//! perhaps `pending`), `tensor` (with bytes, or without any memory); anything else is the type of an instance, except that `autograd` is followed
//! by its type. References are `.name`, `[*]`, `~` (hidden), `?` (unknown), `global(name)`, `local(name)`, `class(name)`, `closure(name)` (all of
//! the object on the left, or of another if it is named: `global(__main__:losses)`), `defaults`, `kwdefaults`, `named(text)`, and of the autograd graph `grad_fn`, `next`, `saved(name)`, `variable`, `context`.
//! `outside`, `hidden`, `avoided`, `registry` (where parameters are meant to be), `nn` (a module of a neural network), `dead … reason` and `role … parameter` say more of a node.

use rustc_hash::FxHashMap;
use vramscope_model::Bytes;

use crate::graph::{Block, BlockState, Edges, Heap, Role, Root, RootKind};
use crate::names::{AutogradEdge, Names, Object, ObjectKind, Reference};

/// The names of a heap that was written down.
#[derive(Clone, Debug, Default)]
pub struct Script {
    objects: Vec<Object>,
    numbers: FxHashMap<String, u32>,
    references: FxHashMap<(u32, u32), Vec<Reference>>,
}

impl Script {
    /// The node of a name.
    pub fn node(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    fn add(&mut self, name: &str, kind: ObjectKind, type_name: &str) -> u32 {
        let node = self.objects.len() as u32;
        let detail = match kind {
            ObjectKind::Module | ObjectKind::Class | ObjectKind::Function | ObjectKind::Frame => {
                name.to_owned()
            }
            _ => String::new(),
        };
        self.objects.push(Object { kind, type_name: type_name.to_owned(), detail });
        self.numbers.insert(name.to_owned(), node);
        node
    }

    fn refer(&mut self, edge: (u32, u32), reference: Reference) {
        self.references.entry(edge).or_default().push(reference);
    }

    fn find(&self, name: &str) -> Result<u32, String> {
        self.node(name).ok_or_else(|| format!("there is no `{name}`"))
    }
}

impl Names for Script {
    fn object(&self, node: u32) -> Object {
        self.objects.get(node as usize).cloned().unwrap_or(Object {
            kind: ObjectKind::Instance,
            type_name: "?".into(),
            detail: String::new(),
        })
    }

    fn reference(&self, _: Option<u32>, from: u32, to: u32) -> Reference {
        let names = self.references.get(&(from, to));
        names.and_then(|names| names.first()).cloned().unwrap_or(Reference::Unknown)
    }

    fn names(&self, _: Option<u32>, from: u32, to: u32) -> Vec<Reference> {
        self.references.get(&(from, to)).cloned().unwrap_or_default()
    }
}

/// Reads a heap from its text.
///
/// # Errors
///
/// The first line that cannot be read, and why.
pub fn read(text: &str) -> Result<(Heap, Script), String> {
    let mut heap = Heap::default();
    let mut script = Script::default();
    let mut edges: Vec<(u32, u32)> = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words.is_empty() {
            let read = read_line(&words, &mut heap, &mut script, &mut edges);
            read.map_err(|error| format!("{}: {error}", line.trim()))?;
        }
    }
    heap.n_nodes = script.objects.len() as u32;
    // Stable: references of a node stay in their order.
    edges.sort_by_key(|&(from, _)| from);
    let offsets =
        (0..=heap.n_nodes).map(|node| edges.partition_point(|&(from, _)| from < node) as u32).collect();
    heap.edges = Edges { offsets, targets: edges.into_iter().map(|(_, to)| to).collect() };
    Ok((heap, script))
}

fn read_line(
    words: &[&str],
    heap: &mut Heap,
    script: &mut Script,
    edges: &mut Vec<(u32, u32)>,
) -> Result<(), String> {
    match *words {
        ["root", kind, name] => {
            let (kind, object) = root_kind(kind)?;
            let node = script.node(name).unwrap_or_else(|| script.add(name, object, &type_of(object)));
            heap.roots.push(Root { kind, node });
        }
        ["outside", name] => heap.held_outside.push(script.find(name)?),
        ["avoided", name] => heap.avoided.push(script.find(name)?),
        ["registry", name] => heap.registries.push(script.find(name)?),
        ["nn", name] => heap.modules.push(script.find(name)?),
        ["hidden", name] => heap.hidden.push(script.find(name)?),
        ["dead", name, ref reason @ ..] => heap.dead.push((script.find(name)?, reason.join(" "))),
        ["role", name, role] => heap.roles.push((script.find(name)?, read_role(role)?)),
        ["tensor", name] => {
            script.add(name, ObjectKind::Tensor, "Tensor");
        }
        ["tensor", name, bytes, ref more @ ..] => {
            let tensor = script.add(name, ObjectKind::Tensor, "Tensor");
            let storage = script.add(&format!("{name}.storage"), ObjectKind::Storage, "UntypedStorage");
            heap.storages.push(storage);
            let block = add_block(&format!("{name}.block"), bytes, more, heap, script)?;
            heap.more_edges.extend([(tensor, storage), (storage, block)]);
            script.refer((tensor, storage), Reference::Hidden);
            script.refer((storage, block), Reference::Hidden);
        }
        ["block", name, bytes, ref more @ ..] => {
            add_block(name, bytes, more, heap, script)?;
        }
        ["storage", name] => {
            let node = script.add(name, ObjectKind::Storage, "UntypedStorage");
            heap.storages.push(node);
        }
        ["autograd", name, type_name] => {
            let node = script.add(name, ObjectKind::Autograd, type_name);
            heap.autograd.push(node);
        }
        [kind, name] => {
            let (kind, type_name) = object_kind(kind);
            script.add(name, kind, &type_name);
        }
        [from, reference, to] => {
            let reference = read_reference(reference, from)?;
            let edge = (script.find(from)?, script.find(to)?);
            script.refer(edge, reference);
            edges.push(edge);
        }
        _ => return Err("not a line of a heap".into()),
    }
    Ok(())
}

fn add_block(
    name: &str,
    bytes: &str,
    more: &[&str],
    heap: &mut Heap,
    script: &mut Script,
) -> Result<u32, String> {
    let node = script.add(name, ObjectKind::Block, "block");
    let digits = bytes.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match bytes.strip_prefix(digits) {
        Some("" | "B") => 1,
        Some("KiB") => 1 << 10,
        Some("MiB") => 1 << 20,
        Some("GiB") => 1 << 30,
        _ => return Err(format!("`{bytes}` is not a size")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("`{bytes}` is not a size"))?;
    let mut block = Block {
        node,
        address: heap.blocks.last().map_or(0x1000, |last| last.address.saturating_add(last.bytes.0.max(1))),
        bytes: Bytes(number.saturating_mul(unit)),
        device: Some(0),
        state: BlockState::Allocated,
        born: None,
    };
    match *more {
        [] => {}
        ["pending"] => block.state = BlockState::PendingFree,
        ["born", born] => block.born = born.parse().ok(),
        _ => return Err(format!("`{}` says nothing of a block", more.join(" "))),
    }
    heap.blocks.push(block);
    Ok(node)
}

fn root_kind(text: &str) -> Result<(RootKind, ObjectKind), String> {
    Ok(match text {
        "own-module" => (RootKind::OwnModule, ObjectKind::Module),
        "own-frame" => (RootKind::OwnFrame, ObjectKind::Frame),
        "own-class" => (RootKind::OwnClass, ObjectKind::Class),
        "generator" => (RootKind::Generator, ObjectKind::Frame),
        "library-module" => (RootKind::LibraryModule, ObjectKind::Module),
        "library-frame" => (RootKind::LibraryFrame, ObjectKind::Frame),
        "library-class" => (RootKind::LibraryClass, ObjectKind::Class),
        "thread-local" => (RootKind::ThreadLocal, ObjectKind::Instance),
        "context-variable" => (RootKind::ContextVariable, ObjectKind::Instance),
        "exception" => (RootKind::Exception, ObjectKind::Instance),
        "interactive-output" => (RootKind::InteractiveOutput, ObjectKind::Container),
        "atexit" => (RootKind::AtExit, ObjectKind::Instance),
        "interpreter" => (RootKind::Interpreter, ObjectKind::Instance),
        _ => return Err(format!("`{text}` is no kind of root")),
    })
}

fn type_of(kind: ObjectKind) -> String {
    match kind {
        ObjectKind::Module => "module",
        ObjectKind::Class => "type",
        ObjectKind::Function => "function",
        ObjectKind::Frame => "frame",
        ObjectKind::Container | ObjectKind::Namespace => "dict",
        ObjectKind::Cell => "cell",
        _ => "object",
    }
    .into()
}

fn object_kind(text: &str) -> (ObjectKind, String) {
    let kind = match text {
        "module" => ObjectKind::Module,
        "class" => ObjectKind::Class,
        "function" => ObjectKind::Function,
        "frame" => ObjectKind::Frame,
        "namespace" => ObjectKind::Namespace,
        "cell" => ObjectKind::Cell,
        "list" | "tuple" | "dict" | "set" | "deque" => return (ObjectKind::Container, text.into()),
        _ => return (ObjectKind::Instance, text.into()),
    };
    (kind, type_of(kind))
}

fn read_role(text: &str) -> Result<Role, String> {
    Ok(match text {
        "parameter" => Role::Parameter,
        "gradient" => Role::Gradient,
        "optimizer-state" => Role::OptimizerState,
        "buffer" => Role::Buffer,
        _ => return Err(format!("`{text}` is no role")),
    })
}

fn read_reference(text: &str, from: &str) -> Result<Reference, String> {
    if let Some(name) = text.strip_prefix('.') {
        return Ok(Reference::Attribute(name.into()));
    }
    let (word, name) = match text.split_once('(') {
        Some((word, name)) => (word, name.trim_end_matches(')')),
        None => (text, ""),
    };
    let (from, name) = name.split_once(':').unwrap_or((from, name));
    let (from, name) = (from.to_owned(), name.to_owned());
    Ok(match word {
        "[*]" => Reference::Item,
        "~" => Reference::Hidden,
        "?" => Reference::Unknown,
        "global" => Reference::Global { module: from, name },
        "local" => Reference::Local { function: from, name },
        "class" => Reference::ClassAttribute { class: from, name },
        "closure" => Reference::Closure { function: from, name },
        "defaults" => Reference::Defaults { function: from },
        "kwdefaults" => Reference::KeywordDefaults { function: from },
        "named" => Reference::Named(name),
        "grad_fn" => Reference::Autograd(AutogradEdge::GradFn),
        "next" => Reference::Autograd(AutogradEdge::Next),
        "saved" => Reference::Autograd(AutogradEdge::Saved(name)),
        "variable" => Reference::Autograd(AutogradEdge::Variable),
        "context" => Reference::Autograd(AutogradEdge::Context),
        _ => return Err(format!("`{text}` is no reference")),
    })
}
