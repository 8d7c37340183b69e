//! Evaluates a network batch by batch while autograd records.
//!
//! ## Why it matters
//! `model.eval()` changes dropout and batch norm, not recording: the activations of each batch stay until its results go. That
//! alone is a higher peak, not a leak (measured: no growth if only numbers are kept), but it limits the batch size to that of
//! training, and whatever is kept of a batch by mistake then keeps its activations, too: 16.8 MB a batch where the output is
//! 4.2 MB.
//!
//! ## Example
//! ```python
//! import torch
//!
//!
//! def evaluate(model, loader):
//!     model.eval()
//!     correct = 0
//!     for x, y in loader:
//!         correct += (model(x).argmax(-1) == y).sum().item()
//!     return correct
//!
//!
//! evaluate(torch.nn.Linear(10, 2), loader)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//!
//! @torch.no_grad()
//! def evaluate(model, loader):
//!     model.eval()
//!     correct = 0
//!     for x, y in loader:
//!         correct += (model(x).argmax(-1) == y).sum().item()
//!     return correct
//!
//!
//! evaluate(torch.nn.Linear(10, 2), loader)
//! ```
//!
//! ## When it is silent
//! Recording is off there, or whoever calls the function turns it off; nobody is seen to call it; Lightning does it; the function
//! works with gradients (`backward` in the same loop, `autograd.grad`, `requires_grad_`, hooks, `.grad`), as attacks, saliency
//! maps and force fields do.
//!
//! ## Fix
//! Puts `@torch.no_grad()` above a function that does nothing with gradients. Unsafe: its results can no longer be
//! differentiated.
//!
//! ## References
//! - [torch.no_grad and evaluation mode](https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval)
//! - leftthomas/SRGAN#43, facebookresearch/pytext#204, ray-project/ray#7238

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::Grad,
    fix::{Applicability, Fix},
    names::LoopId,
    rule::{Framework, Rule},
    syntax::Ranged,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK115",
    name: "eval-loop-without-no-grad",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    let mut seen: Vec<LoopId> = Vec::new();
    for call in &context.facts.calls {
        let Some(the_loop) = context.statement_loop_over_data(call.at.in_loop) else { continue };
        if seen.contains(&the_loop) || !context.runs_network(call) {
            continue;
        }
        let function = call.at.function;
        let evaluates = context.evaluates(call, the_loop);
        if !evaluates
            || context.names.the_loop(the_loop).trains
            || context.wants_gradients(function, Some(the_loop))
            || context.is_wrapped(function)
            || !context.seems_to_record(&call.at)
        {
            continue;
        }
        seen.push(the_loop);
        let network = context.text(&*call.expr.func);
        let node = context.names.the_loop(the_loop).node;
        let head = node.iterable().map_or(node.range(), Ranged::range);
        let is_pure = call.at.grad == Grad::AsCaller && !context.wants_gradients(function, None);
        let edit = if is_pure { context.decorate_with_no_grad(function) } else { None };
        let fix = edit.map(|it| Fix::new(Applicability::Unsafe, "turn recording off for the whole function", vec![it]));
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Info,
                call.expr,
                format!("`{network}` records for a backward pass that never comes, so each batch keeps its activations while it is evaluated"),
            )
            .because_of(head, "this loop only evaluates; nothing in it works with gradients")
            .advise("evaluate under `torch.no_grad()`")
            .fixed_by(fix),
        );
    }
}
