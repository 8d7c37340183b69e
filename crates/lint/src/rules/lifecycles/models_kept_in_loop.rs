//! Keeps every model that a loop trains, on its device.
//!
//! ## Why it matters
//! In a cross-validation or a search over settings only the numbers are wanted, but a list of results with the models in it keeps
//! all of them on the GPU, and with an optimizer or a trainer their gradients and states, too. The tenth model no longer fits
//! where the first did.
//!
//! ## Example
//! ```python
//! import torch
//!
//! models = []
//! for fold in folds:
//!     model = torch.nn.Linear(10, 10).cuda()
//!     for x in fold:
//!         model(x).mean().backward()
//!     models.append(model)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! models = []
//! for fold in folds:
//!     model = torch.nn.Linear(10, 10).cuda()
//!     for x in fold:
//!         model(x).mean().backward()
//!     models.append(model.cpu())
//! ```
//!
//! ## When it is silent
//! Off by default: an ensemble wants exactly this. Silent if the model is not seen to be on a device, if nothing trains in the
//! loop, if the model is moved to the host, and for lists that become a part of a module.
//!
//! ## Fix
//! Only advice: what is needed of the models is not to be seen.
//!
//! ## References
//! - huggingface/setfit#567, huggingface/transformers#10885, huggingface/sentence-transformers#3136

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::{How, Keep},
    flow::value::Value,
    names::LoopId,
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{self, Expr},
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK506",
    name: "models-kept-in-loop",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: false,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for keep in &context.facts.keeps {
        let Some(id) = keep.outlived_loop.filter(|_| matches!(keep.how, How::Append | How::SetItem)) else {
            continue;
        };
        let Some(model) = model_in(context, keep) else { continue };
        let trains = context
            .names
            .loops
            .iter()
            .any(|it| it.trains && context.names.the_loop(id).node.range().contains_range(it.node.range()))
            || context.calls_any_within(context.names.the_loop(id).node.range(), &["fit", "train_model"]);
        if !trains || context.is_bounded(keep) || Context::has_constant_key(keep) || !is_on_device(context, id, model)
        {
            continue;
        }
        let (target, model) = (context.text(keep.target), context.text(model));
        let node = context.names.the_loop(id).node;
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Info,
                keep.range,
                format!("`{target}` keeps `{model}` of every round on its device"),
            )
            .because_of(
                node.iterable().map_or(node.range(), Ranged::range),
                format!("each round of this loop trains another, and `{target}` outlives them"),
            )
            .advise("keep what was measured, or move the model to the host first: `model.cpu()`"),
        );
    }
}

/// The module among what is kept.
fn model_in<'a>(context: &Context<'a>, keep: &Keep<'a>) -> Option<&'a Expr> {
    let is_model = |value: &Value| context.is_module(value);
    match (keep.kept, &keep.value) {
        (Expr::Name(_), value) if is_model(value) => Some(keep.kept),
        (Expr::Tuple(ast::ExprTuple { elts, .. }), Value::Group(group)) => {
            elts.iter().zip(&group.parts).find(|(it, value)| it.is_name_expr() && is_model(value)).map(|it| it.0)
        }
        _ => None,
    }
}

/// Whether the model is moved to a device in the loop, and not back.
fn is_on_device(context: &Context<'_>, id: LoopId, model: &Expr) -> bool {
    let whole = context.names.the_loop(id).node.range();
    let Expr::Name(model) = model else { return false };
    let is_of_model = |call: &&crate::facts::Call<'_>| {
        let by_name = call.method().is_some_and(|(object, ..)| {
            matches!(object, Expr::Name(it) if it.id == model.id)
        });
        by_name || call.name_of_result().is_some_and(|it| it.id == model.id)
    };
    let within = || context.calls_within(whole).filter(is_of_model);
    let goes = within().any(|it| match it.last_name() {
        "cuda" => true,
        "to" => !context.text(&it.expr.arguments).contains("cpu"),
        _ => false,
    });
    let returns = within().any(|it| {
        it.last_name() == "cpu" || it.last_name() == "to" && context.text(&it.expr.arguments).contains("cpu")
    });
    goes && !returns
}
