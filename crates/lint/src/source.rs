//! A Python file as it was read: its text, and where its lines and cells are.

mod coding;
mod notebook_text;

use std::sync::{Arc, OnceLock};

use crate::syntax::{
    LineIndex, Notebook, OneIndexed, PySourceType, SourceMap, SourceValue, TextRange, TextSize, lower_case,
};

use coding::Coding;

/// A Python file, a stub or a notebook, decoded.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    kind: SourceKind,
    content: Content,
    /// Found when somebody asks for a place; most files are never asked.
    lines: OnceLock<LineIndex>,
}

#[derive(Clone, Debug)]
enum Content {
    Plain { text: String, coding: Coding },
    Notebook { notebook: Box<Notebook>, json: Arc<str>, coding: Coding },
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
    /// The cell, in notebooks, counted with those that hold no code; lines are counted from its beginning then.
    pub cell: Option<u32>,
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// Why a file could not be decoded, as a sentence in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

impl Source {
    /// Decodes a file as Python does: UTF-8, or what a byte order mark or a comment in its first two lines says.
    ///
    /// `name` is its path as it is shown to people, and tells by its ending what kind it is.
    pub fn read(name: impl Into<String>, bytes: &[u8]) -> Result<Self, Unreadable> {
        let name = name.into();
        let kind = SourceKind::of(&name);
        let content = if kind == SourceKind::Notebook {
            let (json, coding) = coding::decode_utf8(bytes)?;
            Content::Notebook { notebook: Box::new(notebook(&json)?), json: json.into(), coding }
        } else {
            let (text, coding) = coding::decode(bytes)?;
            Content::Plain { text, coding }
        };
        let source = Self { name, kind, content, lines: OnceLock::new() };
        coding::refuse_nul(source.text())?;
        Ok(source)
    }

    /// Takes a text that is decoded already, as an editor has it, whatever it says about its encoding. It is a module, or a
    /// stub by its name.
    pub fn of_text(name: impl Into<String>, text: String) -> Result<Self, Unreadable> {
        let name = name.into();
        let kind =
            if SourceKind::of(&name) == SourceKind::Stub { SourceKind::Stub } else { SourceKind::Module };
        coding::refuse_large(text.len())?;
        coding::refuse_nul(&text)?;
        let content = Content::Plain { text, coding: Coding::Utf8 { marked: false } };
        Ok(Self { name, kind, content, lines: OnceLock::new() })
    }

    /// A file without text, in the place of one that cannot be read.
    pub fn empty(name: impl Into<String>) -> Self {
        let content = Content::Plain { text: String::new(), coding: Coding::Utf8 { marked: false } };
        Self { name: name.into(), kind: SourceKind::Module, content, lines: OnceLock::new() }
    }

    /// Its path as it is shown to people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its text, to which all ranges refer: without a byte order mark, with line ends as they are in the file.
    /// Of a notebook: the Python cells one after the other, each followed by a line feed.
    pub fn text(&self) -> &str {
        match &self.content {
            Content::Plain { text, .. } => text,
            Content::Notebook { notebook, .. } => notebook.source_code(),
        }
    }

    /// What kind of file it is.
    pub fn kind(&self) -> SourceKind {
        self.kind
    }

    /// Where the byte at `offset` is; beyond the text, where the text ends.
    pub fn location(&self, offset: TextSize) -> Location {
        let text = self.text();
        let end = text.floor_char_boundary(usize::from(offset));
        let row = self.lines().line_index(TextSize::try_from(end).unwrap_or_default());
        let start = self.lines().line_start(row, text);
        let column = text.get(start.into()..end).unwrap_or_default().chars().count() + 1;
        let (cell, line) = match &self.content {
            Content::Plain { .. } => (None, row),
            Content::Notebook { notebook, .. } => {
                let index = notebook.index();
                let within = index.cell_row(row).unwrap_or(row);
                (index.cell(row).map(|cell| cell.get() as u32), within)
            }
        };
        Location { cell, line: line.get() as u32, column: column as u32 }
    }

    /// The line of [`text`](Self::text) that holds the byte at `offset`, one-based. Unlike a [`Location`]'s it is
    /// counted from the beginning of the text in notebooks too: what [`line_text`](Self::line_text) takes.
    pub fn line_at(&self, offset: TextSize) -> u32 {
        self.lines().line_index(offset).get() as u32
    }

    /// A line of [`text`](Self::text) without its end; one-based.
    pub fn line_text(&self, line: u32) -> Option<&str> {
        let row = OneIndexed::new(line as usize).filter(|row| row.get() <= self.lines().line_count())?;
        let range = self.lines().line_range(row, self.text());
        let line = self.text().get(range.to_std_range())?;
        Some(line.strip_suffix("\r\n").or_else(|| line.strip_suffix(['\r', '\n'])).unwrap_or(line))
    }

    /// A line of [`text`](Self::text) without its end; empty at the end of the text if there is no such line.
    pub(crate) fn line_range(&self, line: u32) -> TextRange {
        let text = self.text();
        let row = OneIndexed::new(line as usize).filter(|row| row.get() <= self.lines().line_count());
        row.map_or_else(
            || TextRange::empty(self.end()),
            |row| {
                let start = self.lines().line_start(row, text);
                let length = self.line_text(line).map_or(0, str::len);
                TextRange::at(start, TextSize::try_from(length).unwrap_or_default())
            },
        )
    }

    /// Where cells begin, and the end of the text. Of what is no notebook: the two ends of the text.
    pub(crate) fn bounds(&self) -> Vec<TextSize> {
        match &self.content {
            Content::Plain { .. } => vec![TextSize::default(), self.end()],
            Content::Notebook { notebook, .. } => notebook.cell_offsets().to_vec(),
        }
    }

    /// The same file with another text. `bounds` are the new places of [`bounds`](Self::bounds); they matter in
    /// notebooks, whose cells get back the line feed at their end if the new text lacks it.
    pub(crate) fn with_text(&self, text: String, bounds: &[TextSize]) -> Self {
        let content = match &self.content {
            Content::Plain { coding, .. } => Content::Plain { text, coding: *coding },
            Content::Notebook { notebook, json, coding } => {
                let mut map = SourceMap::default();
                for (old, new) in notebook.cell_offsets().iter().zip(bounds) {
                    map.push_marker(*old, *new);
                }
                let mut notebook = notebook.clone();
                notebook.update(&map, text);
                Content::Notebook { notebook, json: Arc::clone(json), coding: *coding }
            }
        };
        Self { name: self.name.clone(), kind: self.kind, content, lines: OnceLock::new() }
    }

    /// The bytes to write back: in the encoding that was read, with its byte order mark. Of a notebook: its JSON,
    /// of which only the sources of cells that were edited change.
    ///
    /// Fails if the encoding has no bytes for a character, or the file used bytes for one that cannot be told from
    /// others, so that lines which nobody edited would change.
    pub fn encode(&self) -> Result<Vec<u8>, Unreadable> {
        match &self.content {
            Content::Plain { text, coding } => coding.encode(text),
            Content::Notebook { notebook, json, coding } => {
                let sources: Vec<String> = notebook
                    .cells()
                    .iter()
                    .map(|cell| match cell.source() {
                        SourceValue::String(text) => text.clone(),
                        SourceValue::StringArray(lines) => lines.concat(),
                    })
                    .collect();
                let json = notebook_text::with_sources(json, &sources)
                    .ok_or_else(|| Unreadable("the cells of the notebook cannot be told apart".into()))?;
                Ok([coding.byte_order_mark(), json.as_bytes()].concat())
            }
        }
    }

    /// What Ruff calls its kind.
    pub(crate) fn source_type(&self) -> PySourceType {
        match self.kind {
            SourceKind::Module => PySourceType::Python,
            SourceKind::Stub => PySourceType::Stub,
            SourceKind::Notebook => PySourceType::Ipynb,
        }
    }

    fn end(&self) -> TextSize {
        TextSize::try_from(self.text().len()).unwrap_or_default()
    }

    fn lines(&self) -> &LineIndex {
        self.lines.get_or_init(|| LineIndex::from_source_text(self.text()))
    }
}

impl SourceKind {
    fn of(name: &str) -> Self {
        let ends_with = |ending: &str| {
            name.len()
                .checked_sub(ending.len())
                .and_then(|at| name.get(at..))
                .is_some_and(|end| end.eq_ignore_ascii_case(ending))
        };
        if ends_with(".ipynb") {
            Self::Notebook
        } else if ends_with(".pyi") {
            Self::Stub
        } else {
            Self::Module
        }
    }
}

fn notebook(json: &str) -> Result<Notebook, Unreadable> {
    let notebook = Notebook::from_source_code(json).map_err(|error| {
        Unreadable(format!("not a notebook that can be read: {}", lower_case(&error.to_string())))
    })?;
    if !notebook.is_python_notebook() {
        return Err(Unreadable("a notebook of another language than Python".into()));
    }
    Ok(notebook)
}

#[cfg(test)]
mod tests;
