//! Data loading and host memory.

rules!();
