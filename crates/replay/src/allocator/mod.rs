//! A simulator of PyTorch's CUDA caching allocator, driven by what a recording asked of it.
//!
//! [`Simulation::of`] replays a recording under its own settings and tells how well that equals what was recorded;
//! [`Simulation::run`] runs it under any others. Nothing of the recorded segments goes into a run: it obtains and gives back
//! memory by the allocator's own rules.

mod addresses;
mod block;
mod bursts;
pub mod conf;
pub mod config;
mod expandable;
mod gaps;
mod grow;
mod machine;
mod outcome;
mod pool;
mod private;
mod release;
mod replay;
mod reproduce;
mod simulation;
mod start;
mod tally;
#[cfg(test)]
mod tests;
mod workload;

pub use conf::{ConfError, ConfWarning};
pub use config::{Config, Release, Rules};
pub use outcome::{Divergence, Limits, OutOfMemory, Outcome, Reproduction, Spread};
pub use simulation::Simulation;
pub use workload::Unplayable;
