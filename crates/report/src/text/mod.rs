//! The answers for a terminal: one screen first, then how to see more.

pub mod analysis;
mod balance;
pub mod check;
pub mod diff;
pub(crate) mod explained;
mod finding;
pub mod fixes;
pub mod holders;
pub mod inspect;
mod pattern;
mod recorded;
pub mod rules;
pub mod whatif;

use crate::excerpt::Excerpts;
use crate::page::Page;
use crate::place::Places;
use crate::style::{Palette, Role, Span};

/// What the terminal can do and how much is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// Whether there is colour.
    pub palette: Palette,
    /// Columns.
    pub width: usize,
    /// How many findings or places are listed.
    pub top: usize,
    /// Whether to show what is left out by default: full stacks and paths, every device's sums, phases.
    pub verbose: bool,
    /// Source code, where it is known.
    pub excerpts: &'a Excerpts,
}

/// How far the text stands from the left, beside labels.
const INDENT: usize = 8;

/// The recorded paths of the user's files that are shown by a tail.
fn files(page: &mut Page, places: &Places) {
    let mut label = Span::new(Role::Dim, "files");
    for (tail, file) in places.shortened_user_files() {
        let pieces = [tail, "=", file];
        page.pieces(std::mem::take(&mut label), INDENT, Role::Plain, &pieces);
    }
}

/// How many of a list are left out, in words; nothing if none are.
fn left_out(total: usize, shown: usize, noun: &str) -> Option<String> {
    (total > shown).then(|| crate::bytes::counted((total - shown) as u64, &format!("more {noun}")))
}
