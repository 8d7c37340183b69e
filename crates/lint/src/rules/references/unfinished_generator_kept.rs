//! Keeps generators or iterators over batches that may never come to their end.
//!
//! ## Why it matters
//! A generator that has not ended holds its whole frame: the batch that it was called with, and all that it computed up to its
//! `yield`: 4.2 MB each for one activation of 1024 x 1024 numbers. The iterator of a data loader holds the batches that its workers have read ahead, and
//! the workers. A list or dict of them, one more each round, grows by that. Often they are read to their end a moment later, which is
//! why the rule does not run unless it is selected.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//!
//!
//! def rows(batch):
//!     for row in model(batch):
//!         yield row.sum().item()
//!
//!
//! waiting = []
//! for batch in loader:
//!     waiting.append(rows(batch.cuda()))
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//!
//!
//! def rows(batch):
//!     for row in model(batch):
//!         yield row.sum().item()
//!
//!
//! sums = []
//! for batch in loader:
//!     sums.extend(rows(batch.cuda()))
//! ```
//! Where the rest is not wanted, `generator.close()` ends it, and lets go of its frame.
//!
//! ## When it is silent
//! What is kept is one for the whole run, replaces the one before, or is one for each of several loaders; the list is emptied or
//! bounded; nothing tells that the generator is given a batch or a tensor.
//!
//! ## Fix
//! Only advice: how far the rest is needed is not to be seen.
//!
//! ## References
//! - Measured: a list of generators that stand at their first `yield` keeps 4.2 MB each, which collecting garbage does not free.

use super::to_host::because_repeated;
use crate::{
    context::{Context, LOADERS},
    diagnostic::{Diagnostic, Severity},
    facts::{Call, Callee, Keep},
    flow::value::{FileId, Value},
    names::{FunctionId, LoopId},
    rule::{Framework, Rule},
    syntax::ast::Expr,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK209",
    name: "unfinished-generator-kept",
    frameworks: &[Framework::Any],
    severity: Severity::Info,
    default: false,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for keep in &context.facts.keeps {
        if !Context::adds_each_time(keep) || context.is_bounded(keep) {
            continue;
        }
        let Some(what) = what_is_unfinished(context, keep) else { continue };
        let Some(repetition) = context.repetition(keep) else { continue };
        let (target, kept) = (context.text(keep.target), context.text(keep.kept));
        let message = format!("`{target}` keeps `{kept}`, and with it {what} until it has come to its end");
        let diagnostic =
            Diagnostic::new(&RULE, Severity::Info, keep.range, message).kept_in(context.text(keep.target));
        found.push(
            because_repeated(context, diagnostic, keep, repetition)
                .advise("keep what it yields, or `.close()` it when the rest is not wanted"),
        );
    }
}

/// What a kept generator or iterator holds on to, if it is one that holds much.
fn what_is_unfinished<'a>(context: &Context<'a>, keep: &Keep<'a>) -> Option<&'static str> {
    match keep.kept {
        Expr::Generator(it) => {
            let first = it.generators.first()?;
            is_batch(context, keep, &first.iter).then_some("the batch that it goes over")
        }
        Expr::Call(made) => {
            let call = context.call_of(made)?;
            let arguments: Vec<&'a Expr> = made
                .arguments
                .args
                .iter()
                .chain(made.arguments.keywords.iter().map(|it| &it.value))
                .collect();
            if is_iter(context, call) {
                let [over] = arguments.as_slice() else { return None };
                return is_same_loader(context, keep, over).then_some("what its loader has read ahead");
            }
            let (file, id) = generator(context, call)?;
            let is_generator = file == context.file && context.names.function(id).is_generator;
            let is_given_batch = arguments
                .iter()
                .any(|it| call.value_of(it).tensor_within().is_some() || is_batch(context, keep, it));
            (is_generator && is_given_batch).then_some("the batch that it was called with")
        }
        _ => None,
    }
}

fn is_iter(context: &Context<'_>, call: &Call<'_>) -> bool {
    context.calls_to_builtin("iter").any(|it| std::ptr::eq(it, call))
}

/// The function of the project that a call runs.
fn generator(context: &Context<'_>, call: &Call<'_>) -> Option<(FileId, FunctionId)> {
    match &call.callee {
        Callee::Function(file, id) => Some((*file, *id)),
        Callee::Method { value: Value::Object(class), name, .. } => context.project.method(class, name),
        _ => None,
    }
}

/// Whether an expression is a loader that is the same one in every round.
fn is_same_loader<'a>(context: &Context<'a>, keep: &Keep<'a>, over: &'a Expr) -> bool {
    let is_loader = match context.loader(keep.at.function, over) {
        Some(_) => true,
        None => {
            matches!(over, Expr::Call(made) if context.calls_to(LOADERS).any(|it| std::ptr::eq(it.expr, made)))
        }
    };
    let around = context.names.loops_from(keep.at.in_loop);
    let is_another = around.into_iter().any(|id: LoopId| context.may_be_another_in(id, over));
    is_loader && (!is_another || matches!(over, Expr::Call(_)))
}

/// Whether an expression is a batch of the loop around, or a name for a tensor.
fn is_batch<'a>(context: &Context<'a>, keep: &Keep<'a>, expr: &'a Expr) -> bool {
    let value = context.value_of_name(keep.at.function, expr);
    value.is_some_and(|it| matches!(it, Value::Tensor(_)))
        || context.is_batch_of_loop(keep.at.function, keep.at.in_loop, expr)
}
