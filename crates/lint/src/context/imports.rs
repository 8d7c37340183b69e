//! Which libraries a file uses, and what is built into Python.

use super::Context;
use crate::{facts::Call, syntax::ast::Expr};

impl<'a> Context<'a> {
    /// Whether the file imports something of this dotted name, anywhere.
    pub(crate) fn imports(&self, dotted: &str) -> bool {
        self.names.imports.iter().any(|it| it.is_within(dotted))
    }

    /// The calls of a function that is built into Python.
    pub(crate) fn calls_to_builtin(&self, name: &'static str) -> impl Iterator<Item = &'a Call<'a>> {
        self.facts.calls_named(name).filter(move |call| {
            matches!(&*call.expr.func, Expr::Name(it) if it.id.as_str() == name)
                && self.names.scope_of(self.scope(call.at.function), name).is_none()
        })
    }
}
