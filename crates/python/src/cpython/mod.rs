//! The walk of `CPython`'s heap: every object that the collector knows or that can be reached from one, what refers to what, where paths may
//! begin, and how references are called.
//!
//! It works on one binary for all releases. What the stable interface does not offer is read from memory, at offsets that are written down
//! in [`layout`] and compared with the running interpreter in [`probe`] before they are believed.
//!
//! It refuses to know anything of torch: the caller says which types it is interested in.
#![allow(unsafe_code, reason = "reads the memory of the interpreter; each block says why it may")]

mod attributes;
mod collected;
mod exit;
mod graph;
pub(crate) mod inspect;
mod kinds;
mod layout;
mod lookup;
mod memory;
mod names;
mod own;
mod pages;
mod probe;
mod roots;
mod table;
mod threads;

use std::cell::RefCell;
use std::marker::PhantomData;

use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use vramscope_heap::{Edges, Root};

pub(crate) use kinds::{Interest, Which};
pub(crate) use memory::{Address, type_field};

use graph::{BASE_OF_ARRAY, Graph};
use kinds::{Kinds, SpecialTypes};
use memory::{item, type_of, word};
use own::Origins;
use probe::Trusted;
use threads::Running;

/// What to look for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Types of which all instances are wanted, even if the collector does not know them.
    pub(crate) interests: Vec<Interest>,
    /// The tag of `torch.nn.Module` among the interests, or 0: the registries of its instances are not shown in paths.
    pub(crate) nn_module_tag: u8,
    /// Do as if nothing were known of the interpreter's layout.
    pub(crate) distrust: bool,
}

/// All objects of the interpreter, at one moment.
///
/// It is good only as long as nothing of Python runs: it holds addresses, no references. Collection is off while it lives.
pub(crate) struct Walk<'py> {
    /// References from each node that are worth following.
    pub(crate) edges: Edges,
    /// The few that were found afterwards: temporaries of running functions.
    pub(crate) more_edges: Vec<(u32, u32)>,
    /// Where paths may begin, best first.
    pub(crate) roots: Vec<Root>,
    /// Nodes with more references than were found.
    pub(crate) held_outside: Vec<u32>,
    /// The frames and modules of this package.
    pub(crate) hidden: Vec<u32>,
    /// Instances of the types of interest, with the interest's tag.
    pub(crate) instances: Vec<(u32, u8)>,
    /// What could not be found out, and what follows from it.
    pub(crate) warnings: Vec<String>,
    graph: Graph,
    trusted: Trusted,
    special: SpecialTypes,
    frames: FxHashMap<u32, Frame>,
    /// Namespaces, by what they are of.
    namespaces: FxHashMap<u32, Namespace>,
    /// Nodes that stand for a part of the interpreter's state.
    parts: FxHashMap<u32, StatePart>,
    keys: RefCell<FxHashMap<u32, FxHashMap<Address, Address>>>,
    _collection: CollectionOff<'py>,
}

/// A frame that runs, as its node knows it.
struct Frame {
    at: FrameAt,
    function: String,
}

/// How the names of a frame's variables are found.
enum FrameAt {
    /// They are where the frame is.
    Memory(Address),
    /// They were read by `f_locals`, since the frame itself cannot be read.
    Listed(Vec<(String, Address)>),
    /// They have none: what lies on the evaluation stack. It has a node of its own, since it is to explain only what nothing else does.
    Stack,
}

/// Whose names the keys of a dict are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Namespace {
    Module(u32),
    Class(u32),
    /// Of a thread, in a `threading.local`.
    ThreadLocal,
    /// The dict of all threads' dicts in a `threading.local`.
    AllThreads,
    /// Children, parameters or buffers of an `nn.Module`.
    Registry(u32),
}

/// What a node that stands for a part of the state of a thread, or of the interpreter, has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatePart {
    /// The exception that a thread handles.
    Exception,
    /// The current context of a thread.
    Context,
    /// The dict of a thread's own data.
    Dict,
    /// What is registered with `atexit`.
    Exit,
    /// The list of it, where it is one.
    ExitList,
}

/// Walks the heap.
pub(crate) fn walk<'py>(py: Python<'py>, options: &Options) -> PyResult<Walk<'py>> {
    let trusted = if options.distrust { probe::distrusted(py)? } else { probe::trusted(py)?.clone() };
    let special = SpecialTypes { dicts_are_hidden: trusted.dicts_are_hidden, ..special_types(py)? };
    let modules = loaded_modules(py)?;
    let mut origins = Origins::of(py)?;
    let read_frames = if trusted.frames.is_none() { own::frames_by_locals(py)? } else { Vec::new() };
    let collection = CollectionOff::new(py)?;
    // From here on nothing of Python runs.
    let threads = threads::threads(py);
    let mut graph = Graph::new(Kinds::new(special, options.interests.clone()), trusted.immortals);
    // SAFETY: the interpreter says that these are its modules and objects.
    unsafe {
        collected::each_collected(py, trusted.collector, |object| {
            graph.add(object);
        })?;
        for &module in &modules {
            graph.add(module);
        }
    }
    let mut found = Found::default();
    // SAFETY: the layout has been found to be true, and these are thread states.
    unsafe {
        for &thread in &threads {
            found.add_thread(&mut graph, &trusted, thread);
        }
    }
    if let Some(callbacks) = trusted.exit {
        // SAFETY: they have been found in this process.
        let (registered, list) = unsafe { (exit::registered(py, callbacks), exit::list(py, callbacks)) };
        found.exit = Some((graph.add_artificial(registered), list));
    }
    for (variables, globals, function) in read_frames {
        let references = variables.iter().map(|v| v.1).collect();
        let node = graph.add_artificial(references);
        found.frames.push((node, globals, Frame { at: FrameAt::Listed(variables), function }));
    }
    // SAFETY: all nodes are alive: the collector, the modules or the frames have them; nothing of Python runs.
    unsafe { graph.follow() }.map_err(|e| PyMemoryError::new_err(e.to_string()))?;
    let mut walk = Walk {
        edges: std::mem::take(&mut graph.edges),
        more_edges: Vec::new(),
        roots: Vec::new(),
        held_outside: Vec::new(),
        hidden: Vec::new(),
        instances: std::mem::take(&mut graph.tagged),
        warnings: trusted.warnings.clone(),
        graph,
        trusted,
        special,
        frames: FxHashMap::default(),
        namespaces: FxHashMap::default(),
        parts: FxHashMap::default(),
        keys: RefCell::default(),
        _collection: collection,
    };
    walk.match_temporaries(&found);
    walk.note_namespaces(options);
    walk.find_roots(found, &mut origins);
    walk.held_outside = (0..walk.n_nodes()).filter(|&n| walk.graph.unexplained[n as usize] > 0).collect();
    Ok(walk)
}

/// What threads and the interpreter have, as nodes.
#[derive(Default)]
struct Found {
    /// The node of what is registered with `atexit`, and the list of it where it is one.
    exit: Option<(u32, Option<Address>)>,
    /// Node, globals, and the frame.
    frames: Vec<(u32, Address, Frame)>,
    /// Nodes of evaluation stacks, with what may lie on them.
    maybe: Vec<(u32, Vec<Address>)>,
    /// Nodes for handled exceptions, contexts and dicts of threads.
    exceptions: Vec<u32>,
    contexts: Vec<u32>,
    dicts: Vec<u32>,
}

impl Found {
    /// # Safety
    /// What is trusted must be true, and `thread` a thread state.
    unsafe fn add_thread(&mut self, graph: &mut Graph, trusted: &Trusted, thread: Address) {
        if let Some(layout) = &trusted.frames {
            // SAFETY: the caller says so.
            for frame in unsafe { threads::running(layout, thread) } {
                // SAFETY: as above.
                unsafe { self.add_frame(graph, trusted, frame) };
            }
        }
        if let Some(layout) = &trusted.thread {
            // SAFETY: as above.
            let held = unsafe { threads::held(layout, thread) };
            // Only what the collector knows as an object is taken for one.
            let exception: Vec<Address> =
                held.exception.into_iter().filter(|&e| graph.find(e).is_some()).collect();
            if !exception.is_empty() {
                self.exceptions.push(graph.add_artificial(exception));
            }
            if graph.find(held.context).is_some() {
                self.contexts.push(graph.add_artificial(vec![held.context]));
            }
            if graph.find(held.dict).is_some() {
                self.dicts.push(graph.add_artificial(vec![held.dict]));
            }
        }
    }

    /// # Safety
    /// The frame must be one that runs.
    unsafe fn add_frame(&mut self, graph: &mut Graph, trusted: &Trusted, running: Running) {
        let Some(layout) = &trusted.frames else { return };
        // SAFETY: frames have code, and code has a name.
        let function = unsafe {
            threads::code(layout, running.address)
                .and_then(|code| memory::text(word(code + layout.code_fields.name)))
                .unwrap_or_default()
        };
        let node = if layout.of_object.is_none() {
            // SAFETY: before 3.11 frames are objects.
            unsafe { graph.add(running.address) }
        } else if let Some(generator) = running.generator {
            if !running.shows_variables {
                graph.add_running(generator, running.references);
            }
            // SAFETY: the frame lies in it.
            unsafe { graph.add(generator) }
        } else {
            Some(graph.add_artificial(running.references))
        };
        let globals = running.globals;
        if let Some(node) = node {
            let frame = Frame { at: FrameAt::Memory(running.address), function: function.clone() };
            self.frames.push((node, globals, frame));
        }
        if !(running.temporaries.is_empty() && running.maybe.is_empty()) {
            let node = graph.add_artificial(running.temporaries);
            self.frames.push((node, globals, Frame { at: FrameAt::Stack, function }));
            self.maybe.push((node, running.maybe));
        }
    }
}

impl Walk<'_> {
    /// How many nodes there are.
    pub(crate) fn n_nodes(&self) -> u32 {
        self.graph.n_nodes()
    }

    /// The node of the object at an address.
    pub(crate) fn node_at(&self, address: Address) -> Option<u32> {
        self.graph.find(address)
    }

    /// Where the object of a node is; nothing for nodes that stand for a running frame or a thread.
    pub(crate) fn address(&self, node: u32) -> Option<Address> {
        self.graph.addresses.get(node as usize).copied().filter(|&address| address != 0)
    }

    /// Temporaries whose number is not known: what may be one is taken for one if it has a reference that nobody else explains.
    fn match_temporaries(&mut self, found: &Found) {
        for (stack, maybe) in &found.maybe {
            for &address in maybe {
                let Some(node) = self.graph.find(address) else { continue };
                let unexplained = &mut self.graph.unexplained[node as usize];
                if *unexplained > 0 {
                    *unexplained -= 1;
                    self.more_edges.push((*stack, node));
                }
            }
        }
    }
}

/// Turns the collector off while addresses are held: making objects could start it.
pub(crate) struct CollectionOff<'py> {
    was_on: Option<Bound<'py, PyModule>>,
    /// Addresses are good only while the GIL is held.
    _held: PhantomData<Python<'py>>,
}

impl<'py> CollectionOff<'py> {
    /// Until this is dropped.
    pub(crate) fn new(py: Python<'py>) -> PyResult<Self> {
        let gc = py.import("gc")?;
        let was_on = gc.call_method0("isenabled")?.is_truthy()?;
        if was_on {
            gc.call_method0("disable")?;
        }
        Ok(Self { was_on: was_on.then_some(gc), _held: PhantomData })
    }
}

impl Drop for CollectionOff<'_> {
    fn drop(&mut self) {
        if let Some(gc) = &self.was_on
            && let Err(error) = gc.call_method0("enable")
        {
            error.write_unraisable(gc.py(), None);
        }
    }
}

fn special_types(py: Python<'_>) -> PyResult<SpecialTypes> {
    let types = py.import("types")?;
    let of = |name: &str| types.getattr(name).map(|class| class.as_ptr() as Address);
    Ok(SpecialTypes {
        module: &raw const ffi::PyModule_Type as Address,
        function: of("FunctionType")?,
        generators: [of("GeneratorType")?, of("CoroutineType")?, of("AsyncGeneratorType")?],
        frame: of("FrameType")?,
        deque: py.import("_collections")?.getattr("deque")?.as_ptr() as Address,
        thread_local: py.import("_thread")?.getattr("_local")?.as_ptr() as Address,
        array: array_type(py)?,
        dicts_are_hidden: false,
    })
}

/// The type of numpy's arrays, if numpy has been imported and they are as expected.
fn array_type(py: Python<'_>) -> PyResult<Address> {
    let loaded = py.import("sys")?.getattr("modules")?;
    let Ok(numpy) = loaded.get_item("numpy") else { return Ok(0) };
    // SAFETY: if it is a module it has a dict; the value is only used while numpy is loaded.
    let array = unsafe {
        let namespace = if numpy.is_instance_of::<PyModule>() {
            ffi::PyModule_GetDict(numpy.as_ptr()) as Address
        } else {
            0
        };
        if namespace == 0 { None } else { item(namespace, c"ndarray") }
    };
    let Some(array) = array else { return Ok(0) };
    // SAFETY: numpy holds it.
    let array = unsafe { Bound::from_borrowed_ptr(py, array as *mut ffi::PyObject) };
    let Ok(whole) = numpy.call_method1("zeros", (2,)) else { return Ok(0) };
    let Ok(view) = whole.get_item(pyo3::types::PySlice::new(py, 0, 1, 1)) else { return Ok(0) };
    // SAFETY: an array is larger than that; what is read is only compared.
    let as_expected = view.get_type().is(&array)
        && unsafe { word(view.as_ptr() as Address + BASE_OF_ARRAY) } == whole.as_ptr() as Address;
    Ok(if as_expected { array.as_ptr() as Address } else { 0 })
}

/// The modules that are loaded. `sys.modules` keeps them.
fn loaded_modules(py: Python<'_>) -> PyResult<Vec<Address>> {
    let loaded = py.import("sys")?.getattr("modules")?;
    let module = &raw const ffi::PyModule_Type as Address;
    let Ok(loaded) = loaded.cast_into::<pyo3::types::PyDict>() else { return Ok(Vec::new()) };
    // SAFETY: it is a dict, and nothing runs while it is gone through.
    Ok(unsafe {
        memory::items(loaded.as_ptr() as Address)
            .map(|(_, value)| value)
            .filter(|&value| memory::is_subtype(type_of(value), module))
            .collect()
    })
}
