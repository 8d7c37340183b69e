//! Edits that remove what was found, and how far they can be trusted.

use crate::syntax::{Ranged, TextRange, TextSize};

/// How far a fix can be trusted, as Ruff grades it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Applicability {
    /// Only shown: it needs a human's judgement, or is not a complete edit.
    Display,
    /// Valid Python that may change what the program does beside its memory. Applied with `--unsafe-fixes`.
    Unsafe,
    /// Changes nothing but what is kept in memory. Applied with `--fix`.
    Safe,
}

impl Applicability {
    /// The word used in JSON and in text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Display => "display",
            Self::Unsafe => "unsafe",
            Self::Safe => "safe",
        }
    }
}

/// A piece of text that takes the place of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edit {
    /// What is replaced, in bytes of the text of the [`Source`](crate::Source); empty for an insertion.
    pub range: Span,
    /// What takes its place; empty for a deletion.
    pub content: String,
}

/// A range that can be ordered: by its start, then by its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl From<TextRange> for Span {
    fn from(range: TextRange) -> Self {
        Self { start: range.start().into(), end: range.end().into() }
    }
}

impl Edit {
    /// Puts `content` in front of what begins at `at`.
    pub(crate) fn insert(at: TextSize, content: impl Into<String>) -> Self {
        Self { range: Span { start: at.into(), end: at.into() }, content: content.into() }
    }

    /// Puts `content` in the place of `place`.
    pub(crate) fn replace(place: impl Ranged, content: impl Into<String>) -> Self {
        Self { range: place.range().into(), content: content.into() }
    }

    /// Takes `range` away.
    pub(crate) fn delete(range: TextRange) -> Self {
        Self { range: range.into(), content: String::new() }
    }
}

/// Edits that belong together: all of them are made or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// How far it can be trusted.
    pub applicability: Applicability,
    /// What it does, as an imperative: ``append `.detach()` ``.
    pub message: String,
    /// The edits, in order and without overlap.
    pub edits: Vec<Edit>,
    /// Whether it lets go of the autograd graph only: the data itself is kept as before.
    pub leaves_data: bool,
}

impl Fix {
    /// A fix of several edits, which are put in order.
    pub(crate) fn new(
        applicability: Applicability,
        message: impl Into<String>,
        mut edits: Vec<Edit>,
    ) -> Self {
        edits.sort();
        Self { applicability, message: message.into(), edits, leaves_data: false }
    }

    /// Says that it lets go of the autograd graph only.
    pub(crate) fn of_the_graph_only(self) -> Self {
        Self { leaves_data: true, ..self }
    }
}
