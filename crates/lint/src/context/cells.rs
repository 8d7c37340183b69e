//! The cells of a notebook.

use super::Context;
use crate::{
    names::FunctionId,
    source::SourceKind,
    syntax::{Ranged, ast::Stmt},
};

impl<'a> Context<'a> {
    /// Whether the file is a notebook.
    pub(crate) fn is_notebook(&self) -> bool {
        self.source.kind() == SourceKind::Notebook
    }

    /// The last statement of each cell, whose value `IPython` shows and keeps.
    pub(crate) fn last_of_cells(&self) -> Vec<&'a Stmt> {
        let body = self.names.function(FunctionId::MODULE).node.body();
        let bounds = self.source.bounds();
        bounds
            .windows(2)
            .filter_map(|it| match it {
                [start, end] => {
                    body.iter().rfind(|it| *start <= it.range().start() && it.range().start() < *end)
                }
                _ => None,
            })
            .collect()
    }
}
