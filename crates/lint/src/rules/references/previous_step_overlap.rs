//! Runs a network in a loop while the result of the round before still holds its graph.
//!
//! ## Why it matters
//! In `out = model(x)` the name lets go of the old result only when the new one is there. If autograd records and nothing goes
//! backward, the old result holds the activations of a whole round, so that two rounds are in memory at once: twice the peak, or
//! half the batch size (measured on an H200, eight layers of `Linear` and `Tanh`, batch 4096, width 1024: 321 MiB, with `del out` at
//! the end of each round 160 MiB, under `no_grad` 80 MiB). Nothing grows; the rule does not run unless it is selected.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! for batch in loader:
//!     out = model(batch)
//!     print(out.argmax(-1).tolist())
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! with torch.no_grad():
//!     for batch in loader:
//!         out = model(batch)
//!         print(out.argmax(-1).tolist())
//! ```
//! Where gradients are needed, `del out` at the end of the round lets go in time, if nothing else holds the graph.
//!
//! ## When it is silent
//! Recording is off there, or may be; each round runs another network; something goes backward or works with gradients; the result is deleted or given another value
//! in the same round; each round goes on from the one before, or keeps its result (then the rules about kept graphs report). A
//! loop that evaluates is LK115's, which has the same remedy.
//!
//! ## Fix
//! Only advice: whether the loop needs gradients is not to be seen.
//!
//! ## References
//! - huggingface/transformers#30536, huggingface/transformers#25930, pytorch/pytorch#18643

use crate::{
    context::{Context, Release},
    diagnostic::{Diagnostic, Severity},
    facts::{Call, Callee, Position},
    flow::value::{Class, Graph},
    names::{Definition, LoopId, Usage},
    rule::{Framework, Rule},
    syntax::{Ranged, ast},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK204",
    name: "previous-step-overlap",
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
    let mut seen: Vec<LoopId> = Vec::new();
    for call in &context.facts.calls {
        let Some(the_loop) = context.loop_around(call.at.in_loop) else { continue };
        let Some(name) = call.name_of_result() else { continue };
        if seen.last() == Some(&the_loop)
            || !runs_network(context, call)
            || context.may_be_another_in(the_loop, &call.expr.func)
            || context.repetition_in(the_loop).is_none()
            || !holds_graph(context, call)
            || is_for_gradients(context, call, the_loop)
            || !is_held_until_next(context, &call.at, the_loop, name, call)
        {
            continue;
        }
        seen.push(the_loop);
        let (name, network) = (name.id.as_str(), context.text(&*call.expr.func));
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Info,
                call.expr,
                format!("while `{network}` runs, `{name}` still holds the activations of the round before"),
            )
            .kept_in(name)
            .because_of(context.head(the_loop), "nothing in this loop goes backward or works with gradients")
            .advise("run it under `torch.no_grad()`, or `del` what holds the graph at the end of the round"),
        );
    }
}

/// Whether the result surely has a graph that nothing frees.
fn holds_graph(context: &Context<'_>, call: &Call<'_>) -> bool {
    context.graph(&call.result, &call.at) >= Graph::Likely
        && context.release(&call.result, &call.at) == Release::Kept
        && context.seems_to_record(&call.at)
}

/// Whether the loop, or what calls it, works with gradients, or another rule has the same to say.
fn is_for_gradients<'a>(context: &Context<'a>, call: &Call<'a>, the_loop: LoopId) -> bool {
    let function = call.at.function;
    let is_part_of_model = context
        .class_around(function)
        .is_some_and(|it| context.is_module_class(&Class::Project(context.file, it)));
    is_part_of_model
        || context.training_loop(Some(the_loop)).is_some()
        || context.wants_gradients(function, Some(the_loop))
        || context.is_wrapped(function)
        || context.evaluates(call, the_loop)
}

/// Whether the result of a round stays in its name until the next round has run the network, and nowhere else.
fn is_held_until_next<'a>(
    context: &Context<'a>,
    at: &Position<'a>,
    the_loop: LoopId,
    name: &'a ast::ExprName,
    call: &Call<'a>,
) -> bool {
    let whole = context.names.the_loop(the_loop).node.range();
    let Some(entry) = context.names.scope(context.scope(at.function)).names.get(name.id.as_str()) else {
        return false;
    };
    let assigned = call.expr.end();
    let mut within = entry.uses.iter().filter(|it| whole.contains_range(it.expr.range()));
    let is_used_otherwise = within.any(|it| match it.usage {
        Usage::Deleted | Usage::Augmented | Usage::Returned | Usage::Gathered => true,
        Usage::Argument(call) => is_putting(call) || it.expr.start() < assigned,
        Usage::Stored => it.expr.range() != name.range,
        // It goes on from what the round before left.
        _ => it.expr.start() < assigned,
    });
    let is_only = entry.definitions.iter().all(|it| match it {
        Definition::Value(value, _) => {
            !whole.contains_range(value.range()) || value.range() == call.expr.range()
        }
        Definition::Other(range) => !whole.contains_range(*range),
        _ => false,
    });
    let is_kept = context.has_case_within(whole);
    entry.elsewhere.is_none() && is_only && !is_used_otherwise && !is_kept
}

/// Whether a call puts something into a list or another container.
fn is_putting(call: &ast::ExprCall) -> bool {
    matches!(
        &*call.func,
        ast::Expr::Attribute(it) if matches!(it.attr.as_str(), "append" | "extend" | "add" | "insert" | "put" | "update")
    )
}

/// Whether a call runs a network, by its type, or by the name of what a caller passes.
fn runs_network<'a>(context: &Context<'a>, call: &Call<'a>) -> bool {
    let is_passed = || match &*call.expr.func {
        ast::Expr::Name(it) => {
            let entry = context.names.scope(context.scope(call.at.function)).names.get(it.id.as_str());
            entry.is_some_and(|it| matches!(it.definitions.as_slice(), [Definition::Parameter(_)]))
        }
        _ => false,
    };
    let is_by_name = matches!(call.callee, Callee::Unknown) && context.is_forward(call);
    context.runs_network(call) || is_by_name && is_passed()
}
