//! What torch's C++ objects hold: tensors, their storages, and the graph of the backward pass, read as memory.
//!
//! The wheel neither links to torch nor knows its releases. Where things lie is learnt once, on small examples whose truth Python tells (`calibrate`); after that a reading
//! (`read`) copies memory and runs no code of Python or torch, so that looking changes nothing: no hook runs, no wrapper is made, no count moves.
//!
//! ```text
//!  examples.py ──► calibrate, getters ──► Layout ─┐
//!  heap walk ──► kinds (which objects are torch's) ┴─► read (memory, class, scan) ──► Graph
//! ```

mod calibrate;
mod class;
pub(crate) mod debugging;
mod getters;
pub(crate) mod graph;
pub(crate) mod kinds;
pub(crate) mod layout;
mod names;
pub(crate) mod read;
mod scan;
pub(crate) mod workspaces;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use layout::Layout;

static LAYOUT: PyOnceLock<Result<Layout, String>> = PyOnceLock::new();

/// The layout of the torch that is loaded, learnt when first asked for: call it before the heap walk, for it runs Python code. The inner error says why nothing can be read.
pub(crate) fn layout(py: Python<'_>) -> PyResult<&'static Result<Layout, String>> {
    LAYOUT.get_or_try_init(py, || calibrate::calibrate(py))
}
