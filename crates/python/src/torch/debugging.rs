//! The reading of torch's objects as Python values, for tests and for looking at it by hand.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use rustc_hash::FxHashMap;

use super::graph::{Graph, Label, Node, Owners, dtype_name};
use super::kinds::{Kind, Kinds};
use super::read::{Roots, read};
use super::workspaces;

/// What was learnt about the torch that is loaded, as a text of no fixed form.
#[pyfunction]
pub(crate) fn torch_layout(py: Python<'_>) -> PyResult<String> {
    Ok(format!("{:#?}", super::layout(py)?))
}

/// What torch's objects among `roots` hold; `objects` are all Python objects that are known, and are told by their place in that list. With `guess`, what functions saved is
/// recognised by what it looks like, as in a release of torch whose functions cannot be asked.
#[pyfunction]
#[pyo3(signature = (objects, roots=None, guess=false))]
pub(crate) fn torch_graph<'py>(
    py: Python<'py>,
    objects: &Bound<'py, PyList>,
    roots: Option<&Bound<'py, PyList>>,
    guess: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let (graph, seconds) = graph(py, objects, roots, guess)?;
    let result = as_dict(py, &graph)?;
    result.set_item("seconds", seconds)?;
    Ok(result)
}

/// How long it takes to read that, in seconds, and the numbers of tensors, storages, functions and references.
#[pyfunction]
pub(crate) fn torch_graph_size(py: Python<'_>, objects: &Bound<'_, PyList>) -> PyResult<(f64, [usize; 4])> {
    let (graph, seconds) = graph(py, objects, None, false)?;
    Ok((seconds, [graph.tensors.len(), graph.storages.len(), graph.functions.len(), graph.edges.len()]))
}

/// Where the workspaces of cuBLAS are; with `map`, those of the map at that address instead.
#[pyfunction]
#[pyo3(signature = (map=None))]
pub(crate) fn torch_workspaces(map: Option<usize>) -> Vec<usize> {
    map.map_or_else(workspaces::addresses, |map| workspaces::addresses_in(std::iter::once(map)))
}

fn graph(
    py: Python<'_>,
    objects: &Bound<'_, PyList>,
    roots: Option<&Bound<'_, PyList>>,
    guess: bool,
) -> PyResult<(Graph, f64)> {
    let layout = super::layout(py)?.as_ref().map_err(|reason| PyRuntimeError::new_err(reason.clone()))?;
    let mut without_fields = layout.clone();
    if let Some(saved) = without_fields.saved.as_mut().filter(|_| guess) {
        saved.fields.clear();
    }
    let layout = &without_fields;
    let kinds = Kinds::new(py, layout)?;
    let [mut tensors, mut storages, mut functions, mut contexts, mut saved] = [const { Vec::new() }; 5];
    let mut numbers = FxHashMap::default();
    for (number, object) in objects.iter().enumerate() {
        numbers.insert(object.as_ptr() as usize, number as u32);
    }
    for object in roots.unwrap_or(objects) {
        let address = object.as_ptr() as usize;
        match kinds.of(&object.get_type()) {
            Some(Kind::Tensor) => tensors.push(address),
            Some(Kind::Storage) => storages.push(address),
            Some(Kind::Function) => functions.push(address),
            Some(Kind::Context) => contexts.push(address),
            Some(Kind::SavedTensor) => saved.push(address),
            None => {}
        }
    }
    let roots = Roots {
        tensors: &tensors,
        storages: &storages,
        functions: &functions,
        contexts: &contexts,
        saved: &saved,
    };
    let started = std::time::Instant::now();
    let graph = read(layout, roots, &|address| numbers.get(&address).copied());
    Ok((graph, started.elapsed().as_secs_f64()))
}

fn as_dict<'py>(py: Python<'py>, graph: &Graph) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    let tensors = PyList::empty(py);
    for tensor in &graph.tensors {
        let row = row(py, tensor.address, graph.class_name(tensor.class), tensor.object, &tensor.owners)?;
        row.set_item("shape", graph.shape(tensor).to_vec())?;
        row.set_item("dtype", tensor.dtype.map(dtype_name))?;
        tensors.append(row)?;
    }
    let storages = PyList::empty(py);
    for storage in &graph.storages {
        let row = row(py, storage.address, "", storage.object, &storage.owners)?;
        row.set_item("data", storage.data)?;
        row.set_item("bytes", storage.bytes)?;
        row.set_item("device", (storage.device.name(), storage.device.index))?;
        storages.append(row)?;
    }
    let functions = PyList::empty(py);
    for function in &graph.functions {
        functions.append(row(
            py,
            function.address,
            graph.class_name(function.class),
            function.object,
            &function.owners,
        )?)?;
    }
    let edges = PyList::empty(py);
    for edge in &graph.edges {
        edges.append((spell(edge.from), spell(edge.to), label(graph, edge.label)))?;
    }
    let guessed: Vec<_> =
        graph.guessed.iter().map(|&(class, count)| (graph.class_name(class), count)).collect();
    result.set_item("tensors", tensors)?;
    result.set_item("storages", storages)?;
    result.set_item("functions", functions)?;
    result.set_item("edges", edges)?;
    result.set_item("guessed", guessed)?;
    result.set_item("warnings", &graph.warnings)?;
    Ok(result)
}

fn row<'py>(
    py: Python<'py>,
    address: usize,
    class: &str,
    object: Option<u32>,
    owners: &Owners,
) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("address", address)?;
    row.set_item("class", class)?;
    row.set_item("object", object)?;
    row.set_item("counted", owners.counted)?;
    row.set_item("found", owners.found)?;
    row.set_item("unexplained", owners.unexplained())?;
    row.set_item("keep_object", owners.keep_object)?;
    Ok(row)
}

fn spell(node: Node) -> (&'static str, u32) {
    match node {
        Node::Tensor(index) => ("tensor", index),
        Node::Storage(index) => ("storage", index),
        Node::Function(index) => ("function", index),
        Node::Object(index) => ("object", index),
    }
}

fn label(graph: &Graph, label: Label) -> String {
    let named = |kind: &str, name: u16| {
        format!("{kind} {}", graph.names.get(name as usize).map_or("?", String::as_str))
    };
    match label {
        Label::Saved(name) => named("saved", name),
        Label::Packed(name) => named("packed", name),
        Label::Maker(name) => named("maker of", name),
        other => format!("{other:?}"),
    }
}
