//! From a recording to what it means: lifetimes, curves, peak, steps.

pub mod change;
pub mod health;
