//! Documents that are open in the editor, as the client tells of them.

use std::collections::BTreeMap;

use lsp_types::{
    NotebookCell, NotebookCellKind, NotebookDocument, NotebookDocumentCellChange,
    TextDocumentContentChangeEvent, TextDocumentItem, Uri,
};

use super::positions::{Encoding, Lines};

/// A text that is open: a file, or a cell of a notebook.
#[derive(Clone, Debug)]
pub(super) struct TextDocument {
    pub(super) uri: Uri,
    pub(super) version: i32,
    pub(super) text: String,
    language: String,
}

/// A notebook that is open.
#[derive(Clone, Debug)]
pub(super) struct NotebookFile {
    pub(super) uri: Uri,
    pub(super) cells: Vec<NotebookCell>,
}

/// All that is open, by address.
#[derive(Debug, Default)]
pub(super) struct Documents {
    texts: BTreeMap<String, TextDocument>,
    notebooks: BTreeMap<String, NotebookFile>,
}

impl TextDocument {
    fn new(item: TextDocumentItem) -> Self {
        Self { uri: item.uri, version: item.version, text: item.text, language: item.language_id }
    }

    /// Whether it is Python by its language or its name. A notebook as a text is JSON.
    pub(super) fn is_python(&self) -> bool {
        let path = self.uri.path().as_str();
        !path.ends_with(".ipynb")
            && (self.language == "python" || path.ends_with(".py") || path.ends_with(".pyi"))
    }

    fn change(&mut self, version: i32, changes: Vec<TextDocumentContentChangeEvent>, encoding: Encoding) {
        for change in changes {
            match change.range {
                Some(range) => {
                    let bytes = Lines::of(&self.text).bytes(&self.text, range, encoding);
                    self.text.replace_range(bytes, &change.text);
                }
                None => self.text = change.text,
            }
        }
        self.version = version;
    }
}

impl NotebookFile {
    /// Its cells with Python code, each with its number among all of them and its text.
    pub(super) fn code<'a>(&'a self, documents: &'a Documents) -> Vec<(usize, &'a TextDocument)> {
        let code = self.cells.iter().enumerate().filter(|(_, cell)| cell.kind == NotebookCellKind::Code);
        code.filter_map(|(index, cell)| Some((index, documents.texts.get(cell.document.as_str())?)))
            .filter(|(_, document)| document.language == "python")
            .collect()
    }
}

impl Documents {
    pub(super) fn open(&mut self, item: TextDocumentItem) {
        self.texts.insert(item.uri.as_str().to_owned(), TextDocument::new(item));
    }

    /// Changes a document; nothing happens to one that is not open.
    pub(super) fn change(
        &mut self,
        uri: &Uri,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
        encoding: Encoding,
    ) {
        if let Some(document) = self.texts.get_mut(uri.as_str()) {
            document.change(version, changes, encoding);
        }
    }

    pub(super) fn close(&mut self, uri: &Uri) {
        self.texts.remove(uri.as_str());
    }

    pub(super) fn open_notebook(&mut self, notebook: NotebookDocument, cells: Vec<TextDocumentItem>) {
        for cell in cells {
            self.open(cell);
        }
        let file = NotebookFile { uri: notebook.uri, cells: notebook.cells };
        self.notebooks.insert(file.uri.as_str().to_owned(), file);
    }

    /// Changes a notebook: its cells, what is in them, or both.
    pub(super) fn change_notebook(
        &mut self,
        uri: &Uri,
        change: NotebookDocumentCellChange,
        encoding: Encoding,
    ) {
        let Some(notebook) = self.notebooks.get_mut(uri.as_str()) else { return };
        let mut closed = Vec::new();
        let mut opened = Vec::new();
        if let Some(structure) = change.structure {
            let start = (structure.array.start as usize).min(notebook.cells.len());
            let end = start.saturating_add(structure.array.delete_count as usize).min(notebook.cells.len());
            notebook.cells.splice(start..end, structure.array.cells.unwrap_or_default());
            closed = structure.did_close.unwrap_or_default();
            opened = structure.did_open.unwrap_or_default();
        }
        for changed in change.data.unwrap_or_default() {
            if let Some(cell) = notebook.cells.iter_mut().find(|cell| cell.document == changed.document) {
                *cell = changed;
            }
        }
        for cell in closed {
            self.close(&cell.uri);
        }
        for cell in opened {
            self.open(cell);
        }
        for content in change.text_content.unwrap_or_default() {
            self.change(&content.document.uri, content.document.version, content.changes, encoding);
        }
    }

    /// Closes a notebook with its cells, whose addresses are given back.
    pub(super) fn close_notebook(&mut self, uri: &Uri) -> Vec<Uri> {
        let cells = self.notebooks.remove(uri.as_str()).map(|it| it.cells).unwrap_or_default();
        let cells: Vec<Uri> = cells.into_iter().map(|cell| cell.document).collect();
        for cell in &cells {
            self.close(cell);
        }
        cells
    }

    /// Files that are open as texts, without the cells of notebooks.
    pub(super) fn files(&self) -> impl Iterator<Item = &TextDocument> {
        let is_cell = |document: &TextDocument| {
            self.notebooks.values().flat_map(|it| &it.cells).any(|cell| cell.document == document.uri)
        };
        self.texts.values().filter(move |document| document.is_python() && !is_cell(document))
    }

    pub(super) fn notebooks(&self) -> impl Iterator<Item = &NotebookFile> {
        self.notebooks.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsp_types::{Position, Range};

    type Change<'a> = ((u32, u32), (u32, u32), &'a str);

    fn check(text: &str, changes: &[Change<'_>], encoding: Encoding, expect: &str) {
        let uri: Uri = "file:///a.py".parse().unwrap();
        let mut documents = Documents::default();
        documents.open(TextDocumentItem::new(uri.clone(), "python".into(), 1, text.into()));
        let changes = changes
            .iter()
            .map(|(start, end, text)| TextDocumentContentChangeEvent {
                range: Some(Range::new(Position::new(start.0, start.1), Position::new(end.0, end.1))),
                range_length: None,
                text: (*text).to_owned(),
            })
            .collect();
        documents.change(&uri, 2, changes, encoding);
        let document = documents.files().next().unwrap();
        assert_eq!((document.text.as_str(), document.version), (expect, 2));
    }

    #[test]
    fn changes_are_made_one_after_the_other() {
        check(
            "ab\r\ncd\r\n",
            &[((1, 0), (1, 1), "x\r\ny"), ((2, 1), (2, 2), "")],
            Encoding::Utf16,
            "ab\r\nx\r\ny\r\n",
        );
        check("𝄞a", &[((0, 2), (0, 3), "b")], Encoding::Utf16, "𝄞b");
        check("𝄞a", &[((0, 4), (0, 5), "b")], Encoding::Utf8, "𝄞b");
        check("𝄞a", &[((0, 1), (0, 1), "b")], Encoding::Utf16, "b𝄞a");
        check("a\r\nb", &[((0, 9), (0, 9), "c")], Encoding::Utf16, "ac\r\nb");
        check("a", &[((9, 9), (4, 0), "b"), ((0, 2), (0, 0), "")], Encoding::Utf16, "");
    }

    #[test]
    fn what_is_not_open_is_not_changed() {
        let uri: Uri = "file:///a.py".parse().unwrap();
        let mut documents = Documents::default();
        documents.change(&uri, 2, Vec::new(), Encoding::Utf16);
        documents.close(&uri);
        assert!(documents.close_notebook(&uri).is_empty());
        assert_eq!(documents.files().count(), 0);
    }
}
