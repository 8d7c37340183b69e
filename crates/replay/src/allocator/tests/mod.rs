//! The allocator against what is known of it.

mod chance;
mod hostile;
mod invariants;
mod vectors;
