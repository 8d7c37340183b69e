//! Compiles a model anew at every step or call.
//!
//! ## Why it matters
//! Each call makes a new wrapper, whose first run looks for compiled code anew. In older releases what was compiled stayed in caches
//! of the process, with the model for as long as guards referred to it: a deleted model has been reported to leave 6.2 GB allocated
//! behind. PyTorch 2.11 was measured to find the code again and to keep neither models nor what closures hold, so this is only an
//! info. With CUDA graphs (`mode="reduce-overhead"`) each compiled function has memory pools of its own.
//!
//! ## Example
//! ```python
//! import torch
//!
//! for batch in loader:
//!     step = torch.compile(model)
//!     step(batch)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! step = torch.compile(model)
//! for batch in loader:
//!     step(batch)
//! ```
//!
//! ## When it is silent
//! Compiling depends on a condition (`if self.compiled is None`), the function caches its results or can return before it, or
//! the file calls `torch._dynamo.reset()` or `torch.compiler.reset()`, which empties the caches.
//!
//! ## Fix
//! Only shown, where the call can be moved in front of the loop: others may rely on the place.
//!
//! ## References
//! - pytorch/pytorch#104095, pytorch/pytorch#105181, pytorch/pytorch#119607, pytorch/pytorch#122969

use crate::{
    context::{Context, EachStep},
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Fix},
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK601",
    name: "compile-in-loop",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: true,
    fix: Some(Applicability::Display),
    check,
};

const RESETS: &[&str] = &["torch._dynamo.reset", "torch.compiler.reset", "torch._dynamo.reset_code_caches"];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.calls_to(RESETS).next().is_some() {
        return;
    }
    for call in context.calls_to(&["torch.compile", "torch._dynamo.optimize"]) {
        let Some(each) = context.each_step(&call.at) else { continue };
        let fix = match each {
            EachStep::In(id) => context.hoist(call.at.statement, id),
            _ => None,
        };
        let diagnostic = Diagnostic::new(
            &RULE,
            Severity::Info,
            call.expr,
            "wrapped anew at every step; older releases of PyTorch also compile anew, and keep what they compiled",
        );
        found.push(
            context
                .because_each_step(diagnostic, each, &call.at)
                .advise("compile once, before the loop, and use that; between models call `torch.compiler.reset()`")
                .fixed_by(fix.map(|it| Fix::new(Applicability::Display, "compile before the loop", it))),
        );
    }
}
