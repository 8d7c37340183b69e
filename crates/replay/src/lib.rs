//! From a recording to what it means: when each block was born and died, how large it was, the curves of
//! allocated and reserved bytes, the peak, and the program's steps.
//!
//! Nothing here decides whether something is wrong; that is `detect`'s business.

pub mod allocator;
mod balance;
pub mod change;
mod curve;
mod domain;
mod fits;
mod follow;
mod free_memory;
mod ground;
pub mod health;
mod kept;
mod layout;
mod lifetimes;
mod occupancy;
mod phases;
mod pins;
mod placement;
mod rescue;
mod steps;
mod stranding;
mod units;

pub use balance::{Balance, balance_at};
pub use curve::{Level, Peak, levels, levels_at, peak};
pub use domain::{Domain, Portions};
pub use fits::FailedFit;
pub use free_memory::{Free, total};
pub use ground::Stretch;
pub use kept::Kept;
pub use layout::{Gap, Layout, Placed};
pub use lifetimes::{Agreement, AllocId, Death, Lifetimes, Window};
pub use phases::{PhaseRun, phase_runs};
pub use pins::{Pin, Pins, Place};
pub use rescue::{Failed, Rescue, rescue};
pub use steps::{RECORDED_STEP, StepSource, Steps};
pub use stranding::{PinOverTime, Stranding};
