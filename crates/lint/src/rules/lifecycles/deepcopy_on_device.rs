//! Keeps a copy of the best model on the device.
//!
//! ## Why it matters
//! `copy.deepcopy(model.state_dict())` copies every parameter to where it lies: on the GPU the best model costs as much memory
//! as the model itself, until training ends. Put into a list, it is a model more with every snapshot (measured: 12.6 MB each
//! for a model of 12.6 MB).
//!
//! ## Example
//! ```python
//! import copy
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! for epoch in range(epochs):
//!     train_epoch(model)
//!     if accuracy(model) > best:
//!         best_weights = copy.deepcopy(model.state_dict())
//! ```
//! Use instead:
//! ```python
//! import copy
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! for epoch in range(epochs):
//!     train_epoch(model)
//!     if accuracy(model) > best:
//!         best_weights = {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}
//! ```
//!
//! ## When it is silent
//! Nothing in the file speaks of a device; the copy is of a module, not of its weights, and is not gathered in a list (an
//! average of weights, layers that are cloned); what is copied was moved to the host before, or is copied in `__init__`, when
//! models still are there; schedulers and scalers, which are small; the copy only passes through another call, as on its
//! way into a file. A copy outside of loops is only an info.
//!
//! ## Fix
//! Copies to the host: unsafe, because the copy is then on another device (`load_state_dict` does not mind), and because a module
//! can put things into its state that are no tensors. Offered for modules only: the state of an optimizer has levels.
//!
//! ## References
//! - pytorch/pytorch#25892, pytorch/tutorials#188, facebookresearch/pytext#204, asappresearch/flambe#168

use super::on_gpu::is_moved_to_gpu;
use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::{Call, How, Keep},
    fix::{Applicability, Edit, Fix},
    flow::value::{Place, Value},
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{self, Expr, Stmt},
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK503",
    name: "deepcopy-on-device",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut copies = context.calls_to(&["copy.deepcopy"]).peekable();
    if copies.peek().is_none() || context.is_test() || !speaks_of_devices(context) {
        return;
    }
    for call in copies {
        let Some(original) = call.argument("x", 0) else { continue };
        let keep = context.facts.keeps.iter().find(|it| {
            matches!(it.how, How::Append | How::Extend) && it.kept.range() == call.expr.range()
        });
        let gathers = keep.is_some_and(|it| grows(context, it));
        let holder = state_of(original);
        if holder.is_none() && !(gathers && is_model(context, call, original))
            || !gathers && !is_kept(call)
            || context.names.function(call.at.function).name == "__init__"
            || is_on_host(context, call, original)
            || holder.is_some_and(is_small)
        {
            continue;
        }
        let what = context.text(holder.unwrap_or(original));
        let (severity, message) = match (gathers, context.repetition_at(&call.at)) {
            (true, _) => (Severity::Warning, format!("one more copy of `{what}` on its device in every round")),
            (false, Some(_)) if is_moved_to_gpu(context, call.at.function, holder.unwrap_or(original)) => {
                (Severity::Warning, format!("a second copy of `{what}` stays on its device"))
            }
            (false, _) => (Severity::Info, format!("a second copy of `{what}` stays on its device")),
        };
        let mut diagnostic = Diagnostic::new(&RULE, severity, call.expr, message);
        if let Some(Repetition::Data(id) | Repetition::Loop(id)) = context.repetition_at(&call.at)
            && gathers
        {
            let node = context.names.the_loop(id).node;
            diagnostic = diagnostic.because_of(
                node.iterable().map_or(node.range(), Ranged::range),
                "the copies outlive the rounds of this loop",
            );
        }
        found.push(
            diagnostic
                .advise("keep the copy on the host, or save it to a file")
                .fixed_by(holder.and_then(|it| copy_to_host(context, call, original, it))),
        );
    }
}

/// Whether any code of the file knows of GPUs.
fn speaks_of_devices(context: &Context<'_>) -> bool {
    let text = context.source.text();
    ["cuda", "device", "ccelerat"].iter().any(|it| text.contains(it))
}

/// The object whose `state_dict()` it is.
fn state_of(expr: &Expr) -> Option<&Expr> {
    let Expr::Call(call) = expr else { return None };
    match &*call.func {
        Expr::Attribute(it) if it.attr.as_str() == "state_dict" => Some(&it.value),
        _ => None,
    }
}

/// Whether a variable, attribute or item holds the copy; what only passes through a call is soon gone.
fn is_kept(call: &Call<'_>) -> bool {
    let value = match call.at.statement {
        Stmt::Assign(it) => &*it.value,
        Stmt::AnnAssign(it) => match it.value.as_deref() {
            Some(value) => value,
            None => return false,
        },
        _ => return false,
    };
    let is_copy = |it: &Expr| matches!(it, Expr::Call(it) if std::ptr::eq(it, call.expr));
    match value {
        Expr::Tuple(it) => it.elts.iter().any(is_copy),
        Expr::Dict(it) => it.items.iter().any(|it| is_copy(&it.value)),
        other => is_copy(other),
    }
}

fn grows<'a>(context: &Context<'a>, keep: &Keep<'a>) -> bool {
    context.repetition(keep).is_some() && !context.is_bounded(keep)
}

fn is_model(context: &Context<'_>, call: &Call<'_>, expr: &Expr) -> bool {
    let value = call.value_of(expr);
    let is_called_so = matches!(expr, Expr::Name(it) if matches!(it.id.as_str(), "model" | "net" | "network"));
    matches!(value, Value::Object(class) if context.is_module_class(class)) || value.is_unknown() && is_called_so
}

/// `model.cpu().state_dict()`, `model.to("cpu")`
fn is_on_host(context: &Context<'_>, call: &Call<'_>, expr: &Expr) -> bool {
    let is_there = call.value_of(expr).tensor_within().is_some_and(|it| it.place == Place::Host);
    is_there || {
        let text = context.text(expr);
        text.contains(".cpu()") || text.contains("\"cpu\"") || text.contains("'cpu'")
    }
}

/// Schedulers and scalers have next to no state.
pub(super) fn is_small(holder: &Expr) -> bool {
    let name = match holder {
        Expr::Name(it) => it.id.as_str(),
        Expr::Attribute(it) => it.attr.as_str(),
        _ => "",
    };
    let name = name.to_ascii_lowercase();
    ["sched", "scaler", "sampler", "loader", "metric", "stopp", "loop"].iter().any(|it| name.contains(it))
}

fn copy_to_host<'a>(
    context: &Context<'a>,
    call: &Call<'a>,
    state: &'a Expr,
    holder: &'a Expr,
) -> Option<Fix> {
    let Expr::Call(ast::ExprCall { arguments, .. }) = state else { return None };
    let is_module = match context.value_of_name(call.at.function, holder) {
        Some(value) if context.is_module(value) => true,
        None | Some(Value::Unknown) => {
            let name = match holder {
                Expr::Name(it) => it.id.as_str(),
                Expr::Attribute(it) => it.attr.as_str(),
                _ => "",
            };
            matches!(name, "model" | "net" | "network" | "module")
        }
        _ => false,
    };
    if !is_module || !arguments.is_empty() {
        return None;
    }
    let state = context.text(state);
    Some(Fix::new(
        Applicability::Unsafe,
        "copy to the host",
        vec![Edit::replace(
            call.expr,
            format!("{{name: value.detach().cpu().clone() for name, value in {state}.items()}}"),
        )],
    ))
}
