//! What functions return, as expressions.

use super::Context;
use crate::{
    names::{FunctionId, FunctionNode},
    syntax::{
        ast::{Expr, Stmt},
        visitor::{self, Visitor},
    },
};

/// A `return`, or the body of a lambda.
pub(crate) struct Returned<'a> {
    pub(crate) expr: &'a Expr,
    /// Whether it stands in an `if`, a loop, a `try`: it may be another that is reached.
    pub(crate) is_conditional: bool,
}

struct Search<'a> {
    found: Vec<Returned<'a>>,
    depth: u32,
}

impl<'a> Visitor<'a> for Search<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
            Stmt::Return(it) => {
                if let Some(expr) = &it.value {
                    self.found.push(Returned { expr, is_conditional: self.depth > 0 });
                }
            }
            Stmt::With(_) => visitor::walk_stmt(self, statement),
            _ => {
                self.depth += 1;
                visitor::walk_stmt(self, statement);
                self.depth -= 1;
            }
        }
    }

    // No statement is part of an expression.
    fn visit_expr(&mut self, _: &'a Expr) {}
}

impl<'a> Context<'a> {
    /// What a function returns, in the order of the source.
    pub(crate) fn returned_by(&self, function: FunctionId) -> Vec<Returned<'a>> {
        match self.names.function(function).node {
            FunctionNode::Lambda(it) => vec![Returned { expr: &it.body, is_conditional: false }],
            FunctionNode::Def(it) => {
                let mut search = Search { found: Vec::new(), depth: 0 };
                search.visit_body(&it.body);
                search.found
            }
            FunctionNode::Module(_) => Vec::new(),
        }
    }
}

/// Whether a value is this name, or a tuple, list or dict with it in it.
pub(crate) fn holds_name<'e>(expr: &'e Expr, name: &str) -> Option<&'e Expr> {
    match expr {
        Expr::Name(it) => (it.id.as_str() == name).then_some(expr),
        Expr::Tuple(it) => it.elts.iter().find_map(|it| holds_name(it, name)),
        Expr::List(it) => it.elts.iter().find_map(|it| holds_name(it, name)),
        Expr::Dict(it) => it.items.iter().find_map(|it| holds_name(&it.value, name)),
        _ => None,
    }
}
