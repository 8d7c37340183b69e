//! Packs saved tensors into something that still holds the tensor itself.
//!
//! ## Why it matters
//! The tensor that a pack hook gets may be the output of the very operation that saves it. Whoever keeps that tensor keeps its
//! `grad_fn`, which keeps what the hook returned: a cycle, partly in C++, that only a backward pass breaks. PyTorch's
//! documentation forbids it. Each output of `exp`, `tanh`, `sigmoid`, `softmax`, … in a graph that is never run backward
//! stays, and the garbage collector does not find it: measured, 8.4 MB a forward pass for two `tanh` whose outputs are 4.2 MB
//! each; nothing with `.detach()`, and nothing if the graph is run backward.
//!
//! ## Example
//! ```python
//! import torch
//!
//! with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
//!     out = model(x)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
//!     out = model(x)
//! ```
//!
//! ## When it is silent
//! The hook returns a copy, an index, a file name; or it returns the tensor only under some condition, which may exclude
//! outputs.
//!
//! ## Fix
//! Appends `.detach()`: unsafe, since what unpacks it may want the tensor's `grad_fn` or `requires_grad`.
//!
//! ## References
//! - [torch.autograd.graph.saved_tensors_hooks](https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.graph.saved_tensors_hooks)
//! - pytorch/pytorch#189025, #115255, #82776

use crate::{
    context::{Context, holds_name},
    diagnostic::{Diagnostic, Severity},
    facts::{Call, How},
    fix::{Applicability, Edit, Fix},
    flow::value::Value,
    names::{Definition, FunctionId, FunctionNode},
    rule::{Framework, Rule},
    syntax::{Ranged, ast::Expr},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK124",
    name: "saved-tensor-hook-keeps-grad-fn",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

const HOOKS: &[&str] = &["torch.autograd.graph.saved_tensors_hooks"];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let of_subclass = context.calls_named("__init__").filter(|call| {
        matches!(call.method(), Some((Expr::Call(_), ..)))
            && context
                .class_around(call.at.function)
                .is_some_and(|it| context.derives_from(it, &["saved_tensors_hooks"]))
    });
    let mut seen = Vec::new();
    for call in context.calls_to(HOOKS).chain(of_subclass) {
        let Some(kept) = call.argument("pack_hook", 0).and_then(|it| kept_by(context, call, it)) else { continue };
        if seen.contains(&kept.range()) {
            continue;
        }
        seen.push(kept.range());
        let severity = if context.is_test() { Severity::Info } else { Severity::Warning };
        let edit = Edit::insert(kept.end(), ".detach()");
        found.push(
            Diagnostic::new(
                &RULE,
                severity,
                kept,
                format!("what is packed holds `{}` itself, and with it the operation that saves it", context.text(kept)),
            )
            .because_of(call.expr, "it is a pack hook: the saved output of an operation leads back to that operation")
            .advise("pack `.detach()` of it")
            .fixed_by(Fix::new(Applicability::Unsafe, "append `.detach()`, which leaves the operation out", vec![edit])),
        );
    }
}

/// The mention of the tensor by which a pack hook keeps it.
fn kept_by<'a>(context: &Context<'a>, call: &Call<'a>, hook: &'a Expr) -> Option<&'a Expr> {
    let id = match hook {
        Expr::Lambda(it) => context.names.function_at(it.range)?,
        _ => match call.value_of(hook) {
            Value::Function(file, id) if *file == context.file => *id,
            _ => return None,
        },
    };
    let name = tensor_of(context, id)?;
    let returned = context.returned_by(id);
    let by_return =
        returned.iter().filter(|it| !it.is_conditional).find_map(|it| holds_name(it.expr, name));
    by_return.or_else(|| {
        context.facts.keeps.iter().find_map(|it| {
            let is_put = matches!(it.how, How::SetItem | How::Append);
            let is_sure = is_put && it.at.function == id && it.at.branch.is_none();
            is_sure.then(|| holds_name(it.kept, name)).flatten()
        })
    })
}

/// The name of the tensor that a pack hook gets, if it keeps its meaning.
fn tensor_of<'a>(context: &Context<'a>, id: FunctionId) -> Option<&'a str> {
    let function = context.names.function(id);
    let is_static = matches!(function.node, FunctionNode::Def(it) if it.decorator_list.iter().any(
        |it| matches!(&it.expression, Expr::Name(it) if it.id.as_str() == "staticmethod"),
    ));
    let skipped = usize::from(function.class.is_some() && !is_static);
    let name = function.parameters().nth(skipped)?.parameter.name.as_str();
    let own = context.names.scope(function.scope).names.get(name)?;
    own.definitions.iter().all(|it| matches!(it, Definition::Parameter(_))).then_some(name)
}
