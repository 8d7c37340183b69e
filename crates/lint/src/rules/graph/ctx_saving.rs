//! The edit that saves tensors with `save_for_backward` instead of storing them as attributes of the context.

use super::ctx_attributes::{Stored, method};
use crate::{
    context::Context,
    fix::{Applicability, Edit, Fix},
    names::{FunctionId, FunctionNode},
    syntax::{
        Ranged,
        ast::{Expr, ExprAttribute, ExprContext, Stmt, StmtFunctionDef},
        visitor::{self, Visitor},
    },
};

/// Attributes and names that a piece of code mentions.
#[derive(Default)]
struct Mentions<'a> {
    attributes: Vec<&'a ExprAttribute>,
    names: Vec<&'a str>,
}

impl<'a> Visitor<'a> for Mentions<'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Attribute(it) => self.attributes.push(it),
            Expr::Name(it) => self.names.push(it.id.as_str()),
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}

/// One edit does it for all that a class stores; it stands at the first of it.
pub(super) fn save_once<'a>(context: &Context<'a>, all: &[Stored<'a>], stored: &Stored<'a>) -> Option<Fix> {
    let of_class: Vec<_> = all.iter().filter(|it| it.class == stored.class).collect();
    let is_first = of_class.first().is_some_and(|first| std::ptr::eq(*first, stored));
    is_first.then(|| save(context, &of_class)).flatten()
}

/// Saves all that a class stores, and lets backward take it from there. Only if the class saves nothing yet, everything is
/// stored side by side, and nothing but backward reads it.
fn save<'a>(context: &Context<'a>, all: &[&Stored<'a>]) -> Option<Fix> {
    let (first, last) = (all.first()?, all.last()?);
    let (forward_id, ctx) = method(context, first.class, "forward")?;
    let (backward_id, backward_ctx) = method(context, first.class, "backward")?;
    let (forward, backward) = (definition(context, forward_id)?, definition(context, backward_id)?);
    let mut class = Mentions::default();
    class.visit_body(&context.names.class(first.class).node.body);
    if class.attributes.iter().any(|it| matches!(it.attr.as_str(), "save_for_backward" | "saved_tensors")) {
        return None;
    }
    let mut edits = Vec::new();
    let begin = position(forward, first.assignment.at.statement)?;
    for (index, it) in all.iter().enumerate() {
        let statement = it.assignment.at.statement;
        let Stmt::Assign(assign) = statement else { return None };
        let is_plain = matches!(assign.targets.as_slice(), [Expr::Attribute(_)]);
        if position(forward, statement)? != begin + index || !is_plain {
            return None;
        }
        if std::ptr::eq(*it, *last) {
            let names: Vec<&str> = all.iter().map(|it| it.name).collect();
            edits.push(Edit::replace(statement, format!("{ctx}.save_for_backward({})", names.join(", "))));
        } else if context.is_alone_on_its_lines(statement) {
            edits.push(Edit::delete(context.whole_lines(statement)));
        } else {
            return None;
        }
    }
    let mut own = Mentions::default();
    own.visit_body(&backward.body);
    let mut unpacked: Vec<&str> = Vec::new();
    for it in all {
        let is_taken = own.names.contains(&it.attribute)
            || context.names.scope(context.scope(backward_id)).names.contains_key(it.attribute)
            || unpacked.contains(&it.attribute);
        if is_taken {
            return None;
        }
        unpacked.push(it.attribute);
        for mention in class.attributes.iter().filter(|mention| mention.attr.as_str() == it.attribute) {
            if mention.range == it.assignment.target.range() {
                continue;
            }
            let is_read_in_backward = backward.range.contains_range(mention.range)
                && mention.ctx == ExprContext::Load
                && matches!(&*mention.value, Expr::Name(it) if it.id.as_str() == backward_ctx);
            if !is_read_in_backward {
                return None;
            }
            edits.push(Edit::replace(mention.range, it.attribute));
        }
    }
    let start = backward.body.iter().find(|it| !is_docstring(it))?;
    let indentation = context.indentation(start);
    if indentation.is_empty() {
        return None;
    }
    let comma = if unpacked.len() == 1 { "," } else { "" };
    let taken = format!("{}{comma} = {backward_ctx}.saved_tensors", unpacked.join(", "));
    edits.push(Edit::insert(start.start(), format!("{taken}{}{indentation}", context.end_of_line())));
    Some(Fix::new(Applicability::Unsafe, "save it with `save_for_backward`", edits))
}

fn definition<'a>(context: &Context<'a>, id: FunctionId) -> Option<&'a StmtFunctionDef> {
    match context.names.function(id).node {
        FunctionNode::Def(it) => Some(it),
        _ => None,
    }
}

fn position(function: &StmtFunctionDef, statement: &Stmt) -> Option<usize> {
    function.body.iter().position(|it| std::ptr::eq(it, statement))
}

fn is_docstring(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Expr(it) if it.value.is_string_literal_expr())
}
