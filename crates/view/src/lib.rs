//! What the user is told, as plain data in the user's words: the boundary between analysing and showing.
//!
//! Structs here have public fields and no behaviour to speak of. They are not `Serialize`: `report` decides how they
//! look in JSON. Bytes are plain `u64` here, named by what they count.

pub mod analysis;
mod analyze;
pub mod check;
pub mod diff;
pub mod explained;
pub mod holders;
pub mod inspect;
pub mod pattern;
mod place;
mod quantity;
pub mod recorded;
pub mod whatif;

pub use analyze::{analyze, analyze_runs};
pub use check::{CheckInput, check};
pub use diff::{DiffInput, diff};
pub use inspect::{InspectInput, inspect};
