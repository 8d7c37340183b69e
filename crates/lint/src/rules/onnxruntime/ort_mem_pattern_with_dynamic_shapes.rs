//! Leaves memory patterns on in an ONNX Runtime session whose inputs change their shapes.
//!
//! ## Why it matters
//! With `enable_mem_pattern`, the default, a session plans its allocations for each input shape that it meets and keeps the plan. With
//! shapes that never come again the plans are of no use, and they grow in number.
//!
//! ## Example
//! ```python
//! import onnxruntime
//!
//! encoded = tokenizer(texts, padding=True, return_tensors="np")
//! options = onnxruntime.SessionOptions()
//! session = onnxruntime.InferenceSession("model.onnx", options)
//! session.run(None, dict(encoded))
//! ```
//! Use instead:
//! ```python
//! import onnxruntime
//!
//! encoded = tokenizer(texts, padding=True, return_tensors="np")
//! options = onnxruntime.SessionOptions()
//! options.enable_mem_pattern = False
//! session = onnxruntime.InferenceSession("model.onnx", options)
//! session.run(None, dict(encoded))
//! ```
//!
//! ## When it is silent
//! `enable_mem_pattern` is set anywhere in the file, or nothing in it shows that shapes change. How many shapes there are cannot be
//! seen, so the rule is off by default.
//!
//! ## Fix
//! Only advice.
//!
//! ## References
//! - microsoft/onnxruntime#13500

use super::shapes::{SESSION, varying};
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK903",
    name: "ort-mem-pattern-with-dynamic-shapes",
    frameworks: &[Framework::OnnxRuntime],
    severity: Severity::Info,
    default: false,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.names.attributes.contains_key("enable_mem_pattern") {
        return;
    }
    for call in context.calls_to(SESSION).filter(|it| !it.has_unpacking()) {
        // Options that come from elsewhere may have it set.
        let is_made_here = call.argument("sess_options", 1).is_none_or(|it| {
            let made = context.meaning(call.at.function, it);
            context.calls_to(&["onnxruntime.SessionOptions"]).any(
                |it| matches!(made, crate::syntax::ast::Expr::Call(made) if std::ptr::eq(made, it.expr)),
            )
        });
        if is_made_here && let Some(place) = varying(context) {
            found.push(
                Diagnostic::new(&RULE, Severity::Info, call.expr, "this session keeps a memory plan for each input shape that it meets")
                    .because_of(place, "shapes change here")
                    .advise("set `enable_mem_pattern = False` in its options"),
            );
        }
    }
}
