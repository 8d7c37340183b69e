//! Prepares new models with the same `Accelerator` in every round of a loop.
//!
//! ## Why it matters
//! An accelerator remembers everything that it has prepared, to save and clip it later: the models, optimizers and loaders of all
//! rounds stay on the GPU, however often their names are given something else.
//!
//! ## Example
//! ```python
//! from accelerate import Accelerator
//!
//! accelerator = Accelerator()
//! for epoch, config in enumerate(configs):
//!     model = make_model(config)
//!     model = accelerator.prepare(model)
//!     train(model)
//! ```
//! Use instead:
//! ```python
//! from accelerate import Accelerator
//!
//! accelerator = Accelerator()
//! for epoch, config in enumerate(configs):
//!     accelerator.free_memory()
//!     model = make_model(config)
//!     model = accelerator.prepare(model)
//!     train(model)
//! ```
//!
//! ## When it is silent
//! The accelerator is made in the loop, or the loop calls `free_memory` or `clear`; what is prepared is what the loop goes over
//! (a set of loaders, prepared once); the call is guarded by an `if`; the object is not known to be an `Accelerator`.
//!
//! ## Fix
//! Calls `free_memory()` at the beginning of each round: unsafe, because something that was prepared before the loop would be
//! forgotten, too.
//!
//! ## References
//! - [Accelerate troubleshooting](https://huggingface.co/docs/accelerate/basic_tutorials/troubleshooting)
//! - huggingface/accelerate#84, huggingface/accelerate#89, huggingface/accelerate#739, `d8ahazard/sd_dreambooth_extension#598`

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Edit, Fix},
    flow::value::{Class, Value},
    names::LoopId,
    rule::{Framework, Rule},
    syntax::{Ranged, ast::Expr},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK509",
    name: "accelerate-prepare-in-loop",
    frameworks: &[Framework::HuggingFace],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for call in ["prepare", "prepare_model"].into_iter().flat_map(|it| context.calls_named(it)) {
        let Some((accelerator, value, _)) = call.method() else { continue };
        let is_accelerator = matches!(
            value,
            Value::Object(Class::External(path)) if path.starts_with("accelerate.") && path.ends_with(".Accelerator")
        );
        let Some(id) = context.loop_around(call.at.in_loop).filter(|_| is_accelerator) else { continue };
        let node = context.names.the_loop(id).node;
        if context.repetition_in(id).is_none()
            || call.at.branch.is_some()
            || context.may_be_another_in(id, accelerator)
            || prepares_what_is_iterated(context, id, &call.expr.arguments.args)
            || context.calls_any_within(node.range(), &["free_memory", "clear"])
        {
            continue;
        }
        let name = context.text(accelerator);
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                call.expr,
                format!("`{name}` keeps what it prepares in every round"),
            )
            .because_of(
                node.iterable().map_or(node.range(), Ranged::range),
                format!("`{name}` outlives the rounds of this loop"),
            )
            .advise(format!("call `{name}.free_memory()` before each round"))
            .fixed_by(free_first(context, id, name)),
        );
    }
}

/// Whether what is prepared is not made in the loop: the loop goes over it, or it is the same in all rounds.
fn prepares_what_is_iterated(context: &Context<'_>, id: LoopId, arguments: &[Expr]) -> bool {
    let target = context.names.the_loop(id).node.target();
    let is_target = |it: &Expr| {
        target.is_some_and(|target| {
            crate::syntax::mentions(target, &|part| crate::syntax::is_same_place(part, it))
        })
    };
    arguments.iter().any(is_target)
}

fn free_first(context: &Context<'_>, id: LoopId, accelerator: &str) -> Option<Fix> {
    let first = context.names.the_loop(id).node.body().first()?;
    if !context.is_alone_on_its_lines(first) {
        return None;
    }
    let line =
        format!("{accelerator}.free_memory(){}{}", context.end_of_line(), context.indentation(first));
    Some(Fix::new(
        Applicability::Unsafe,
        format!("call `{accelerator}.free_memory()` first"),
        vec![Edit::insert(first.start(), line)],
    ))
}
