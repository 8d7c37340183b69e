//! Marks that the program made in time.

use crate::symbols::StringId;
use crate::units::TimeUs;

/// Which end of a region a mark is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The region begins.
    Start,
    /// The region ends.
    End,
    /// A mark that is neither.
    Other,
}

/// A mark of `record_function`, a profiler step, an optimizer step or a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Its name, such as `Optimizer.step#AdamW.step`.
    pub name: StringId,
    /// Which end of the region.
    pub stage: Stage,
    /// The device that was current in the thread.
    pub device: u32,
    /// When.
    pub time: TimeUs,
}
