//! The settings' text (`PYTORCH_CUDA_ALLOC_CONF`), read as the framework reads it.

mod items;
mod key;
mod number;
mod problem;
mod reading;
mod recorded;
mod token;
mod warning;

pub use key::Effect;
pub use problem::{ConfError, Place, Problem};
pub use warning::{ConfWarning, Notice};

use super::config::{Config, Rules};

impl Config {
    /// The settings that a process starts with under a text, and what is worth knowing of them.
    ///
    /// The text is read as by the release whose rules are given, so that it does what it would have done in the
    /// recorded run; settings that only later releases know are read, too.
    ///
    /// Source: the allocator reference, §2 and §3, and the parsers of torch 2.0 to 2.15.
    ///
    /// # Errors
    ///
    /// The first thing that this release would refuse, or `backend:cudaMallocAsync`, which cannot be simulated.
    pub fn parse(text: &str, rules: &Rules) -> Result<(Self, Vec<ConfWarning>), ConfError> {
        reading::read(text, rules)
    }
}
