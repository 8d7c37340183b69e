//! The walk by itself, for tests and for the curious: shortest paths without dominators, classes or tensors.

use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use vramscope_heap::Names;

use super::{Address, Options, Walk, walk};

impl Walk<'_> {
    /// The path by which a node is reached, roots of a better kind first, and of one kind the shortest; then from nodes that are held
    /// outside. As nodes, from the root.
    fn path_to(&self, target: u32) -> Option<Vec<u32>> {
        const NEW: u32 = u32::MAX;
        let mut came_from = vec![NEW; self.n_nodes() as usize];
        for &hidden in &self.hidden {
            came_from[hidden as usize] = hidden;
        }
        for root in &self.roots {
            came_from[root.node as usize] = root.node;
        }
        let mut kinds = self.roots.chunk_by(|a, b| a.kind == b.kind);
        let mut outside = Some(&self.held_outside);
        let mut queue: Vec<u32> = Vec::new();
        let mut next = 0;
        let mut more = self.more_edges.clone();
        more.sort_unstable();
        loop {
            let Some(&node) = queue.get(next) else {
                queue = match kinds.next() {
                    Some(roots) => roots.iter().map(|root| root.node).collect(),
                    None => {
                        outside.take()?.iter().copied().filter(|&n| came_from[n as usize] == NEW).collect()
                    }
                };
                for &root in &queue {
                    came_from[root as usize] = root;
                }
                next = 0;
                continue;
            };
            next += 1;
            if node == target {
                break;
            }
            let further =
                more[more.partition_point(|e| e.0 < node)..].iter().take_while(|e| e.0 == node).map(|e| &e.1);
            for &to in self.edges.of(node).iter().chain(further) {
                if came_from[to as usize] == NEW {
                    came_from[to as usize] = node;
                    queue.push(to);
                }
            }
        }
        let mut path = vec![target];
        let mut at = target;
        while came_from[at as usize] != at {
            at = came_from[at as usize];
            path.push(at);
        }
        path.reverse();
        Some(path)
    }

    /// A path as it is spelled.
    fn spell(&self, path: &[u32]) -> String {
        let mut spelled = String::new();
        for at in 1..path.len() {
            let before = at.checked_sub(2).map(|b| path[b]);
            let reference = self.reference(before, path[at - 1], path[at]);
            if reference.begins_anew() {
                spelled.clear();
            }
            spelled.push_str(&reference.spelling());
        }
        spelled
    }
}

/// For each address (an `id`): the path to the object there, `held outside`, `unreachable`, or nothing if there is none.
#[pyfunction]
#[pyo3(signature = (addresses, distrust = false, module = None))]
pub(crate) fn _paths_to(
    py: Python<'_>,
    addresses: Vec<Address>,
    distrust: bool,
    module: Option<Bound<'_, PyAny>>,
) -> PyResult<Vec<Option<String>>> {
    let walk = walk(py, &options(distrust, module))?;
    let describe = |address| {
        let node = walk.node_at(address)?;
        Some(match walk.path_to(node) {
            Some(path) if walk.roots.iter().any(|root| root.node == path[0]) => walk.spell(&path),
            Some(path) => format!("held outside{}", walk.spell(&path)),
            None => "unreachable".to_owned(),
        })
    };
    Ok(addresses.into_iter().map(describe).collect())
}

/// The objects on the path to the object at an address, as `(type, detail)`.
#[pyfunction]
pub(crate) fn _chain_to(py: Python<'_>, address: Address) -> PyResult<Vec<(String, String)>> {
    let walk = walk(py, &options(false, None))?;
    let path = walk.node_at(address).and_then(|node| walk.path_to(node)).unwrap_or_default();
    let objects = path.into_iter().map(|node| walk.object(node));
    Ok(objects.map(|object| (object.type_name, object.detail)).collect())
}

/// Which of the addresses (each an `id`) are of objects with more references than were found.
#[pyfunction]
pub(crate) fn _held_outside(py: Python<'_>, addresses: Vec<Address>) -> PyResult<Vec<bool>> {
    let walk = walk(py, &options(false, None))?;
    let is_held =
        |address| walk.node_at(address).is_some_and(|node| walk.held_outside.binary_search(&node).is_ok());
    Ok(addresses.into_iter().map(is_held).collect())
}

/// Figures of a walk: `nodes`, `edges`, `roots`, `held_outside`, `seconds` and `warnings`.
#[pyfunction]
#[pyo3(signature = (distrust = false))]
pub(crate) fn _walk_figures(py: Python<'_>, distrust: bool) -> PyResult<Bound<'_, PyDict>> {
    let started = Instant::now();
    let walk = walk(py, &options(distrust, None))?;
    let seconds = started.elapsed().as_secs_f64();
    let figures = (walk.n_nodes(), walk.edges.targets.len(), walk.roots.len(), walk.held_outside.len());
    let warnings = walk.warnings.clone();
    drop(walk);
    let result = PyDict::new(py);
    result.set_item("nodes", figures.0)?;
    result.set_item("edges", figures.1)?;
    result.set_item("roots", figures.2)?;
    result.set_item("held_outside", figures.3)?;
    result.set_item("seconds", seconds)?;
    result.set_item("warnings", warnings)?;
    Ok(result)
}

fn options(distrust: bool, module: Option<Bound<'_, PyAny>>) -> Options {
    const MODULE: u8 = 1;
    let base = module.map(|module| module.as_ptr() as Address);
    let interests = base
        .map(|base| super::Interest { which: super::Which::DerivedFrom(base), tag: MODULE })
        .into_iter()
        .collect();
    Options { interests, nn_module_tag: if base.is_some() { MODULE } else { 0 }, distrust }
}
