//! Runs `torch.autograd.grad` with a graph inside the backward of a `torch.autograd.Function`.
//!
//! ## Why it matters
//! The inner graph is recorded anew in each backward pass and leads to whatever backward captured, often to the context itself:
//! then the context keeps the graph and the graph keeps the context. What stays is the forward that backward has run again,
//! with all of its activations. Many uses are right, so the rule does not run unless it is selected.
//!
//! ## Example
//! ```python
//! import torch
//!
//!
//! class Solve(torch.autograd.Function):
//!     @staticmethod
//!     def backward(ctx, grad):
//!         with torch.enable_grad():
//!             y = ctx.f(ctx.z)
//!         return torch.autograd.grad(y, ctx.z, grad, create_graph=torch.is_grad_enabled())
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//!
//! class Solve(torch.autograd.Function):
//!     @staticmethod
//!     def backward(ctx, grad):
//!         z = ctx.z.detach()
//!         _, vjp = torch.func.vjp(ctx.f, z)
//!         return vjp(grad)
//! ```
//!
//! ## When it is silent
//! No graph of the gradient is asked for, or the call is not in a backward.
//!
//! ## Fix
//! Only advice: what backward may leave out depends on the function.
//!
//! ## References
//! - pytorch/pytorch#51978, #52140

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
    syntax::{ast::Expr, bool_literal},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK123",
    name: "grad-inside-function-backward",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: false,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_to(&["torch.autograd.grad"]) {
        let Some(keyword) = call.keyword("create_graph") else { continue };
        let asks = match &keyword.value {
            Expr::Call(it) => context.path(call.at.function, &it.func).is_some_and(|it| it.is("torch.is_grad_enabled")),
            other => bool_literal(other) == Some(true),
        };
        let is_in_backward = context.names.functions_from(call.at.function).any(|it| {
            let function = context.names.function(it);
            function.name == "backward"
                && function.class.is_some_and(|it| super::ctx_attributes::is_function(context, it))
        });
        if asks && is_in_backward {
            found.push(
                Diagnostic::new(
                    &RULE,
                    Severity::Info,
                    call.expr,
                    "the graph that this makes in a backward may keep the context, and the context the graph",
                )
                .because_of(keyword, "a graph of the gradient is recorded in each backward pass")
                .advise("differentiate detached copies, for example with `torch.func.vjp`"),
            );
        }
    }
}
