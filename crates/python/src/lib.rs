//! The native part of the Python package `vramscope`: the command line, and the walk through a running process that finds who holds its memory.

mod cpython;
mod holders;
mod torch;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use std::ffi::OsString;

    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::cpython::inspect::{_chain_to, _held_outside, _paths_to, _walk_figures};
    #[pymodule_export]
    use crate::holders::{PyHolders, holders};
    #[pymodule_export]
    use crate::torch::debugging::{torch_graph, torch_graph_size, torch_layout};

    /// Runs the command line with these arguments, the command's own name first, and returns its exit status.
    #[pyfunction]
    fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
        py.detach(|| vramscope::run(arguments).code())
    }
}
