//! The allocator against what is known of it.

#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod invariants;
mod vectors;
