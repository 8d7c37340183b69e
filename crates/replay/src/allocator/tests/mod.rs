//! The allocator against what is known of it.

mod hostile;
mod invariants;
mod vectors;
