//! Functions with `functools.lru_cache` or `functools.cache`.

use super::Context;
use crate::{
    names::{FunctionId, ScopeId},
    syntax::{
        ast::{self, Expr},
        int_literal,
    },
};

/// The cache of a function.
pub(crate) struct Cache<'a> {
    pub(crate) decorator: &'a ast::Decorator,
    /// Whether it drops nothing.
    pub(crate) is_unbounded: bool,
}

impl<'a> Context<'a> {
    /// The cache that a decorator gives to a function, unless it keeps nothing (`maxsize=0`).
    pub(crate) fn cache_of(&self, id: FunctionId) -> Option<Cache<'a>> {
        let function = self.names.function(id);
        let scope = match function.class {
            Some(class) => self.names.class(class).scope,
            None => function.parent.map_or(ScopeId::MODULE, |it| self.scope(it)),
        };
        function.node.decorators().iter().find_map(|decorator| {
            let (callee, call) = match &decorator.expression {
                Expr::Call(call) => (&*call.func, Some(call)),
                other => (other, None),
            };
            let path = self.names.path(scope, callee)?;
            let is_unbounded = if path.is("functools.cache") {
                true
            } else if path.is("functools.lru_cache") {
                match call.and_then(|it| it.arguments.find_argument_value("maxsize", 0)) {
                    Some(size) if int_literal(size) == Some(0) => return None,
                    Some(size) => size.is_none_literal_expr(),
                    None => false,
                }
            } else {
                return None;
            };
            Some(Cache { decorator, is_unbounded })
        })
    }

    /// Whether a method is static or one of the class.
    pub(crate) fn is_without_object(&self, id: FunctionId) -> bool {
        self.names.function(id).node.decorators().iter().any(
            |it| matches!(&it.expression, Expr::Name(it) if matches!(it.id.as_str(), "staticmethod" | "classmethod")),
        )
    }
}
