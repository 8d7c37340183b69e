//! Runs an ONNX Runtime session on CUDA with the default arena although the shapes of its inputs change.
//!
//! ## Why it matters
//! The arena of the CUDA provider takes memory for the largest shape it has met, in doubling steps, and never gives it back: one long
//! input raises the memory of the process for good.
//!
//! ## Example
//! ```python
//! import onnxruntime
//!
//! encoded = tokenizer(texts, padding=True, return_tensors="np")
//! session = onnxruntime.InferenceSession("model.onnx", providers=["CUDAExecutionProvider"])
//! session.run(None, dict(encoded))
//! ```
//! Use instead:
//! ```python
//! import onnxruntime
//!
//! encoded = tokenizer(texts, padding=True, return_tensors="np")
//! options = {"gpu_mem_limit": 4 << 30, "arena_extend_strategy": "kSameAsRequested"}
//! session = onnxruntime.InferenceSession("model.onnx", providers=[("CUDAExecutionProvider", options)])
//! session.run(None, dict(encoded))
//! ```
//! Which strategy is better has to be measured: `kSameAsRequested` can be the worse one. Padding to a few fixed lengths helps in any
//! case, and the run option `memory.enable_memory_arena_shrinkage` gives memory back after a run.
//!
//! ## When it is silent
//! The provider has options, or nothing in the file shows that shapes change (an export with dynamic axes, text padded to the longest
//! of a batch). How far shapes differ cannot be seen, so the rule is off by default.
//!
//! ## Fix
//! Only advice.
//!
//! ## References
//! - microsoft/onnxruntime#9509, #7284, #5796, #13500; on strategies: #14474, #25800

use super::shapes::{SESSION, varying};
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
    syntax::{ast::Expr, text_literal},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK902",
    name: "ort-arena-dynamic-shapes",
    frameworks: &[Framework::OnnxRuntime],
    severity: Severity::Info,
    default: false,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_to(SESSION) {
        let Some(providers) = call.argument("providers", 2) else { continue };
        let Expr::List(list) = context.meaning(call.at.function, providers) else { continue };
        let is_default = list.elts.iter().any(|it| text_literal(it) == Some("CUDAExecutionProvider"));
        if !is_default || call.argument("provider_options", 3).is_some() || call.has_unpacking() {
            continue;
        }
        if let Some(place) = varying(context) {
            found.push(
                Diagnostic::new(&RULE, Severity::Info, call.expr, "the CUDA arena of this session keeps the memory of the largest input it has met")
                    .because_of(place, "shapes change here")
                    .advise("pad to a few fixed lengths, set `gpu_mem_limit`, or shrink the arena after runs"),
            );
        }
    }
}
