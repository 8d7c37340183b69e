//! Calls `backward(create_graph=True)` and never lets go of the gradients.
//!
//! ## Why it matters
//! With `create_graph=True` the gradient that ends up in `.grad` has a graph of its own, and that graph leads back to the
//! parameter: parameter → `.grad` → graph → parameter. The cycle lies in C++, where Python's garbage collector cannot see it,
//! so it stays even when no name leads there any more. On tensors made anew each round it cost 46 MB a round for a model
//! whose activations are 4 MB each; with gradients set to `None` in each round it cost nothing.
//!
//! ## Example
//! ```python
//! import torch
//!
//! for batch in loader:
//!     x = batch.clone().requires_grad_(True)
//!     energy = model(x).sum()
//!     energy.backward(create_graph=True)
//!     penalty = x.grad.square().sum()
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! for batch in loader:
//!     x = batch.clone().requires_grad_(True)
//!     energy = model(x).sum()
//!     (gradient,) = torch.autograd.grad(energy, x, create_graph=True)
//!     penalty = gradient.square().sum()
//! ```
//!
//! ## When it is silent
//! Somewhere in the file gradients are reset (`zero_grad()`, `p.grad = None`, `del p.grad`): that breaks the cycle.
//!
//! ## Fix
//! Only advice: `torch.autograd.grad` returns the gradients instead of storing them, so what reads them has to change, too.
//!
//! ## References
//! - [torch.Tensor.backward, note on `create_graph`](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html)
//! - pytorch/pytorch#4661, #7343, #78622, #82528

use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::Callee,
    flow::value::Value,
    names::Usage,
    rule::{Framework, Rule},
    syntax::{Ranged, bool_literal},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK114",
    name: "backward-create-graph",
    frameworks: &[Framework::Torch],
    severity: Severity::Error,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_named("backward") {
        let Some(keyword) = call.keyword("create_graph") else { continue };
        let is_torch = match &call.callee {
            Callee::External(path) => path.is("torch.autograd.backward"),
            Callee::Method { value: Value::Object(class), .. } => {
                context.project.method(class, "backward").is_none()
            }
            Callee::Method { .. } => true,
            _ => false,
        };
        if bool_literal(&keyword.value) != Some(true) || !is_torch || resets_gradients(context) {
            continue;
        }
        let repetition = context.repetition_at(&call.at);
        let severity = match repetition {
            Some(Repetition::Data(_)) if !context.is_test() => Severity::Error,
            Some(_) if !context.is_test() => Severity::Warning,
            _ => Severity::Info,
        };
        let mut diagnostic = Diagnostic::new(
            &RULE,
            severity,
            call.expr,
            "the gradients that this stores and the graph that computed them keep one another, out of the garbage collector's sight",
        )
        .because_of(keyword, "`create_graph=True` gives `.grad` a graph that leads back to its tensor");
        if let Some(Repetition::Data(id) | Repetition::Loop(id)) = repetition {
            let node = context.names.the_loop(id).node;
            let head = node.iterable().map_or(node.range(), Ranged::range);
            diagnostic = diagnostic.because_of(head, "every round of this loop leaves such a graph, and nothing in the file resets `.grad`");
        }
        found.push(diagnostic.advise(
            "use `torch.autograd.grad(…, create_graph=True)`, or set `.grad` to `None` when it has been used",
        ));
    }
}

fn resets_gradients(context: &Context<'_>) -> bool {
    context.calls_named("zero_grad").next().is_some()
        || context
            .names
            .attributes
            .get("grad")
            .into_iter()
            .flatten()
            .any(|it| matches!(it.usage, Usage::Stored | Usage::Deleted))
}
