//! Updates a tensor step by step with gradients that have a graph themselves, which nothing differentiates.
//!
//! ## Why it matters
//! With `create_graph=True` a gradient keeps all that computed it, and `x = x - lr * g` makes the next `x` keep the gradient: the
//! graphs of all steps stay until `x` goes. Measured: 42 MB a step where an activation is 4 MB; without `create_graph`
//! nothing.
//!
//! ## Example
//! ```python
//! import torch
//!
//! x = torch.randn(16, 3, 224, 224, requires_grad=True)
//! for step in range(num_steps):
//!     loss = model(x).sum()
//!     (g,) = torch.autograd.grad(loss, x, create_graph=True)
//!     x = x - 0.1 * g
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! x = torch.randn(16, 3, 224, 224, requires_grad=True)
//! for step in range(num_steps):
//!     loss = model(x).sum()
//!     (g,) = torch.autograd.grad(loss, x)
//!     x = x - 0.1 * g
//! ```
//!
//! ## When it is silent
//! Anything might differentiate through the steps, as meta-learning and physics-informed losses do: a backward pass or another
//! `grad` in the function, or `x` or the gradient is returned, passed on, kept or computed with outside the update.
//!
//! ## Fix
//! Shows `create_graph=True` taken away; whether the steps are to be differentiated only the author knows.
//!
//! ## References
//! - pytorch/pytorch#51978, deepinv/deepinv#301

use crate::{
    context::{Context, Rounds},
    diagnostic::{Diagnostic, Severity},
    facts::{Call, How, Root},
    fix::{Applicability, Fix},
    names::{method_name, LoopId, Usage},
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{Expr, Stmt},
        bool_literal, is_same_place, mentions,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK113",
    name: "unrolled-update-with-create-graph",
    frameworks: &[Framework::Torch],
    severity: Severity::Error,
    default: true,
    fix: Some(Applicability::Display),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_to(&["torch.autograd.grad"]) {
        let Some(keyword) = call.keyword("create_graph") else { continue };
        let Some(the_loop) = call.at.in_loop else { continue };
        if bool_literal(&keyword.value) != Some(true) || wants_gradients(context, call) {
            continue;
        }
        let Some((name, update)) = update_of(context, call, the_loop) else { continue };
        let severity = match context.rounds(the_loop) {
            Rounds::Data if !context.is_test() => Severity::Error,
            Rounds::Data | Rounds::Unknown => Severity::Warning,
            Rounds::Few | Rounds::Parts => continue,
        };
        let edit = context.delete_keyword(call.expr, "create_graph");
        let fix = edit.map(|it| Fix::new(Applicability::Display, "take `create_graph=True` away", vec![it]));
        found.push(
            Diagnostic::new(&RULE, severity, call.expr, format!("`{name}` keeps the graphs of all steps, and nothing differentiates them"))
                .because_of(update, format!("the next `{name}` is computed from this gradient, which keeps what computed it"))
                .advise("leave `create_graph=True` out, or `.detach()` what is carried to the next step")
                .fixed_by(fix),
        );
    }
}

/// Whether anything else in the function works with gradients.
fn wants_gradients(context: &Context<'_>, call: &Call<'_>) -> bool {
    ["backward", "grad", "manual_backward", "step"]
        .into_iter()
        .flat_map(|it| context.calls_named(it))
        .any(|it| it.at.function == call.at.function && !std::ptr::eq(it, call))
}

/// The tensor that the gradient updates, and the update: `x` and `x - lr * g`.
fn update_of<'a>(context: &Context<'a>, call: &Call<'a>, the_loop: LoopId) -> Option<(&'a str, &'a Expr)> {
    let Stmt::Assign(assign) = call.at.statement else { return None };
    let gradient = match assign.targets.as_slice() {
        [Expr::Name(it)] => it.id.as_str(),
        [Expr::Tuple(it)] => match it.elts.as_slice() {
            [Expr::Name(it)] => it.id.as_str(),
            _ => return None,
        },
        _ => return None,
    };
    let input = match call.argument("inputs", 1)? {
        it @ Expr::Name(_) => it,
        Expr::List(it) if it.elts.len() == 1 => it.elts.first()?,
        Expr::Tuple(it) if it.elts.len() == 1 => it.elts.first()?,
        _ => return None,
    };
    let Expr::Name(name) = input else { return None };
    let name = name.id.as_str();
    let node = context.names.the_loop(the_loop).node;
    let update = context.facts.assignments.iter().find(|it| {
        let is_sum = it.expr.is_bin_op_expr();
        is_sum
            && node.range().contains_range(it.expr.range())
            && is_same_place(it.target, input)
            && mentions(it.expr, &|it| is_same_place(it, input))
            && mentions(it.expr, &|it| matches!(it, Expr::Name(it) if it.id.as_str() == gradient))
    })?;
    let cuts = |it: &Expr| matches!(it, Expr::Attribute(it) if matches!(it.attr.as_str(), "detach" | "data" | "item"));
    if mentions(update.expr, &cuts) {
        return None;
    }
    let is_only_shown = |usage: Usage<'_>| match usage {
        Usage::Stored => true,
        Usage::Method(call) => matches!(method_name(call), "detach" | "item" | "tolist" | "numel" | "size"),
        Usage::Attribute(it) => matches!(it.attr.as_str(), "shape" | "data" | "dtype" | "device"),
        Usage::Argument(call) => matches!(&*call.func, Expr::Name(it) if it.id.as_str() == "print"),
        _ => false,
    };
    let root = |name| Root::Name(call.at.function, name);
    let is_gradient_used = context.uses(root(gradient)).iter().any(|it| {
        let at = it.expr.range();
        !is_only_shown(it.usage)
            && !update.expr.range().contains_range(at)
            && !call.at.statement.range().contains_range(at)
    });
    // In the loop the tensor may be used at will, after it only be looked at.
    let is_tensor_used = context.uses(root(name)).iter().any(|it| {
        it.function != call.at.function
            || !node.range().contains_range(it.expr.range())
                && it.expr.start() > node.range().end()
                && !is_only_shown(it.usage)
    });
    let is_kept_on = context.facts.keeps.iter().any(|it| {
        it.how != How::Chain
            && it.at.function == call.at.function
            && node.range().contains_range(it.kept.range())
            && !is_same_place(it.target, input)
            && it.value.tensor_within().is_some()
    });
    (!is_gradient_used && !is_tensor_used && !is_kept_on).then_some((name, update.expr))
}
