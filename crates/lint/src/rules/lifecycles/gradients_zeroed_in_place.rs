//! Fills gradients with zeros instead of freeing them.
//!
//! ## Why it matters
//! With `set_to_none=False` a gradient for each parameter stays allocated all the time, also through the forward pass, whose
//! activations could use that memory: the peak is higher by the size of the model. Since PyTorch 2.0 the default frees them.
//!
//! ## Example
//! ```python
//! import torch
//!
//! optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
//! optimizer.zero_grad(set_to_none=False)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
//! optimizer.zero_grad()
//! ```
//!
//! ## When it is silent
//! The same function looks at `.grad` of anything, or the file uses CUDA graphs or `DeepSpeed`, which
//! need gradients that stay where they are.
//! The argument is no literal. Tests.
//!
//! ## Fix
//! Takes the argument out: unsafe, because gradients are then `None` between steps, and optimizers skip parameters without one.
//!
//! ## References
//! - [torch.optim.Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html)
//! - `TorchFix`, rule TOR402

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Fix},
    rule::{Framework, Rule},
    syntax::bool_literal,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK515",
    name: "gradients-zeroed-in-place",
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
    let text = context.source.text();
    let needs_gradients = || ["CUDAGraph", "make_graphed_callables", "deepspeed"].iter().any(|it| text.contains(it));
    for call in context.calls_named("zero_grad") {
        let keeps =
            call.keyword("set_to_none").is_some_and(|it| bool_literal(&it.value) == Some(false));
        let sees_gradients = context
            .names
            .attributes
            .get("grad")
            .is_some_and(|uses| uses.iter().any(|it| it.function == call.at.function));
        if !keeps || call.method().is_none() || sees_gradients || needs_gradients() {
            continue;
        }
        let fix = context
            .delete_keyword(call.expr, "set_to_none")
            .map(|edit| Fix::new(Applicability::Unsafe, "take `set_to_none=False` out", vec![edit]));
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Info,
                call.expr,
                "a gradient for each parameter stays allocated through the next forward pass",
            )
            .advise("let `zero_grad()` free them")
            .fixed_by(fix),
        );
    }
}
