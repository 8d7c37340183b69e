//! From lifetimes and curves to findings.

mod finding;

pub use finding::{Companion, Finding, Kind};
