//! A Python file as it was read: its text, and where its lines and cells are.

use crate::syntax::TextSize;

/// A Python file, a stub or a notebook, decoded.
#[derive(Debug)]
pub struct Source {
    name: String,
    text: String,
    kind: SourceKind,
}

/// What kind of file a [`Source`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// `.py`
    Module,
    /// `.pyi`
    Stub,
    /// `.ipynb`
    Notebook,
}

/// A place in a source as people count: all one-based.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The cell, in notebooks; lines are counted from its beginning then.
    pub cell: Option<u32>,
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl Source {
    /// Decodes a file. `name` is its path as it is shown to people, and tells by its ending what kind it is.
    pub fn read(name: impl Into<String>, bytes: &[u8]) -> Result<Self, Unreadable> {
        let name = name.into();
        let text = String::from_utf8(bytes.to_vec()).map_err(|_| Unreadable("not UTF-8".into()))?;
        Ok(Self { name, text, kind: SourceKind::Module })
    }

    /// Its path as it is shown to people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its text, to which all ranges refer. Of a notebook: the code cells, one after the other.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What kind of file it is.
    pub fn kind(&self) -> SourceKind {
        self.kind
    }

    /// Where the byte at `offset` is.
    pub fn location(&self, offset: TextSize) -> Location {
        let before = self.text.get(..usize::from(offset)).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Location { cell: None, line: line as u32, column: column as u32 }
    }
}

/// Why a file could not be decoded, as a sentence in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);
