//! Python's syntax: the only module that names the crates of Ruff, so that a new release of them is one file's work.

pub use ruff_python_ast as ast;
pub use ruff_text_size::{Ranged, TextLen, TextRange, TextSize};
