//! Profiles a whole training run in one piece.
//!
//! ## Why it matters
//! A profiler keeps every event, with shapes, stacks and memory if asked for, in host memory until it stops: a loop over a whole
//! data set makes millions of them. TensorFlow's guide warns that a profile that runs too long ends out of memory.
//!
//! ## Example
//! ```python
//! import torch
//!
//! with torch.profiler.profile(profile_memory=True) as prof:
//!     for batch in loader:
//!         train(batch)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! schedule = torch.profiler.schedule(wait=1, warmup=1, active=3)
//! with torch.profiler.profile(profile_memory=True, schedule=schedule) as prof:
//!     for batch in loader:
//!         train(batch)
//!         prof.step()
//! ```
//!
//! ## When it is silent
//! The loop goes over a `range`, is left by `break` or `return`, cut short by `islice`, or is in a test: a few steps are what
//! profilers are for.
//!
//! ## Fix
//! Only advice: which steps to look at is a choice.
//!
//! ## References
//! - pytorch/pytorch#22597
//! - [TensorFlow: optimize performance using the profiler](https://www.tensorflow.org/guide/profiler)

use crate::{
    context::{Context, Rounds},
    diagnostic::{Diagnostic, Severity},
    names::{LoopId, LoopNode},
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{Expr, Stmt},
        bool_literal,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK613",
    name: "profiler-without-schedule",
    frameworks: &[Framework::Torch, Framework::TensorFlow],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

const PROFILERS: &[&str] = &[
    "torch.profiler.profile",
    "torch.profiler.profiler.profile",
    "torch.autograd.profiler.profile",
    "tensorflow.profiler.experimental.Profile",
];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for (with, at) in &context.facts.withs {
        for item in &with.items {
            let Expr::Call(call) = &item.context_expr else { continue };
            let is_profiler = context
                .path(at.function, &call.func)
                .is_some_and(|path| PROFILERS.iter().any(|it| path.is(it)));
            let is_bounded = call.arguments.keywords.iter().any(|it| match it.arg.as_deref() {
                // `**options`
                None => true,
                Some("enabled") => bool_literal(&it.value) != Some(true),
                Some(name) => name == "schedule",
            });
            if !is_profiler || is_bounded {
                continue;
            }
            let Some(id) = with.body.iter().find_map(|it| long_loop(context, it)) else { continue };
            found.push(
                Diagnostic::new(
                    &RULE,
                    Severity::Warning,
                    call,
                    "the profiler keeps every event of the whole loop in host memory until it stops",
                )
                .because_of(context.head(id), "this loop runs over all data")
                .advise("profile a few steps: give a `schedule` and call `.step()`, or leave the loop early"),
            );
        }
    }
}

/// A loop over all data that a statement is or begins with.
fn long_loop(context: &Context<'_>, statement: &Stmt) -> Option<LoopId> {
    match statement {
        Stmt::For(node) => {
            let id = context.names.loop_at(node.range())?;
            let text = context.text(&*node.iter);
            let is_long = context.rounds(id) == Rounds::Data
                && (!text.contains("range(") || text.contains("epoch"))
                && !text.contains("slice(")
                && !matches!(&*node.iter, Expr::Subscript(_));
            (is_long && !is_left(context, LoopNode::For(node))).then_some(id)
        }
        Stmt::With(it) => it.body.iter().find_map(|it| long_loop(context, it)),
        _ => None,
    }
}

/// Whether the loop has a way out before its end.
fn is_left(context: &Context<'_>, node: LoopNode<'_>) -> bool {
    node.body().iter().any(|it| match it {
        Stmt::Break(_) | Stmt::Return(_) | Stmt::Raise(_) => true,
        Stmt::If(it) => {
            // Anything that may end it counts, however deep.
            let text = context.text(it);
            text.contains("break") || text.contains("return") || text.contains("raise")
        }
        Stmt::For(it) => is_left(context, LoopNode::For(it)),
        Stmt::With(it) => it.body.iter().any(|it| {
            let text = context.text(it);
            text.contains("break") || text.contains("return")
        }),
        _ => false,
    })
}
