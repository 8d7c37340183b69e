//! The answers for a terminal: one screen first, then how to see more.

pub mod analysis;
mod balance;
pub mod diff;
mod finding;
pub mod inspect;

use crate::excerpt::Excerpts;
use crate::style::Palette;

/// What the terminal can do and how much is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// Whether there is colour.
    pub palette: Palette,
    /// Columns.
    pub width: usize,
    /// How many findings or places are listed.
    pub top: usize,
    /// Whether to show what is left out by default: full stacks, every device's sums, phases, settings.
    pub verbose: bool,
    /// Source code, where it is known.
    pub excerpts: &'a Excerpts,
}

/// How far the text stands from the left, beside labels.
const INDENT: usize = 8;

/// How many of a list are left out, in words; nothing if none are.
fn left_out(total: usize, shown: usize, noun: &str) -> Option<String> {
    (total > shown).then(|| crate::bytes::counted((total - shown) as u64, &format!("more {noun}")))
}
