//! Notebooks.

rules!();
