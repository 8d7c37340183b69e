//! From a recording to what it means: when each block was born and died, how large it was, the curves of
//! allocated and reserved bytes, the peak, and the program's steps.
//!
//! Nothing here decides whether something is wrong; that is `detect`'s business.

pub mod allocator;
mod balance;
pub mod change;
mod curve;
mod fits;
mod follow;
pub mod health;
mod lifetimes;
mod phases;
mod placement;
mod steps;

pub use balance::{Balance, balance_at};
pub use curve::{Level, Peak, levels, levels_at, peak};
pub use fits::{FailedFit, failed_fits};
pub use lifetimes::{Agreement, AllocId, Death, Lifetimes, Window};
pub use phases::{PhaseRun, phase_runs};
pub use steps::{StepSource, Steps};
