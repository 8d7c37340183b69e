//! Keeps a persistent `GradientTape` for longer than it is needed.
//!
//! ## Why it matters
//! A tape holds every intermediate result of what it recorded. A usual tape lets go of them with its one call of `gradient`; a
//! persistent one holds them until the tape itself is gone. In a loop the tape of one round lives until the next round's tape takes
//! its name, so that the activations of two steps are in memory at once.
//!
//! ## Example
//! ```python
//! import tensorflow as tf
//!
//! for x, y in dataset:
//!     with tf.GradientTape(persistent=True) as tape:
//!         loss = loss_fn(y, model(x))
//!     grads = tape.gradient(loss, model.trainable_variables)
//!     optimizer.apply_gradients(zip(grads, model.trainable_variables))
//! ```
//! Use instead:
//! ```python
//! import tensorflow as tf
//!
//! for x, y in dataset:
//!     with tf.GradientTape() as tape:
//!         loss = loss_fn(y, model(x))
//!     grads = tape.gradient(loss, model.trainable_variables)
//!     optimizer.apply_gradients(zip(grads, model.trainable_variables))
//! ```
//!
//! ## When it is silent
//! Several gradients are taken and the tape is deleted, or it is a name of a function that returns soon.
//!
//! ## Fix
//! One gradient only: takes `persistent=True` away. Several: puts `del` behind the last. Both are unsafe: what else looks at the tape
//! is not always seen.
//!
//! ## References
//! - [TensorFlow guide: persistent tapes](https://www.tensorflow.org/guide/autodiff), sql-machine-learning/elasticdl#1144

use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::{Call, Root},
    fix::{Applicability, Fix},
    names::{method_name, FunctionId, Usage, Use},
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{self, Expr, Stmt},
        bool_literal,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK808",
    name: "persistent-tape-kept",
    frameworks: &[Framework::TensorFlow],
    severity: Severity::Info,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_to(&["tensorflow.GradientTape"]) {
        let persistent = call.argument("persistent", 0).and_then(bool_literal);
        if persistent != Some(true) {
            continue;
        }
        let Some((with, name)) = with_of(context, call) else { continue };
        let uses = context.uses(Root::Name(call.at.function, name));
        let is_here = |it: &&Use<'_>| it.function == call.at.function;
        let is_known = |it: &Use<'_>| {
            matches!(it.usage, Usage::Method(_) | Usage::Stored | Usage::Deleted)
        };
        // Another tape of the same name, or one that is passed on: not to be judged.
        let is_only = uses.iter().filter(|it| matches!(it.usage, Usage::Stored)).count() == 1;
        if !is_only || !uses.iter().all(|it| is_here(&it) && is_known(it)) {
            continue;
        }
        let gradients: Vec<_> = uses
            .iter()
            .filter_map(|it| match it.usage {
                Usage::Method(call) if method_name(call) != "watch" => Some((it, method_name(call), call)),
                _ => None,
            })
            .collect();
        let report = |message: &str| {
            Diagnostic::new(&RULE, Severity::Info, call.expr, message)
                .because("it holds what its operations computed until the tape itself is gone")
        };
        match gradients.as_slice() {
            // In the block of the tape, or in a loop of its own, a persistent one may be needed.
            [(one, "gradient", gradient)]
                if one.in_loop == call.at.in_loop && !with.range.contains_range(gradient.range()) =>
            {
                let fix = context.delete_keyword(call.expr, "persistent").map(|edit| {
                    Fix::new(Applicability::Unsafe, "let the tape go with its one gradient", vec![edit])
                });
                found.push(
                    report("a persistent tape of which one gradient is taken")
                        .advise("leave `persistent=True` away: the tape then frees what it holds")
                        .fixed_by(fix),
                );
            }
            [_, _, ..] => {
                let is_deleted = uses.iter().any(|it| matches!(it.usage, Usage::Deleted));
                let is_repeated = match context.repetition_at(&call.at) {
                    Some(Repetition::Data(_)) => call.at.in_loop.is_some(),
                    _ => false,
                };
                if !is_deleted && is_repeated {
                    found.push(
                        report("a persistent tape that lives until the tape of the next round takes its name")
                            .advise(format!("`del {name}` after its last gradient"))
                            .fixed_by(delete(context, call.at.function, with, name)),
                    );
                }
            }
            _ => {}
        }
    }
}

/// The `with` statement that opens a tape, and the name it gets.
fn with_of<'a>(context: &Context<'a>, call: &Call<'a>) -> Option<(&'a ast::StmtWith, &'a str)> {
    context.facts.withs.iter().find_map(|(with, _)| {
        with.items.iter().find_map(|item| {
            let is_tape = matches!(&item.context_expr, Expr::Call(it) if std::ptr::eq(it, call.expr));
            match item.optional_vars.as_deref() {
                Some(Expr::Name(name)) if is_tape => Some((*with, name.id.as_str())),
                _ => None,
            }
        })
    })
}

/// `del tape` behind the last statement beside the `with` that mentions it.
fn delete<'a>(
    context: &Context<'a>,
    function: FunctionId,
    with: &'a ast::StmtWith,
    name: &'a str,
) -> Option<Fix> {
    let body = context.names.function(function).node.body();
    let statement = find(body, with)?;
    let block = Context::block_of(statement, body)?;
    let uses = context.uses(Root::Name(function, name));
    let last = block.iter().rfind(|it| uses.iter().any(|one| it.range().contains_range(one.expr.range())))?;
    let all_inside = uses.iter().all(|one| block.iter().any(|it| it.range().contains_range(one.expr.range())));
    if !all_inside || !context.is_alone_on_its_lines(last) || matches!(last, Stmt::Return(_)) {
        return None;
    }
    let edit = context.line_below(last, statement, &format!("del {name}"));
    Some(Fix::new(Applicability::Unsafe, "delete the tape after its last gradient", vec![edit]))
}

/// The statement that is this `with`.
fn find<'a>(within: &'a [Stmt], with: &ast::StmtWith) -> Option<&'a Stmt> {
    struct Find<'a, 'w> {
        with: &'w ast::StmtWith,
        found: Option<&'a Stmt>,
    }
    impl<'a> crate::syntax::visitor::Visitor<'a> for Find<'a, '_> {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            if self.found.is_some() || !statement.range().contains_range(self.with.range) {
                return;
            }
            if matches!(statement, Stmt::With(it) if std::ptr::eq(it, self.with)) {
                self.found = Some(statement);
            } else {
                crate::syntax::visitor::walk_stmt(self, statement);
            }
        }
    }
    let mut search = Find { with, found: None };
    for statement in within {
        crate::syntax::visitor::Visitor::visit_stmt(&mut search, statement);
    }
    search.found
}
