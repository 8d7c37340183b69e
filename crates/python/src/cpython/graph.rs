//! Nodes and edges: objects are numbered as they are found, and each is asked once, by its type's `tp_traverse`, what it refers to.
//!
//! No code of Python runs in here, nothing of Python is allocated, and no reference is taken or given back.

use std::ffi::{c_int, c_void};

use pyo3::ffi;
use rustc_hash::FxHashMap;
use vramscope_heap::Edges;

use super::kinds::{Kinds, Special};
use super::layout::MANAGED_DICT;
use super::memory::{Address, symbol, tuple, type_of, word};
use super::pages::{column, make_room};
use super::table::{CUT, MOST_NODES, NO_NODE, Slot, Table, UNKNOWN, node, prefetch};

/// References are addresses; objects lie at multiples of 8, so the low bits are free to say more.
const MASK: usize = 7;
/// Keep the edge although references to that node are cut.
pub(super) const KEEP: usize = 1;
/// An edge that no reference count stands behind.
pub(super) const UNCOUNTED: usize = 2;

/// What is taken for the number of references to an immortal object: more than can be found.
const IMMORTAL: i32 = 1 << 30;
/// So many objects are asked before the answers are looked up: enough to hide the memory's latency.
const BATCH: usize = 256;
/// Room for so many nodes at first: what is not used costs nothing.
const MANY: usize = 4 << 20;
/// So many objects (look-ups) ahead, the memory is asked for.
const AHEAD: usize = 8;

/// Why a walk cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TooLarge {
    #[error("more than 2,147,483,646 objects")]
    Nodes,
    #[error("more than 4,294,967,295 references")]
    Edges,
}

/// The graph as far as it is known.
pub(super) struct Graph {
    /// Where the object of each node is; 0 for those that are no objects.
    pub(super) addresses: Vec<Address>,
    /// For each node: its reference count less the references found.
    pub(super) unexplained: Vec<i32>,
    pub(super) edges: Edges,
    pub(super) table: Table,
    /// Modules, with the address of their namespace.
    pub(super) modules: Vec<(u32, Address)>,
    pub(super) classes: Vec<u32>,
    pub(super) generators: Vec<u32>,
    pub(super) thread_locals: Vec<u32>,
    /// Instances of what the caller is interested in, with the tag.
    pub(super) tagged: Vec<(u32, u8)>,
    kinds: Kinds,
    immortals: bool,
    closure_of: Option<ClosureOf>,
    /// Nodes that are no objects: what they refer to.
    artificial: FxHashMap<u32, Vec<usize>>,
    /// Generators that run, with variables that they do not show meanwhile.
    running: FxHashMap<Address, Vec<usize>>,
    too_large: Option<TooLarge>,
}

type ClosureOf = unsafe extern "C" fn(*mut ffi::PyObject) -> *mut ffi::PyObject;

impl Graph {
    pub(super) fn new(kinds: Kinds, immortals: bool) -> Self {
        Self {
            addresses: column(MANY),
            unexplained: column(MANY),
            edges: Edges { offsets: Vec::new(), targets: Vec::new() },
            table: Table::new(),
            modules: Vec::new(),
            classes: Vec::new(),
            generators: Vec::new(),
            thread_locals: Vec::new(),
            tagged: Vec::new(),
            kinds,
            immortals,
            // SAFETY: the function has had this signature in all releases.
            closure_of: symbol(c"PyFunction_GetClosure").map(|f| unsafe { std::mem::transmute(f) }),
            artificial: FxHashMap::default(),
            running: FxHashMap::default(),
            too_large: None,
        }
    }

    pub(super) fn n_nodes(&self) -> u32 {
        self.addresses.len() as u32
    }

    /// The node of the object at an address.
    pub(super) fn find(&self, address: Address) -> Option<u32> {
        let node = self.table.find(address)?;
        (self.addresses.get(node as usize) == Some(&address)).then_some(node)
    }

    /// Makes an object a node, if it is of those that are; says which.
    ///
    /// # Safety
    /// `object` must be one that is alive.
    #[inline]
    pub(super) unsafe fn add(&mut self, object: Address) -> Option<u32> {
        let slot = self.table.slot(object);
        let known = self.table.get(slot);
        // SAFETY: the caller says that it is alive.
        node(if known == UNKNOWN { unsafe { self.add_at(slot, object) } } else { known })
    }

    #[inline]
    unsafe fn add_at(&mut self, slot: Slot, object: Address) -> u32 {
        // SAFETY: it is an object that is alive, so it has a type.
        let (kind, is_node) = unsafe {
            let kind = *self.kinds.of(type_of(object));
            (kind, kind.is_node(object))
        };
        if !is_node {
            self.table.set(slot, NO_NODE);
            return NO_NODE;
        }
        if self.addresses.len() >= MOST_NODES {
            self.too_large = Some(TooLarge::Nodes);
            return NO_NODE;
        }
        let number = self.addresses.len() as u32;
        let mut known = number + 1;
        make_room(&mut self.addresses, 1);
        make_room(&mut self.unexplained, 1);
        self.addresses.push(object);
        // SAFETY: every object begins with its reference count.
        self.unexplained.push(unsafe { count(object, self.immortals) });
        if kind.tag != 0 {
            self.tagged.push((number, kind.tag));
        }
        match kind.special {
            Special::No | Special::Function | Special::Array | Special::HidesDict => {}
            Special::Class => self.classes.push(number),
            Special::Module => {
                // SAFETY: it is a module; the dict is borrowed.
                let namespace = unsafe { ffi::PyModule_GetDict(object as *mut _) } as Address;
                self.modules.push((number, namespace));
                known |= CUT;
            }
            Special::Generator => self.generators.push(number),
            Special::ThreadLocal => self.thread_locals.push(number),
        }
        self.table.set(slot, known);
        known
    }

    /// A node that is no object, with what it refers to.
    pub(super) fn add_artificial(&mut self, references: Vec<usize>) -> u32 {
        let number = self.addresses.len() as u32;
        self.addresses.push(0);
        self.unexplained.push(0);
        self.artificial.insert(number, references);
        number
    }

    /// A generator that runs, with the variables that it will not show.
    pub(super) fn add_running(&mut self, generator: Address, variables: Vec<usize>) {
        self.running.insert(generator, variables);
    }

    /// Cuts references to the namespaces of the modules that are known from `from` on.
    ///
    /// # Safety
    /// Modules and their namespaces must be alive.
    unsafe fn cut_namespaces(&mut self, from: usize) {
        for at in from..self.modules.len() {
            let (_, namespace) = self.modules[at];
            // SAFETY: a module's dict lives as long as the module.
            if namespace != 0 && unsafe { self.add(namespace) }.is_some() {
                let slot = self.table.slot(namespace);
                let known = self.table.get(slot);
                self.table.set(slot, known | CUT);
            }
        }
    }

    /// Asks all nodes what they refer to, and those that are found by that, until none is left.
    ///
    /// # Safety
    /// All nodes must be alive, and nothing may change them meanwhile: the GIL is held, and nothing of Python runs.
    pub(super) unsafe fn follow(&mut self) -> Result<(), TooLarge> {
        let mut answers = Answers(Vec::with_capacity(16 * BATCH));
        let mut ends = Vec::with_capacity(BATCH);
        let (mut slots, mut found): (Vec<Slot>, Vec<u32>) = (Vec::new(), Vec::new());
        let (mut next, mut modules) = (0, 0);
        self.edges = Edges {
            offsets: column(self.addresses.len() + self.addresses.len() / 4 + 1),
            targets: column(3 * self.addresses.len()),
        };
        self.edges.offsets.push(0);
        while next < self.addresses.len() {
            // SAFETY: they are alive.
            unsafe { self.cut_namespaces(modules) };
            modules = self.modules.len();
            let end = self.addresses.len().min(next + BATCH);
            answers.0.clear();
            ends.clear();
            for at in next..end {
                if let Some(&later) = self.addresses.get(at + AHEAD) {
                    prefetch(later);
                    prefetch(later + 64);
                }
                // SAFETY: the node is alive, or artificial.
                unsafe { self.ask(at as u32, &mut answers) };
                ends.push(answers.0.len());
            }
            // Where the answers are kept in the table …
            slots.clear();
            for &reference in &answers.0 {
                let slot = self.table.slot(reference & !MASK);
                self.table.prefetch(slot);
                slots.push(slot);
            }
            // … which nodes they are …
            found.clear();
            for (&reference, &slot) in answers.0.iter().zip(&slots) {
                let known = self.table.get(slot);
                // SAFETY: an object that is alive refers to it.
                let known =
                    if known == UNKNOWN { unsafe { self.add_at(slot, reference & !MASK) } } else { known };
                if let Some(count) = node(known).and_then(|n| self.unexplained.get(n as usize)) {
                    prefetch(std::ptr::from_ref(count) as usize);
                }
                found.push(known);
            }
            // … and what that makes of them.
            make_room(&mut self.edges.targets, answers.0.len());
            make_room(&mut self.edges.offsets, ends.len());
            let mut start = 0;
            for &end in &ends {
                for (&reference, &known) in answers.0[start..end].iter().zip(&found[start..end]) {
                    let Some(target) = node(known) else { continue };
                    if reference & UNCOUNTED == 0 {
                        self.unexplained[target as usize] -= 1;
                    }
                    if known & CUT == 0 || reference & KEEP != 0 {
                        self.edges.targets.push(target);
                    }
                }
                start = end;
                self.edges.offsets.push(self.edges.targets.len() as u32);
            }
            if self.edges.targets.len() > u32::MAX as usize {
                return Err(TooLarge::Edges);
            }
            if let Some(too_large) = self.too_large.take() {
                return Err(too_large);
            }
            next = end;
        }
        Ok(())
    }

    /// Appends what a node refers to.
    ///
    /// # Safety
    /// As of [`follow`](Self::follow).
    #[inline]
    unsafe fn ask(&mut self, number: u32, answers: &mut Answers) {
        let object = self.addresses[number as usize];
        let start = answers.0.len();
        if object == 0 {
            if let Some(references) = self.artificial.get(&number) {
                answers.0.extend_from_slice(references);
            }
            return;
        }
        // SAFETY: it is an object that is alive. `visit` does nothing but append to the list that it is given.
        let special = unsafe {
            let kind = self.kinds.of(type_of(object));
            if let Some(traverse) = kind.traverse {
                traverse(object as *mut _, visit, std::ptr::from_mut(answers).cast());
            }
            kind.special
        };
        match special {
            Special::No | Special::Class | Special::ThreadLocal => {}
            Special::Module => {
                // SAFETY: it is a module; the dict is borrowed.
                let namespace = unsafe { ffi::PyModule_GetDict(object as *mut _) } as Address;
                answers.mark(start, namespace, KEEP);
            }
            Special::Function => {
                let Some(closure_of) = self.closure_of else { return };
                // The tuple stays: without it nothing would seem to hold it. The way round it is shorter, so that is the one shown.
                // SAFETY: it is a function; the tuple is borrowed, and one of cells.
                let cells = unsafe { tuple(closure_of(object as *mut _) as Address) };
                answers.0.extend(cells.iter().filter(|&&cell| cell != 0).map(|cell| cell | UNCOUNTED));
            }
            Special::Generator => {
                if let Some(variables) = self.running.get(&object) {
                    answers.0.extend_from_slice(variables);
                }
            }
            Special::HidesDict => {
                // SAFETY: instances of such types have that before them.
                let dict = unsafe { word(object - MANAGED_DICT) };
                if dict != 0 && !answers.0[start..].contains(&dict) {
                    answers.0.push(dict);
                }
            }
            Special::Array => {
                // SAFETY: the field has been there since numpy 1.7.
                let base = unsafe { word(object + BASE_OF_ARRAY) };
                if base != 0 {
                    answers.0.push(base);
                }
            }
        }
    }
}

/// Where an array of numpy has what it is a view of.
pub(super) const BASE_OF_ARRAY: usize = 48;

/// What objects said that they refer to: addresses, with what the low bits say.
struct Answers(Vec<usize>);

impl Answers {
    /// Marks the first reference to `target` from `start` on.
    fn mark(&mut self, start: usize, target: Address, with: usize) {
        if let Some(answer) = self.0[start..].iter_mut().find(|a| **a == target) {
            *answer |= with;
        }
    }
}

/// How many references there are to an object.
///
/// # Safety
/// `object` must be one that is alive.
#[inline]
pub(super) unsafe fn count(object: Address, immortals: bool) -> i32 {
    // SAFETY: every object begins with its reference count.
    let all = unsafe { word(object) };
    if immortals {
        let low = all as u32 as i32;
        return if low < 0 { IMMORTAL } else { low.min(IMMORTAL) };
    }
    i32::try_from(all).unwrap_or(IMMORTAL).min(IMMORTAL)
}

/// Appends to the answers that `answers` points to.
unsafe extern "C" fn visit(object: *mut ffi::PyObject, answers: *mut c_void) -> c_int {
    let object = object as usize;
    if object != 0 && object & MASK == 0 {
        // SAFETY: `ask` passes answers that nobody else uses meanwhile.
        unsafe { (*answers.cast::<Answers>()).0.push(object) };
    }
    0
}
