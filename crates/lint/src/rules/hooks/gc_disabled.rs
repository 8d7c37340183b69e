//! Turns Python's garbage collector off, and never on again or by hand.
//!
//! ## Why it matters
//! Modules, exceptions and compiled functions often refer to themselves in a cycle, and only the collector frees those. With
//! it off, each such object stays with its GPU memory: measured 4.2 MB for every module of width 1024 that is made anew,
//! 25 MB for a trainer whose scheduler refers to it.
//!
//! ## Example
//! ```python
//! import gc
//! import torch
//!
//! gc.disable()
//! for batch in loader:
//!     model(batch).sum().backward()
//! ```
//! Use instead:
//! ```python
//! import gc
//! import torch
//!
//! gc.disable()
//! for step, batch in enumerate(loader):
//!     model(batch).sum().backward()
//!     if step % 1000 == 0:
//!         gc.collect()
//! ```
//!
//! ## When it is silent
//! The file turns it on again, or collects by hand, anywhere.
//!
//! ## Fix
//! Only advice: how often to collect depends on how long a collection takes.
//!
//! ## References
//! - pytorch/pytorch#119607, Lightning-AI/pytorch-lightning#19398

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK311",
    name: "gc-disabled",
    frameworks: &[Framework::Any],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    // Handed on, too: `atexit.register(gc.enable)`.
    let is_handed_on = ["enable", "collect"].iter().filter_map(|it| context.names.attributes.get(it)).flatten().any(|it| {
        context.path(it.function, it.expr).is_some_and(|path| path.is_within("gc"))
    });
    if is_handed_on || context.calls_to(&["gc.enable", "gc.collect"]).next().is_some() {
        return;
    }
    for call in context.calls_to(&["gc.disable"]) {
        found.push(
            Diagnostic::new(&RULE, Severity::Warning, call.expr, "without the garbage collector, objects that refer to themselves keep their memory for ever")
                .because("nothing in this file turns it on again or collects by hand")
                .advise("call `gc.collect()` every so many steps"),
        );
    }
}
