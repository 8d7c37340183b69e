//! An open file as the linter reads it, and how its places are those of documents.

use std::path::{Path, PathBuf};

use lsp_types::{Location, Position, Range, Uri};
use serde_json::json;
use vramscope_lint::{Source, Span, TextSize, Unreadable};

use super::documents::{Documents, NotebookFile, TextDocument};
use super::positions::{Encoding, Lines};

/// A file or a notebook.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) uri: Uri,
    /// Absolute and without links; what has no file has none.
    pub(super) real: Option<PathBuf>,
    pub(super) source: Source,
    /// Why it could not be read; the source is empty then.
    pub(super) trouble: Option<String>,
    pub(super) is_notebook: bool,
    /// In order; of a file one, of a notebook its cells.
    parts: Vec<Part>,
}

/// A document, and which part of the source it is.
#[derive(Debug)]
struct Part {
    uri: Uri,
    version: i32,
    start: usize,
    end: usize,
    lines: Lines,
}

impl OpenFile {
    pub(super) fn of_text(document: &TextDocument) -> Self {
        let real = real_path(&document.uri);
        let name = name(&document.uri, real.as_deref());
        let (source, trouble) = read(&name, Source::of_text(&name, document.text.clone()));
        let part = Part {
            uri: document.uri.clone(),
            version: document.version,
            start: 0,
            end: source.text().len(),
            lines: Lines::of(source.text()),
        };
        Self { uri: document.uri.clone(), real, source, trouble, is_notebook: false, parts: vec![part] }
    }

    pub(super) fn of_notebook(notebook: &NotebookFile, documents: &Documents) -> Self {
        let real = real_path(&notebook.uri);
        let name = format!("{}.ipynb", name(&notebook.uri, real.as_deref()).trim_end_matches(".ipynb"));
        let code = notebook.code(documents);
        let cells: Vec<_> = code
            .iter()
            .map(|(_, cell)| {
                json!({
                    "cell_type": "code", "metadata": {}, "source": cell.text, "outputs": [],
                    "execution_count": null,
                })
            })
            .collect();
        let whole = json!({
            "cells": cells, "metadata": { "language_info": { "name": "python" } },
            "nbformat": 4, "nbformat_minor": 4,
        });
        let (source, trouble) = read(&name, Source::read(&name, whole.to_string().as_bytes()));
        let parts = parts(&source, &code);
        Self { uri: notebook.uri.clone(), real, source, trouble, is_notebook: true, parts }
    }

    /// The documents that it consists of, with their versions.
    pub(super) fn documents(&self) -> impl Iterator<Item = (&Uri, i32)> {
        self.parts.iter().map(|part| (&part.uri, part.version))
    }

    pub(super) fn has(&self, uri: &Uri) -> bool {
        self.parts.iter().any(|part| part.uri == *uri)
    }

    pub(super) fn version(&self, uri: &Uri) -> Option<i32> {
        self.parts.iter().find(|part| part.uri == *uri).map(|part| part.version)
    }

    /// Where some bytes of the source are. What reaches beyond a cell is shortened.
    pub(super) fn location(&self, span: Span, encoding: Encoding) -> Option<Location> {
        let start = span.start as usize;
        let index = self.parts.partition_point(|part| part.start <= start).checked_sub(1)?;
        let part = self.parts.get(index)?;
        let text = self.source.text().get(part.start..part.end)?;
        let position = |at: usize| part.lines.position(text, at.saturating_sub(part.start), encoding);
        Some(Location {
            uri: part.uri.clone(),
            range: Range::new(position(start), position(span.end as usize)),
        })
    }

    /// The bytes of the source at a range of a document.
    pub(super) fn span(&self, uri: &Uri, range: Range, encoding: Encoding) -> Option<Span> {
        let part = self.parts.iter().find(|part| part.uri == *uri)?;
        let text = self.source.text().get(part.start..part.end)?;
        let bytes = part.lines.bytes(text, range, encoding);
        let at = |offset: usize| (part.start + offset) as u32;
        Some(Span { start: at(bytes.start), end: at(bytes.end) })
    }

    /// The byte of the source at a position of a document.
    pub(super) fn offset(&self, uri: &Uri, position: Position, encoding: Encoding) -> Option<TextSize> {
        self.span(uri, Range::new(position, position), encoding).map(|span| span.start.into())
    }
}

/// Which documents the cells of a source are. Cells that hold no Python, such as those of magics for other languages, are
/// not in it.
fn parts(source: &Source, code: &[(usize, &TextDocument)]) -> Vec<Part> {
    let text = source.text();
    let lines = Lines::of(text);
    let mut starts: Vec<(u32, usize)> = Vec::new();
    for start in lines.starts().filter(|start| *start < text.len()) {
        let location = source.location(TextSize::try_from(start).unwrap_or_default());
        if let Some(cell) = location.cell.filter(|cell| starts.last().is_none_or(|(last, _)| last != cell)) {
            starts.push((cell, start));
        }
    }
    let ends = starts.iter().skip(1).map(|(_, start)| *start).chain([text.len()]);
    let with_ends: Vec<_> = starts.iter().copied().zip(ends).collect();
    with_ends
        .into_iter()
        .filter_map(|((cell, start), end)| {
            let (_, document) = code.get((cell as usize).checked_sub(1)?)?;
            let piece = text.get(start..end)?;
            // The line feed at its end is not of the document.
            let piece = piece.strip_suffix('\n').unwrap_or(piece);
            Some(Part {
                uri: document.uri.clone(),
                version: document.version,
                start,
                end: start + piece.len(),
                lines: Lines::of(piece),
            })
        })
        .collect()
}

/// What could be read, or an empty source and why it could not.
fn read(name: &str, source: Result<Source, Unreadable>) -> (Source, Option<String>) {
    match source {
        Ok(source) => (source, None),
        Err(why) => (Source::empty(name), Some(why.0)),
    }
}

/// Its path as the linter is told of it, by which files know each other.
fn name(uri: &Uri, real: Option<&Path>) -> String {
    real.map_or_else(|| uri.path().as_str().to_owned(), |real| real.display().to_string())
}

/// The path of a file's address, absolute and without links as far as it exists.
pub(super) fn real_path(uri: &Uri) -> Option<PathBuf> {
    let is_file = uri.scheme().is_some_and(|scheme| scheme.as_str().eq_ignore_ascii_case("file"));
    is_file.then_some(())?;
    let decoded = uri.path().as_estr().decode().into_bytes();
    let path = path_of(&decoded)?;
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    // A file that is yet to be written.
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    Some(parent.zip(path.file_name()).map_or_else(|| path.clone(), |(parent, name)| parent.join(name)))
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(bytes))).filter(|path| path.is_absolute())
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    // `/c:/directory`
    let text = std::str::from_utf8(bytes).ok()?;
    Some(PathBuf::from(text.trim_start_matches('/'))).filter(|path| path.is_absolute())
}
