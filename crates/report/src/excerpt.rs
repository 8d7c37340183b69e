//! Lines of source code around a place. Whoever opens files fills them in; this crate only shows them.

use std::collections::BTreeMap;

use vramscope_view::analysis::Location;

/// A few lines around a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The file that they were read from.
    pub read_from: String,
    /// The number of each line, from 1, and its text.
    pub lines: Vec<(u32, String)>,
    /// Why the file may not be the one that ran, if there is a sign of it.
    pub doubt: Option<String>,
}

/// What is known of the source code, by file as recorded and line.
#[derive(Clone, Debug, Default)]
pub struct Excerpts {
    by_place: BTreeMap<(String, u32), Excerpt>,
}

impl Excerpts {
    /// Adds the lines around a place.
    pub fn insert(&mut self, location: &Location, excerpt: Excerpt) {
        self.by_place.insert((location.file.clone(), location.line), excerpt);
    }

    /// The lines around a place, if they are known.
    pub fn get(&self, location: &Location) -> Option<&Excerpt> {
        self.by_place.get(&(location.file.clone(), location.line))
    }
}
