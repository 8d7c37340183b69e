//! What runs after a statement, in the same call of its function.

use super::{Context, edits::blocks_of};
use crate::{
    names::FunctionId,
    syntax::{Ranged, TextRange, ast::Stmt},
};

impl<'a> Context<'a> {
    /// The statements of a function that may run once the statement at `place` has: those behind it in its block, then those
    /// behind the statements around it. What stands in front of it in a loop around both is not among them.
    pub(crate) fn statements_after(&self, function: FunctionId, place: TextRange) -> Vec<&'a Stmt> {
        let mut found = Vec::new();
        gather(self.body_of(function), place, &mut found);
        found
    }
}

/// Gathers what follows `place` in this block; tells whether the end of the block can be reached from there.
fn gather<'a>(block: &'a [Stmt], place: TextRange, found: &mut Vec<&'a Stmt>) -> bool {
    let Some(index) = block.iter().position(|it| it.range().contains_range(place)) else { return true };
    let Some((own, rest)) = block.get(index..).and_then(<[Stmt]>::split_first) else { return true };
    if own.range() != place {
        let inner =
            blocks_of(own).into_iter().find(|it| it.iter().any(|it| it.range().contains_range(place)));
        if inner.is_some_and(|it| !gather(it, place, found)) {
            return false;
        }
    }
    found.extend(rest);
    !rest.iter().any(|it| matches!(it, Stmt::Return(_) | Stmt::Raise(_)))
}
