//! The allocator against what is known of it.

mod invariants;
mod vectors;
