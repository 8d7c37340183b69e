//! Python's syntax: the only module that names the crates of Ruff, so that a new release of them is one file's work.

mod nesting;
mod search;

pub(crate) use ruff_python_ast::{self as ast, visitor};
pub use ruff_text_size::{Ranged, TextRange, TextSize};

pub(crate) use nesting::with_deep_stack;
pub(crate) use ruff_diagnostics::SourceMap;
pub(crate) use ruff_notebook::{Notebook, SourceValue};
pub(crate) use ruff_python_ast::{
    ModModule, PySourceType,
    token::{Token, TokenKind},
};
pub(crate) use ruff_python_parser::Parsed;
pub(crate) use ruff_source_file::{LineIndex, OneIndexed};
pub(crate) use search::{
    ZERO, bool_literal, int_literal, is_parameter, is_same_place, mentions, statement_mentions, text_literal,
};

use ruff_python_parser::{ParseOptions, parse_cells_unchecked, parse_unchecked_source};

use crate::{
    check::Problem,
    source::{Source, SourceKind},
};

impl Source {
    /// The tree and the tokens, whatever the text: where it is no Python the parser recovers, see [`syntax_errors`].
    ///
    /// A file whose tree would be so deep that walking it could exhaust the stack is refused.
    pub(crate) fn parse(&self) -> Result<Parsed<ModModule>, Problem> {
        nesting::guard(self.text(), self.source_type(), || match self.kind() {
            // One by one: what one cell leaves open says nothing about the next.
            SourceKind::Notebook => parse_cells_unchecked(
                self.text(),
                self.bounds().windows(2).filter_map(|bounds| match bounds {
                    [start, end] => Some(TextRange::new(*start, end.checked_sub(1.into())?)),
                    _ => None,
                }),
                &ParseOptions::from(PySourceType::Ipynb),
            ),
            SourceKind::Module | SourceKind::Stub => parse_unchecked_source(self.text(), self.source_type()),
        })
    }
}

/// The tree of an empty file.
pub(crate) fn empty_module() -> ModModule {
    ModModule { node_index: ast::AtomicNodeIndex::NONE, range: TextRange::default(), body: ast::Suite::new() }
}

/// What is no Python, in order of place.
pub(crate) fn syntax_errors(parsed: &Parsed<ModModule>) -> Vec<Problem> {
    let mut problems: Vec<_> = parsed
        .errors()
        .iter()
        .map(|error| Problem {
            range: Some(error.location),
            message: format!("syntax error: {}", lower_case(&error.error.to_string())),
        })
        .collect();
    problems.sort_by_key(|problem| problem.range.map(|range| (range.start(), range.end())));
    problems
}

/// Ruff's sentences begin in upper case.
pub(crate) fn lower_case(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}
