//! A simulator of PyTorch's CUDA caching allocator, driven by what a recording asked of it.
//!
//! [`Workload`] is what the program asked; [`reproduce`] replays it under the settings of the recording and tells how well that
//! equals what was recorded; [`replay`] runs it under any others. Nothing of the recorded segments goes into a replay: it
//! obtains and gives back memory by the allocator's own rules.

mod addresses;
mod block;
mod config;
mod expandable;
mod machine;
mod outcome;
mod pool;
mod private;
mod release;
mod replay;
mod reproduce;
mod start;
mod tally;
mod workload;

pub use config::{Config, Parser, Rules, Tie};
pub use outcome::{Divergence, Limits, OutOfMemory, Outcome, Reproduction};
pub use replay::replay;
pub use reproduce::reproduce;
pub use workload::{Unplayable, Workload};
