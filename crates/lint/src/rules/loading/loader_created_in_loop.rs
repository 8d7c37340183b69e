//! Makes a data loader with workers anew in every epoch, from the same dataset.
//!
//! ## Why it matters
//! Each loader starts its own workers and has its own pinned buffers. With `persistent_workers=True` the workers live as long
//! as their loader: for a moment those of the old loader and those of the new one are both there, each with its copy of the
//! dataset, and what `persistent_workers` is to save is not saved.
//!
//! ## Example
//! ```python
//! from torch.utils.data import DataLoader
//!
//! for epoch in range(num_epochs):
//!     loader = DataLoader(dataset, batch_size=32, num_workers=8, persistent_workers=True)
//!     for batch in loader:
//!         train_step(batch)
//! ```
//! Use instead:
//! ```python
//! from torch.utils.data import DataLoader
//!
//! loader = DataLoader(dataset, batch_size=32, num_workers=8, persistent_workers=True)
//! for epoch in range(num_epochs):
//!     for batch in loader:
//!         train_step(batch)
//! ```
//!
//! ## When it is silent
//! Anything that goes into the loader may differ from round to round: k-fold splits, a curriculum, a sampler that is made anew,
//! a dataset whose methods are called in the loop. The loader has no workers, or it is not known whether it has. Without
//! persistent workers it is only an info: they are started in each epoch anyway.
//!
//! ## Fix
//! Moves the loader in front of the loop: unsafe, because the dataset may change in ways that are not seen here, which
//! persistent workers would not notice.
//!
//! ## References
//! - pytorch/pytorch#62066, pytorch/pytorch#97432, `allenai/olmoearth_pretrain#563`

use crate::{
    context::{Context, LOADERS, Repetition, Workers},
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Fix},
    rule::{Framework, Rule},
    syntax::{Ranged, bool_literal},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK403",
    name: "loader-created-in-loop",
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
    for call in context.calls_to(LOADERS) {
        let Some(id) = context.loop_around(call.at.in_loop) else { continue };
        if !matches!(context.repetition_in(id), Some(Repetition::Data(_))) || call.at.branch.is_some() {
            continue;
        }
        let arguments = &call.expr.arguments;
        let varies = arguments
            .args
            .iter()
            .chain(arguments.keywords.iter().map(|it| &it.value))
            .any(|it| context.may_vary_in(id, it));
        if varies || call.has_unpacking() || context.workers(call) != Workers::Some {
            continue;
        }
        let is_persistent =
            call.keyword("persistent_workers").is_some_and(|it| bool_literal(&it.value) == Some(true));
        let severity = if is_persistent { Severity::Warning } else { Severity::Info };
        let node = context.names.the_loop(id).node;
        let fix = context
            .hoist(call.at.statement, id)
            .map(|edits| Fix::new(Applicability::Unsafe, "move the loader in front of the loop", edits));
        found.push(
            Diagnostic::new(
                &RULE,
                severity,
                call.expr,
                "a new loader in every round, each with workers and buffers of its own",
            )
            .because_of(
                node.iterable().map_or(node.range(), Ranged::range),
                "nothing that goes into the loader changes in this loop",
            )
            .advise("make the loader once, before the loop")
            .fixed_by(fix),
        );
    }
}
