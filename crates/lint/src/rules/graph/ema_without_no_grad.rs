//! Averages the parameters of a model over steps while autograd records.
//!
//! ## Why it matters
//! Every average then leads to the average before it, back to the first: a chain of graph nodes for each parameter that grows
//! with each step and is never freed (0.04 MB a step for six parameters, measured, on the host). Steps become slower with it,
//! and a model that is run with such averages drags the whole chain along.
//!
//! ## Example
//! ```python
//! import torch
//!
//! ema = [p.detach().clone() for p in net.parameters()]
//! for batch in loader:
//!     train_step(net, batch)
//!     ema = [0.999 * e + 0.001 * p for e, p in zip(ema, net.parameters())]
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! ema = [p.detach().clone() for p in net.parameters()]
//! for batch in loader:
//!     train_step(net, batch)
//!     with torch.no_grad():
//!         for e, p in zip(ema, net.parameters()):
//!             e.lerp_(p, 0.001)
//! ```
//!
//! ## When it is silent
//! Under `torch.no_grad()`, there or in whoever calls the function; for `p.data`, `p.detach()` and the values of a
//! `state_dict()`, which have no graph.
//!
//! ## Fix
//! Appends `.detach()` to the parameter: safe, since nobody can want the gradient of an average that spans steps.
//!
//! ## References
//! - alexhernandezgarcia/gflownet#133, ultralytics/ultralytics#25315 (values of a `state_dict()` are detached)

use super::parameter_loops::{attached_mention, parameter_names};
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::{How, Position},
    fix::{Applicability, Edit, Fix},
    rule::{Framework, Rule},
    syntax::{
        Ranged, TextRange,
        ast::{self, Expr},
        is_same_place, mentions,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK112",
    name: "ema-without-no-grad",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    found.extend(stored_averages(context));
    found.extend(averages_in_place(context));
    found.extend(lists_of_averages(context));
}

/// `shadow[name] = d * shadow[name] + (1 - d) * p`
fn stored_averages(context: &Context<'_>) -> impl Iterator<Item = Diagnostic> {
    context.facts.keeps.iter().filter_map(|keep| {
        let place = match keep.kept {
            Expr::BinOp(it) if matches!(keep.how, How::Chain | How::Accumulate) && it.op == ast::Operator::Add => keep.target,
            _ => return None,
        };
        // A name that is only given to the average is forgotten in the next round.
        if keep.key.is_none() && !place.is_attribute_expr() {
            return None;
        }
        report(context, &keep.at, keep.range.cover(keep.kept.range()), place, keep.kept)
    })
}

/// `e.mul_(d).add_(p, alpha=1 - d)`, `e.lerp_(p, 1 - d)`, `e.copy_(d * e + (1 - d) * p)`
fn averages_in_place(context: &Context<'_>) -> impl Iterator<Item = Diagnostic> {
    let calls = ["add_", "lerp_", "copy_"].into_iter().flat_map(|it| context.calls_named(it));
    calls.filter_map(|call| {
        let (object, _, name) = call.method()?;
        let (place, is_average) = match (name, object) {
            ("add_", Expr::Call(inner)) => match &*inner.func {
                Expr::Attribute(it) if it.attr.as_str() == "mul_" => (&*it.value, true),
                _ => return None,
            },
            ("lerp_", place) => (place, true),
            ("copy_", place) => {
                let value = call.argument("other", 0)?;
                (place, value.is_bin_op_expr() && mentions(value, &|it| is_same_place(it, place)))
            }
            _ => return None,
        };
        // `e.data` and `e.detach()` share the numbers, not the graph.
        let is_itself = match place {
            Expr::Name(_) | Expr::Subscript(_) => true,
            Expr::Attribute(it) => !matches!(it.attr.as_str(), "data" | "grad"),
            _ => false,
        };
        let value = call.expr.arguments.args.first()?;
        (is_average && is_itself).then(|| report(context, &call.at, call.expr.range(), place, value)).flatten()
    })
}

/// `ema = [d * e + (1 - d) * p for e, p in zip(ema, net.parameters())]`
fn lists_of_averages(context: &Context<'_>) -> impl Iterator<Item = Diagnostic> {
    context.facts.assignments.iter().filter_map(|it| {
        let (element, generators) = match it.expr {
            Expr::ListComp(it) => (&*it.elt, &it.generators),
            Expr::DictComp(it) => (&*it.value, &it.generators),
            _ => return None,
        };
        let [generator] = generators.as_slice() else { return None };
        let is_of_itself = mentions(&generator.iter, &|part| is_same_place(part, it.target))
            || mentions(element, &|part| is_same_place(part, it.target));
        let is_sum = matches!(element, Expr::BinOp(it) if it.op == ast::Operator::Add);
        if !is_of_itself || !is_sum || context.repetition_at(&it.at).is_none() {
            return None;
        }
        let the_loop = context.names.loop_at(generator.range)?;
        let at = Position { in_loop: Some(the_loop), ..it.at };
        report(context, &at, it.target.range().cover(it.expr.range()), it.target, element)
    })
}

fn report<'a>(
    context: &Context<'a>,
    at: &Position<'a>,
    range: TextRange,
    place: &Expr,
    value: &Expr,
) -> Option<Diagnostic> {
    let names: Vec<&str> =
        context.names.loops_from(at.in_loop).flat_map(|it| parameter_names(context, it)).collect();
    let parameter = names.into_iter().find_map(|name| {
        let is_other = !matches!(place, Expr::Name(it) if it.id.as_str() == name);
        is_other.then(|| attached_mention(value, name)).flatten()
    })?;
    if !context.seems_to_record(at) {
        return None;
    }
    let (place, name) = (context.text(place), context.text(parameter));
    let fix = Edit::insert(parameter.end(), ".detach()");
    Some(
        Diagnostic::new(
            &RULE,
            Severity::Info,
            range,
            format!("each average in `{place}` keeps the graph of all averages before it"),
        )
        .because_of(parameter, format!("`{name}` is a parameter, and autograd records here"))
        .advise("average under `torch.no_grad()`, or `.detach()` the parameter")
        .fixed_by(Fix::new(Applicability::Unsafe, "add `.detach()` to the parameter", vec![fix])),
    )
}
