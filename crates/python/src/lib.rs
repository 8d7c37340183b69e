//! The native part of the Python package `vramscope`: the command line, and the walk through a running process that finds who holds its memory.

mod cpython;
mod deferred;
mod holders;
mod own_memory;
mod torch;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    use std::ffi::OsString;

    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::cpython::inspect::{_chain_to, _held_outside, _paths_to, _walk_figures};
    #[pymodule_export]
    use crate::deferred::deferring;
    #[pymodule_export]
    use crate::holders::{PyHolders, holders};
    #[pymodule_export]
    use crate::torch::debugging::{torch_graph, torch_graph_size, torch_layout, torch_workspaces};

    /// Runs the command line with these arguments, the command's own name first, and returns its exit status.
    #[pyfunction]
    fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
        py.detach(|| vramscope::run(arguments).code())
    }

    /// What `vramscope run` was asked for: whether the program is a module, the program with its arguments, where recordings
    /// go, and the settings. None where another command was typed, or a wrong one, which `main` then says.
    #[pyfunction]
    #[expect(clippy::type_complexity, reason = "four things, each taken by its name on the other side")]
    fn parse_run(
        arguments: Vec<OsString>,
    ) -> Option<(bool, Vec<OsString>, OsString, Vec<(&'static str, String)>)> {
        let asked = vramscope::parse_run(arguments)?;
        Some((asked.module, asked.program, asked.out, asked.settings))
    }
}
