//! References held by ordinary Python.

rules!();
