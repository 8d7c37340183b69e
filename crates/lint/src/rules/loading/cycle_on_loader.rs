//! Repeats a data loader with `itertools.cycle`, which keeps every batch of the first pass.
//!
//! ## Why it matters
//! `itertools.cycle` saves what it yields in order to yield it again: after one epoch the whole dataset is in memory, batch by
//! batch (measured: 4.2 MB more with each batch of 4.2 MB). In pinned memory if the loader pins, on the device if the loader
//! moves batches there. It also repeats the first pass: the same order, the same augmentations. `itertools.tee` keeps what
//! one of its iterators has seen and another has not.
//!
//! ## Example
//! ```python
//! import itertools
//! from torch.utils.data import DataLoader
//!
//! loader = DataLoader(dataset, batch_size=32, shuffle=True)
//! batches = itertools.cycle(loader)
//! ```
//! Use instead:
//! ```python
//! import itertools
//! from torch.utils.data import DataLoader
//!
//! loader = DataLoader(dataset, batch_size=32, shuffle=True)
//! batches = (batch for _ in itertools.count() for batch in loader)
//! ```
//!
//! ## When it is silent
//! What is repeated is a list, a range or anything that is not known to be a loader by its class or its name. Tests.
//!
//! ## Fix
//! Goes over the loader again and again: unsafe, because the loader shuffles anew in each pass (which is mostly wanted), and
//! because an empty loader then never ends. Offered if the loader is surely one and its name is not given anything else.
//!
//! ## References
//! - [itertools.cycle: saves a copy of each element](https://docs.python.org/3/library/itertools.html#itertools.cycle)
//! - pytorch/pytorch#23900, bytedance/UNO#64, cgtuebingen/SSS-GS#7, `DeepLearnPhysics/lartpc_mlreco3d#77`, kipoi/kipoi#277

use crate::{
    context::{Context, Loader},
    diagnostic::{Diagnostic, Severity},
    facts::Call,
    fix::{Applicability, Edit, Fix},
    rule::{Framework, Rule},
    syntax::{Ranged, ast::Expr, is_same_place},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK401",
    name: "cycle-on-loader",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for call in context.calls_to(&["itertools.cycle"]) {
        let Some((argument, loader)) = loader_of(context, call) else { continue };
        found.push(
            because_of_its_making(
                Diagnostic::new(
                    &RULE,
                    Severity::Warning,
                    call.expr,
                    format!("`cycle` keeps every batch of the first pass over `{}`", context.text(argument)),
                ),
                loader,
            )
            .advise("go over the loader again in each pass: `while True: yield from loader`")
            .fixed_by(go_over_it_again(context, call, argument, loader)),
        );
    }
    for call in context.calls_to(&["itertools.tee"]) {
        let Some((argument, loader)) = loader_of(context, call) else { continue };
        found.push(
            because_of_its_making(
                Diagnostic::new(
                    &RULE,
                    Severity::Info,
                    call.expr,
                    format!(
                        "`tee` keeps the batches of `{}` that not all of its iterators have seen",
                        context.text(argument)
                    ),
                ),
                loader,
            )
            .advise("go over the loader once for each use"),
        );
    }
}

fn loader_of<'a>(context: &Context<'a>, call: &Call<'a>) -> Option<(&'a Expr, Loader<'a>)> {
    let argument = call.expr.arguments.args.first()?;
    Some((argument, context.loader(call.at.function, argument)?))
}

fn because_of_its_making(diagnostic: Diagnostic, loader: Loader<'_>) -> Diagnostic {
    match loader {
        Loader::Made(made) => diagnostic.because_of(made.expr, "the loader is made here"),
        Loader::Instance | Loader::Named => diagnostic,
    }
}

fn go_over_it_again<'a>(
    context: &Context<'a>,
    call: &Call<'a>,
    loader: &'a Expr,
    known: Loader<'a>,
) -> Option<Fix> {
    // `itertools.cycle`: then `itertools.count` is at hand, too.
    let Expr::Attribute(cycle) = &*call.expr.func else { return None };
    let is_sure = matches!(known, Loader::Made(_) | Loader::Instance);
    // The generator looks the loader up at each pass: it must still be what it is now.
    let stays = match loader {
        Expr::Name(it) => {
            let scope = context.scope(call.at.function);
            context.names.name(scope, it.id.as_str()).is_some_and(|it| it.definitions.len() == 1)
        }
        Expr::Attribute(_) => context.only_value(call.at.function, loader).is_some(),
        _ => false,
    };
    let is_own_target = context
        .facts
        .assignments
        .iter()
        .any(|it| is_same_place(it.target, loader) && contains(it.expr, call));
    let takes_more = call.expr.arguments.args.len() + call.expr.arguments.keywords.len() > 1;
    if !is_sure || !stays || is_own_target || takes_more {
        return None;
    }
    let loader = context.text(loader);
    let generator =
        format!("(batch for _ in {}.count() for batch in {loader})", context.text(&*cycle.value));
    Some(Fix::new(
        Applicability::Unsafe,
        "go over the loader again in each pass",
        vec![Edit::replace(call.expr, generator)],
    ))
}

fn contains(expr: &Expr, call: &Call<'_>) -> bool {
    expr.range().contains_range(call.expr.range())
}
