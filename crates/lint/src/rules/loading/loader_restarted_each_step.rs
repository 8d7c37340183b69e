//! Takes one batch from a new iterator of a data loader in every step: `next(iter(loader))`.
//!
//! ## Why it matters
//! `iter(loader)` starts all workers of the loader, each of which prefetches batches; for one batch all the others are
//! thrown away. In a loop this means processes, shared memory and pinned buffers that come and go with every step: host memory
//! was seen to grow, and each step waits for new processes. A loader without workers only pays for one batch.
//!
//! ## Example
//! ```python
//! from torch.utils.data import DataLoader
//!
//! loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=8)
//! for step in range(num_steps):
//!     images, labels = next(iter(loader))
//!     train_step(images, labels)
//! ```
//! Use instead:
//! ```python
//! from torch.utils.data import DataLoader
//!
//! loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=8)
//! for images, labels in loader:
//!     train_step(images, labels)
//! ```
//!
//! ## When it is silent
//! Outside of loops; in a loop over epochs or over several loaders; if the loader is made without workers, or in the loop. If
//! it is not known whether there are workers, it is only an info. Tests.
//!
//! ## Fix
//! Only advice: an iterator that is made once ends after an epoch, and what is to happen then has to be said.
//!
//! ## References
//! - pytorch/pytorch#1917, facebookresearch/detectron2#3847

use crate::{
    context::{Context, Loader, Workers},
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
    syntax::{Ranged, ast::Expr},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK402",
    name: "loader-restarted-each-step",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for call in context.calls_to_builtin("iter") {
        let Some(loader) = call.expr.arguments.args.first() else { continue };
        let is_thrown_away = context.calls_to_builtin("next").any(|it| {
            matches!(it.expr.arguments.args.first(), Some(Expr::Call(inner)) if std::ptr::eq(inner, call.expr))
        });
        let Some(id) = context.loop_around(call.at.in_loop).filter(|_| is_thrown_away) else { continue };
        let Some(known) = context.loader(call.at.function, loader) else { continue };
        if !context.is_over_steps(id) || context.may_be_another_in(id, loader) || call.at.branch.is_some() {
            continue;
        }
        let (severity, made) = match known {
            Loader::Made(made) => match context.workers(made) {
                Workers::None => continue,
                Workers::Some => (Severity::Warning, Some(made)),
                Workers::Unknown => (Severity::Info, Some(made)),
            },
            Loader::Instance | Loader::Named => (Severity::Info, None),
        };
        let name = context.text(loader);
        let node = context.names.the_loop(id).node;
        let mut diagnostic = Diagnostic::new(
            &RULE,
            severity,
            call.expr,
            format!("starts the workers of `{name}` in every step, and throws away what they prefetched"),
        )
        .because_of(node.iterable().map_or(node.range(), Ranged::range), "this loop runs for each step");
        if let Some(made) = made {
            diagnostic = diagnostic.because_of(made.expr, "the loader has workers");
        }
        found.push(
            diagnostic.advise("go over the loader with `for`, or make its iterator once and anew only after `StopIteration`"),
        );
    }
}
