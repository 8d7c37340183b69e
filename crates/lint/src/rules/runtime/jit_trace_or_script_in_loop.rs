//! Traces, scripts or exports a model at every step.
//!
//! ## Why it matters
//! `TorchScript` keeps the types and graphs that it makes in a compilation unit of the process, which is never emptied: each
//! `torch.jit.trace` or `torch.jit.script` adds to it, and the constants of a trace, copies of tensors among them, stay with
//! it. `torch.onnx.export` with `dynamo=False`, which was the default before 2.9, traces, too.
//!
//! ## Example
//! ```python
//! import torch
//!
//! for batch in loader:
//!     traced = torch.jit.trace(model, batch)
//!     out = traced(batch)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! traced = torch.jit.trace(model, example)
//! for batch in loader:
//!     out = traced(batch)
//! ```
//! If a service has to export many models, let a process of its own do it each time.
//!
//! ## When it is silent
//! An export does not say `dynamo=False`; it happens under a condition or behind a way out (`if traced is None`), once for each of several models, or in a test.
//!
//! ## Fix
//! Unsafe: moves the assignment in front of the loop, if nothing in it changes from round to round.
//!
//! ## References
//! - pytorch/pytorch#35600, pytorch/pytorch#58109, pytorch/pytorch#86537, pytorch/pytorch#96726, pytorch/pytorch#93943
//! - huggingface/transformers#16691

use crate::{
    context::{Context, EachStep},
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Fix},
    rule::{Framework, Rule},
    syntax::bool_literal,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK607",
    name: "jit-trace-or-script-in-loop",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

const TRACES: &[&str] =
    &["torch.jit.trace", "torch.jit.trace_module", "torch.jit.script", "torch.onnx.export"];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for call in context.calls_to(TRACES) {
        let Some(each) = context.each_step(&call.at) else { continue };
        let export = call.last_name() == "export";
        if export && call.keyword("dynamo").is_none_or(|it| bool_literal(&it.value) != Some(false)) {
            continue;
        }
        let (does, fix) = match each {
            EachStep::In(id) if !export => (call.last_name(), context.hoist(call.at.statement, id)),
            _ => (call.last_name(), None),
        };
        let message = format!(
            "`{does}` at every step: the graphs and types that it makes stay in a compilation unit that is never emptied"
        );
        let diagnostic = Diagnostic::new(&RULE, Severity::Warning, call.expr, message);
        found.push(
            context
                .because_each_step(diagnostic, each, &call.at)
                .advise("do it once, before the loop, or in a process of its own")
                .fixed_by(fix.map(|it| Fix::new(Applicability::Unsafe, "move it in front of the loop", it))),
        );
    }
}
