//! Keeps functions that hold a batch or a tensor: lambdas, `partial`, tasks of an executor.
//!
//! ## Why it matters
//! `functools.partial` holds its arguments, a lambda its defaults and what it refers to of the call around it, and a task that
//! waits in an executor the batch that it is to work on: 4.2 MB each for a batch of 1024 x 1024 numbers. A list of them, one more
//! each round, is a list of all batches. Often it is worked off soon, which is why the rule does not run unless it is selected.
//!
//! ## Example
//! ```python
//! from functools import partial
//!
//! from torch.utils.data import DataLoader
//!
//! loader = DataLoader(dataset, batch_size=1024)
//! reports = []
//! for batch in loader:
//!     reports.append(partial(save_image, batch))
//! ```
//! Use instead:
//! ```python
//! from functools import partial
//!
//! from torch.utils.data import DataLoader
//!
//! loader = DataLoader(dataset, batch_size=1024)
//! reports = []
//! for index, batch in enumerate(loader):
//!     reports.append(partial(save_image_at, index))
//! ```
//! For an executor, wait for some tasks before more are handed in. Its queue holds the batches of those that wait; a future that is
//! done holds its result only.
//!
//! ## When it is silent
//! What is held is not known to be a batch or a tensor, or is a single number; the list is emptied or bounded. A lambda in a loop
//! that refers to a variable of the loop holds the variable, not its value: all of them hold the last batch only.
//!
//! ## Fix
//! Only advice: which numbers are needed instead of the batch is not to be seen.
//!
//! ## References
//! - Measured: a list of `partial` objects keeps 4.2 MB each, which collecting garbage does not free.
//! - [Ruff's B023](https://docs.astral.sh/ruff/rules/function-uses-loop-variable/): the same lambda sees the last batch, not its own

use super::to_host::because_repeated;
use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::{Call, Keep},
    flow::value::{Place, Size, Value},
    names::{Definition, FunctionId, LoopId, LoopNode},
    rule::{Framework, Rule},
    syntax::{
        Ranged, TextRange,
        ast::{self, Expr},
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK210",
    name: "closure-captures-batch",
    frameworks: &[Framework::Any],
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
        if !Context::adds_each_time(keep) || context.is_bounded(keep) {
            continue;
        }
        let Some(repetition) = context.repetition(keep) else { continue };
        let Some(held) = held_by(context, keep, repetition) else { continue };
        let diagnostic = if is_task(keep.kept) {
            task(context, keep.range, held).advise("wait for some tasks before more are handed in")
        } else {
            let message =
                format!("`{}` keeps a function that holds `{}`", context.text(keep.target), context.text(held));
            Diagnostic::new(&RULE, Severity::Info, keep.range, message)
                .advise("let it hold numbers or an index instead of the batch")
        };
        found.push(because_repeated(context, diagnostic, keep, repetition));
    }
    // `[pool.submit(work, batch) for batch in loader]`
    for call in context.calls_named("submit") {
        let Some(id) = call.at.in_loop else { continue };
        let is_in_comprehension = matches!(context.names.the_loop(id).node, LoopNode::Comprehension(_));
        if !is_in_comprehension || !matches!(context.repetition_in(id), Some(Repetition::Data(_))) {
            continue;
        }
        if let Some(held) = held_by_task(context, call) {
            let head = context.head(id);
            found.push(
                task(context, call.expr.range(), held)
                    .because_of(head, "a task for each batch is handed in before the first is waited for")
                    .advise("wait for some tasks before more are handed in"),
            );
        }
    }
}

/// A task that waits for its turn.
fn task<'a>(context: &Context<'a>, place: TextRange, held: &'a Expr) -> Diagnostic {
    let message =
        format!("each task holds `{}` while it waits, so all batches pile up behind a slow one", context.text(held));
    Diagnostic::new(&RULE, Severity::Info, place, message)
}

/// `pool.submit(work, batch)`
fn is_task(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(it) if matches!(&*it.func, Expr::Attribute(it) if it.attr.as_str() == "submit"))
}

/// The batch or tensor that a function or task holds.
fn held_by<'a>(context: &Context<'a>, keep: &Keep<'a>, repetition: Repetition) -> Option<&'a Expr> {
    match keep.kept {
        Expr::Lambda(lambda) => {
            let defaults = lambda.parameters.iter().flat_map(|it| it.iter_non_variadic_params());
            let default = defaults
                .filter_map(|it| it.default())
                .find(|it| is_held(context, keep.at.function, keep.at.in_loop, it));
            // The rounds of a loop share their variables; each call of a function has its own.
            let is_of_call = !matches!(repetition, Repetition::Data(_) | Repetition::Loop(_));
            default.or_else(|| captured(context, keep.at.function, lambda).filter(|_| is_of_call))
        }
        Expr::Call(made) => {
            let call = context.call_of(made)?;
            let holds = call.is_to(&["functools.partial"]) || call.last_name() == "submit";
            if holds { held_by_task(context, call) } else { None }
        }
        _ => None,
    }
}

fn held_by_task<'a>(context: &Context<'a>, call: &Call<'a>) -> Option<&'a Expr> {
    arguments(call).skip(1).find(|it| is_large_argument(context, call, it))
}

fn arguments<'a>(call: &Call<'a>) -> impl Iterator<Item = &'a Expr> + use<'a> {
    let all = &call.expr.arguments;
    all.args.iter().chain(all.keywords.iter().map(|it| &it.value))
}

fn is_large_argument<'a>(context: &Context<'a>, call: &Call<'a>, argument: &'a Expr) -> bool {
    is_large(call.value_of(argument)) || is_held(context, call.at.function, call.at.in_loop, argument)
}

/// What a lambda refers to of the call of the function around it.
fn captured<'a>(
    context: &Context<'a>,
    function: FunctionId,
    lambda: &'a ast::ExprLambda,
) -> Option<&'a Expr> {
    let own = context.names.function_at(lambda.range)?;
    // The names of a module belong to it, not to the lambda.
    if function == FunctionId::MODULE {
        return None;
    }
    let names = &context.names.scope(context.scope(function)).names;
    let uses = names
        .iter()
        .filter(|(name, _)| is_parameter_for_batch(context, function, name))
        .flat_map(|(_, it)| &it.uses);
    uses.filter(|it| it.function == own).map(|it| it.expr).min_by_key(Ranged::start)
}

/// Whether a name of a function is a tensor that it is given, or the batch that a framework gives it.
fn is_parameter_for_batch(context: &Context<'_>, function: FunctionId, name: &str) -> bool {
    let entry = context.names.scope(context.scope(function)).names.get(name);
    let is_parameter =
        entry.is_some_and(|it| it.definitions.iter().any(|it| matches!(it, Definition::Parameter(_))));
    let is_given_batch = name == "batch" && context.is_called_by_framework(function);
    let value = context.facts.names.get(&(function, name));
    is_parameter && is_given_batch || value.is_some_and(is_large)
}

/// Whether a name stands for a batch of the loop around, or a tensor.
fn is_held<'a>(
    context: &Context<'a>,
    function: FunctionId,
    innermost: Option<LoopId>,
    expr: &'a Expr,
) -> bool {
    context.value_of_name(function, expr).is_some_and(is_large)
        || matches!(expr, Expr::Name(_) | Expr::Subscript(_))
            && context.is_batch_of_loop(function, innermost, expr)
}

fn is_large(value: &Value) -> bool {
    value.tensor_within().is_some_and(|it| {
        !matches!(it.size, Size::Scalar | Size::Indices)
            && (it.size == Size::Array || it.place == Place::Device)
    })
}
