//! Stores an output of a `torch.autograd.Function` as an attribute of its context.
//!
//! ## Why it matters
//! The output leads to its `grad_fn`, which is the context: the two keep each other. Only Python's garbage collector frees
//! them, and that does not see how full the GPU is. Measured: 4.2 MB for an output of that size stay with each call until the
//! collector runs; older versions of PyTorch could not free them at all.
//!
//! ## Example
//! ```python
//! import torch
//!
//!
//! class Exp(torch.autograd.Function):
//!     @staticmethod
//!     def forward(ctx, x):
//!         y = torch.exp(x)
//!         ctx.y = y
//!         return y
//!
//!     @staticmethod
//!     def backward(ctx, grad):
//!         return ctx.y * grad
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//!
//! class Exp(torch.autograd.Function):
//!     @staticmethod
//!     def forward(ctx, x):
//!         y = torch.exp(x)
//!         ctx.save_for_backward(y)
//!         return y
//!
//!     @staticmethod
//!     def backward(ctx, grad):
//!         y, = ctx.saved_tensors
//!         return y * grad
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
//! - pytorch/pytorch#25340

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
    code: "LK122",
    name: "ctx-stores-output",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let all = stored(context);
    for it in all.iter().filter(|it| it.role == Role::Output) {
        let fix = save_once(context, &all, it);
        let severity = if context.is_test() { Severity::Info } else { Severity::Warning };
        let range = it.assignment.target.range().cover(it.assignment.expr.range());
        let message = format!(
            "`{}` keeps the output `{}`, which keeps the context: only the garbage collector frees both",
            context.text(it.assignment.target),
            it.name
        );
        found.push(
            Diagnostic::new(&RULE, severity, range, message)
                .because("an output leads to its `grad_fn`, which is this context")
                .advise("use `ctx.save_for_backward` and `ctx.saved_tensors`")
                .fixed_by(fix),
        );
    }
}
