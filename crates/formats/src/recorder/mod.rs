//! What `vramscope run` writes beside snapshots: the counters of each step and the surroundings.
//!
//! These are inputs like any other, so they are read here: by a stream, never failing half-way, with warnings that say
//! where something is wrong. They hold no allocator's trace, so they are no snapshot formats and not in `FORMATS`.

mod environment;
mod statistics;

pub use environment::environment;
pub use statistics::statistics;

/// Files of the recorder are a few MB; what is larger than this is none of its.
const MOST_BYTES: u64 = 256 << 20;
