//! Dotted names after imports are resolved.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

/// How many parts are kept of a dotted name; what is deeper is nothing that anybody knows.
const PARTS: usize = 12;

/// `torch.nn.functional.relu` in parts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Path<'a> {
    parts: [&'a str; PARTS],
    length: usize,
}

impl<'a> Path<'a> {
    /// Splits a dotted name.
    pub(crate) fn of(dotted: &'a str) -> Self {
        let mut path = Self::default();
        path.push(dotted);
        path
    }

    /// Appends a dotted name.
    pub(crate) fn push(&mut self, dotted: &'a str) {
        for part in dotted.split('.').filter(|it| !it.is_empty()) {
            if let Some(free) = self.parts.get_mut(self.length) {
                *free = part;
                self.length += 1;
            }
        }
    }

    /// Whether it is exactly this dotted name.
    pub(crate) fn is(&self, dotted: &str) -> bool {
        let mut parts = dotted.split('.');
        self.parts().iter().all(|it| parts.next() == Some(it)) && parts.next().is_none()
    }

    /// Whether it begins with this dotted name.
    pub(crate) fn is_within(&self, dotted: &str) -> bool {
        let mut own = self.parts().iter();
        dotted.split('.').all(|it| own.next().is_some_and(|own| *own == it))
    }

    pub(crate) fn first(&self) -> &'a str {
        self.parts().first().copied().unwrap_or("")
    }

    pub(crate) fn last(&self) -> &'a str {
        self.parts().last().copied().unwrap_or("")
    }

    pub(crate) fn parts(&self) -> &[&'a str] {
        self.parts.get(..self.length).unwrap_or(&[])
    }

    /// As it is written.
    pub(crate) fn dotted(&self) -> String {
        self.parts().join(".")
    }

    /// Takes the last part off.
    pub(crate) fn pop(&mut self) {
        self.length = self.length.saturating_sub(1);
    }
}

impl PartialEq for Path<'_> {
    fn eq(&self, other: &Self) -> bool {
        // What was taken off again is still there behind the end.
        self.parts() == other.parts()
    }
}

impl Eq for Path<'_> {}

impl Hash for Path<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.dotted())
    }
}
