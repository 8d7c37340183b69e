//! Compiles with CUDA graphs for shapes that change.
//!
//! ## Why it matters
//! `mode="reduce-overhead"` and `mode="max-autotune"` record a CUDA graph for every shape that comes along, with
//! `dynamic=True`, too, and every recording is kept. Batches padded to their longest item have as many shapes as there are
//! lengths, so memory grows until all have been seen; PyTorch itself warns after 8 recordings.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.compile(model, mode="reduce-overhead", dynamic=True)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.compile(model, dynamic=True)
//! ```
//! Or keep the mode and pad to a few fixed sizes.
//!
//! ## When it is silent
//! Nothing in the file says that shapes change: neither `dynamic=True` nor a tokenizer or collator that pads to the longest
//! item (then it is information only, for batches may be padded elsewhere, too); or
//! `torch._inductor.config.triton.cudagraph_skip_dynamic_graphs` is set.
//!
//! ## Fix
//! Only advice: whether to give up the mode or to pad is a question of speed.
//!
//! ## References
//! - pytorch/pytorch#128424, pytorch/pytorch#188150, pytorch/pytorch#104448

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
    syntax::{bool_literal, text_literal},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK602",
    name: "cudagraph-compile-with-dynamic-shapes",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut compiled = context.calls_to(&["torch.compile"]).peekable();
    if compiled.peek().is_none() || context.source.text().contains("cudagraph_skip_dynamic_graphs") {
        return;
    }
    for call in compiled {
        let mode = call.keyword("mode").and_then(|it| text_literal(&it.value));
        let Some(mode @ ("reduce-overhead" | "max-autotune")) = mode else { continue };
        let message = format!("`mode=\"{mode}\"` keeps a CUDA graph with its memory for every shape that comes along");
        let dynamic = call.keyword("dynamic");
        let (severity, place, why) = match dynamic.map(|it| bool_literal(&it.value)) {
            Some(Some(true)) => {
                let range = dynamic.map(|it| it.range).unwrap_or_default();
                (Severity::Warning, range, "shapes change, for this says so; graphs are recorded for each all the same")
            }
            Some(None) => continue,
            _ => match context.pads_to_longest() {
                Some(range) => (Severity::Info, range, "batches are padded to their longest item here"),
                None => continue,
            },
        };
        found.push(
            Diagnostic::new(&RULE, severity, call.expr, message)
                .because_of(place, why)
                .advise("compile without that mode, or pad to a few fixed sizes"),
        );
    }
}
