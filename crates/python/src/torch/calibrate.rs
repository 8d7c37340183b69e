//! Learns the layout of torch's objects from examples, of which Python tells the truth. So no table of releases is needed, and a release that moves things is noticed:
//! every offset is confirmed on two examples or more, and what is not found is not read.

mod fields;
mod functions;
mod saved;
mod tensors;

use pyo3::prelude::*;
use pyo3::types::PyModule;
use rustc_hash::FxHashMap;

use super::class::Classes;
use super::layout::{Count, Layout};
use crate::own_memory::Memory;

/// Bytes of an object that are searched.
const SEARCHED: usize = 768;

/// Rows of integers by the name of their table, as `examples.py` says.
type Tables = FxHashMap<String, Vec<Vec<usize>>>;

/// Builds the examples and learns from them. An error says what is missing so that nothing can be read.
pub(crate) fn calibrate(py: Python<'_>) -> PyResult<Result<Layout, String>> {
    let examples = PyModule::from_code(
        py,
        c_str(include_str!("examples.py"))?.as_c_str(),
        c"vramscope/_examples.py",
        c"vramscope._examples",
    )?;
    let (keep, tables, failed): (Bound<'_, PyAny>, Tables, Vec<String>) =
        examples.getattr("build")?.call0()?.extract()?;
    let Some(memory) = Memory::open() else {
        return Ok(Err("this system does not let a process copy its own memory".to_owned()));
    };
    let mut search = Search { memory, classes: Classes::default(), tables };
    let Some(mut layout) = search.layout() else {
        return Ok(Err("tensors of this release of torch are laid out in an unknown way".to_owned()));
    };
    layout.warnings.extend(failed.into_iter().map(|failed| format!("no example of {failed}")));
    search.fields(&examples, &mut layout)?;
    // Some refer to each other, and would wait for the collector.
    keep.call_method0("clear")?;
    Ok(Ok(layout))
}

fn c_str(text: &str) -> PyResult<std::ffi::CString> {
    Ok(std::ffi::CString::new(text)?)
}

struct Search {
    memory: Memory,
    classes: Classes,
    tables: Tables,
}

impl Search {
    fn layout(&mut self) -> Option<Layout> {
        let tensor = self.tensor()?;
        let storage = self.storage()?;
        let mut layout = Layout {
            tensor,
            storage,
            autograd: None,
            function: None,
            context: None,
            saved: None,
            wrappers_freed_by: None,
            warnings: Vec::new(),
        };
        if !(tensor.held.counts && storage.held.counts) {
            layout.warnings.push("owners of tensors and storages cannot be counted".to_owned());
        }
        layout.function = self.function();
        if let Some(function) = &layout.function {
            layout.autograd = self.autograd(function);
            layout.context = self.context();
            layout.saved = self.saved(function);
        }
        let parts = [
            (layout.function.is_some(), "functions of the backward pass"),
            (
                layout.autograd.as_ref().is_some_and(|autograd| autograd.grad_fn.is_some()),
                "what tensors have for the backward pass",
            ),
            (layout.autograd.as_ref().is_some_and(|autograd| autograd.base.is_some()), "what views are of"),
            (layout.context.is_some_and(|context| context.saved.is_some()), "custom functions"),
            (layout.saved.is_some(), "saved tensors"),
            (
                layout.saved.as_ref().is_some_and(|saved| saved.hooks.is_some() && saved.packed.len() >= 2),
                "saved tensors that a hook packed",
            ),
            (
                layout.function.as_ref().is_some_and(|function| function.variable.is_some()),
                "the leaves that gradients are added to",
            ),
            (
                layout.function.as_ref().is_some_and(|function| function.inner.is_some()),
                "in-place operations on views",
            ),
            (
                layout.function.as_ref().is_some_and(|function| function.hooks.len() == 3),
                "hooks of functions",
            ),
            (
                layout.function.as_ref().is_some_and(|function| function.count != Count::Unknown),
                "owners of functions",
            ),
        ];
        layout.warnings.extend(parts.iter().filter(|(found, _)| !found).map(|(_, part)| {
            format!("this release of torch keeps {part} in an unknown place; they are left out")
        }));
        Some(layout)
    }

    fn table(&self, name: &str) -> Vec<Vec<usize>> {
        self.tables.get(name).cloned().unwrap_or_default()
    }

    fn columns(&self, table: &str, first: usize, second: usize) -> Vec<(usize, usize)> {
        self.table(table).iter().filter_map(|row| Some((*row.get(first)?, *row.get(second)?))).collect()
    }

    /// The first offset at which each object has the value that goes with it.
    fn find(&mut self, examples: &[(usize, usize)]) -> Option<usize> {
        self.find_by(examples, |word, value| word == value)
    }

    fn find_by(&mut self, examples: &[(usize, usize)], is: impl Fn(usize, usize) -> bool) -> Option<usize> {
        let mut places = (8..SEARCHED).step_by(8);
        places.find(|at| {
            examples.len() > 1
                && examples.iter().all(|&(object, value)| {
                    self.memory.word(object + at).is_some_and(|word| is(word as usize, value))
                })
        })
    }
}
