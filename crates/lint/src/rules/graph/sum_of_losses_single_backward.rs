//! Adds up the losses of all batches and runs backward once, after the loop.
//!
//! ## Why it matters
//! The sum keeps the graphs of all batches until that backward pass: 16.8 MB a batch for three layers with activations of 4.2 MB.
//! Gradients add up by themselves: `backward()` for each batch gives the same sum of gradients with the memory of one batch.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 1)
//! total = 0
//! for x, y in loader:
//!     total += torch.nn.functional.mse_loss(model(x), y)
//! total.backward()
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 1)
//! for x, y in loader:
//!     torch.nn.functional.mse_loss(model(x), y).backward()
//! ```
//!
//! ## When it is silent
//! The loop goes over something else than a loader (steps of a sequence, heads, terms of one loss); a state is carried from batch
//! to batch; the sum is used in another way than as a sum or mean, which couples the batches.
//!
//! ## Fix
//! Only advice: the call of `backward` moves into the loop, and with it whatever is done before it.
//!
//! ## References
//! - [Accumulating gradients](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation)

use crate::{
    context::{Context, Rounds},
    diagnostic::{Diagnostic, Severity},
    facts::{How, Keep, Root},
    flow::value::Graph,
    names::{LoopId, LoopNode},
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{self, Expr},
        is_same_place, mentions,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK119",
    name: "sum-of-losses-single-backward",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for keep in &context.facts.keeps {
        let (How::Accumulate, Root::Name(..), Some(_)) = (keep.how, keep.root, keep.outlived_loop) else {
            continue;
        };
        // The innermost loop is the one whose rounds the sum adds up.
        let Some(the_loop) = keep.at.in_loop else { continue };
        let LoopNode::For(node) = context.names.the_loop(the_loop).node else { continue };
        let is_attached = context.graph(&keep.value, &keep.at) >= Graph::Likely;
        if keep.key.is_some() || !is_attached || !is_loader(&node.iter) || context.rounds(the_loop) != Rounds::Data {
            continue;
        }
        let Some(backward) = backward_after(context, keep, the_loop) else { continue };
        if context.names.the_loop(the_loop).trains || carries(context, keep, the_loop) {
            continue;
        }
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                keep.range,
                format!("`{}` keeps the graphs of all batches until one backward pass after the loop", context.text(keep.target)),
            )
            .because_of(&*node.iter, "each round of this loop adds the graph of a batch")
            .because_of(backward, "only this frees them, all at once")
            .advise("call `backward()` for each batch: gradients add up by themselves"),
        );
    }
}

/// The call of backward on the sum, or on it divided by something, behind the loop.
fn backward_after<'a>(context: &Context<'a>, keep: &Keep<'a>, the_loop: LoopId) -> Option<&'a ast::ExprCall> {
    let end = context.names.the_loop(the_loop).node.range().end();
    context
        .calls_named("backward")
        .filter(|it| it.at.function == keep.at.function && it.expr.start() > end)
        .find(|it| {
            let of = it.expr.arguments.args.first().or_else(|| it.method().map(|(object, ..)| object));
            of.is_some_and(|it| is_mean_of(it, keep.target))
        })
        .map(|it| it.expr)
}

fn is_mean_of(expr: &Expr, sum: &Expr) -> bool {
    match expr {
        Expr::BinOp(it) if matches!(it.op, ast::Operator::Div | ast::Operator::Mult) => {
            is_same_place(&it.left, sum) && !mentions(&it.right, &|it| is_same_place(it, sum))
        }
        // `scaler.scale(total).backward()`
        Expr::Call(it) => it.arguments.args.first().is_some_and(|it| is_same_place(it, sum)) && it.arguments.len() == 1,
        _ => is_same_place(expr, sum),
    }
}

/// Whether something of a round goes on in the next, beside the sum.
fn carries(context: &Context<'_>, keep: &Keep<'_>, the_loop: LoopId) -> bool {
    let range = context.names.the_loop(the_loop).node.range();
    context.facts.keeps.iter().any(|it| {
        it.how == How::Chain && range.contains_range(it.range) && !is_same_place(it.target, keep.target)
    })
}

/// Whether the loop goes over a loader, by its name.
fn is_loader(iterable: &Expr) -> bool {
    mentions(iterable, &|it| {
        let name = match it {
            Expr::Name(it) => it.id.as_str(),
            Expr::Attribute(it) => it.attr.as_str(),
            _ => return false,
        };
        name.to_ascii_lowercase().contains("loader")
    })
}
