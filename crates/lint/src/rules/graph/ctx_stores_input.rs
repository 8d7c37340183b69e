//! Stores an input or an intermediate result of a `torch.autograd.Function` as an attribute of its context.
//!
//! ## Why it matters
//! A backward pass frees what was saved with `save_for_backward`, but not attributes of the context: the tensor stays as long
//! as anything holds the graph, such as a loss in a list. Measured with an input of 4.2 MB and losses that are kept: 4.2 MB
//! more with each step, against nothing with `save_for_backward`. PyTorch cannot check, either, that nobody changes it.
//!
//! ## Example
//! ```python
//! import torch
//!
//!
//! class Square(torch.autograd.Function):
//!     @staticmethod
//!     def forward(ctx, x: torch.Tensor):
//!         ctx.x = x
//!         return x * x
//!
//!     @staticmethod
//!     def backward(ctx, grad):
//!         return 2 * ctx.x * grad
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//!
//! class Square(torch.autograd.Function):
//!     @staticmethod
//!     def forward(ctx, x):
//!         ctx.save_for_backward(x)
//!         return x * x
//!
//!     @staticmethod
//!     def backward(ctx, grad):
//!         x, = ctx.saved_tensors
//!         return 2 * x * grad
//! ```
//!
//! ## When it is silent
//! Shapes, numbers, flags, functions, modules, and everything of which it is not certain that it is a tensor; tensors marked
//! with `mark_non_differentiable`; attributes that backward deletes or sets to something else.
//!
//! ## Fix
//! Saves it with `save_for_backward` and lets backward read `saved_tensors`, if the class saves nothing yet and only backward
//! reads the attribute. Unsafe: what is saved must not be changed in place afterwards, which PyTorch then checks.
//!
//! ## References
//! - [FunctionCtx.save_for_backward](https://docs.pytorch.org/docs/stable/generated/torch.autograd.function.FunctionCtx.save_for_backward.html)
//! - RobinBruegger/RevTorch#1, pytorch/pytorch#52140

use super::{
    ctx_attributes::{Role, stored},
    ctx_saving::save_once,
};
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    fix::Applicability,
    rule::{Framework, Rule},
    syntax::Ranged,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK121",
    name: "ctx-stores-input",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let all = stored(context);
    for it in all.iter().filter(|it| it.role != Role::Output) {
        let fix = save_once(context, &all, it);
        // A weight is kept by its module in any case.
        let is_cheap = it.role == Role::Input && is_named_like_a_weight(it.name);
        let severity = if context.is_test() || is_cheap { Severity::Info } else { Severity::Warning };
        let range = it.assignment.target.range().cover(it.assignment.expr.range());
        let what = if it.role == Role::Input { "input" } else { "intermediate result" };
        let message = format!("`{}` keeps the {what} `{}` even after backward", context.text(it.assignment.target), it.name);
        found.push(
            Diagnostic::new(&RULE, severity, range, message)
                .because("a backward pass frees saved tensors, not attributes: this stays as long as anything holds the graph")
                .advise("use `ctx.save_for_backward` and `ctx.saved_tensors`")
                .fixed_by(fix),
        );
    }
}

fn is_named_like_a_weight(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["weight", "bias", "scale", "param", "embedding", "lora"].iter().any(|it| name.contains(it))
}
