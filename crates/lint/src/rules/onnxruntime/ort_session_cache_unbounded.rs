//! Keeps ONNX Runtime sessions in a dict that never lets one go.
//!
//! ## Why it matters
//! Each session holds the weights of its model and a memory arena. Where the key comes from users, every model that anybody ever asked
//! for stays in memory.
//!
//! ## Example
//! ```python
//! import onnxruntime
//!
//! SESSIONS = {}
//!
//!
//! def session_for(path):
//!     if path not in SESSIONS:
//!         SESSIONS[path] = onnxruntime.InferenceSession(path)
//!     return SESSIONS[path]
//! ```
//! Use instead:
//! ```python
//! import functools
//! import onnxruntime
//!
//!
//! @functools.lru_cache(maxsize=4)
//! def session_for(path):
//!     return onnxruntime.InferenceSession(path)
//! ```
//!
//! ## When it is silent
//! Something is taken out of the dict again, or its keys are written out in the source. Whether keys come from users cannot be seen, so
//! the rule is off by default.
//!
//! ## Fix
//! Only advice.
//!
//! ## References
//! - microsoft/onnxruntime#17142

use super::shapes::SESSION;
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::How,
    flow::value::{Class, Value},
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK905",
    name: "ort-session-cache-unbounded",
    frameworks: &[Framework::OnnxRuntime],
    severity: Severity::Info,
    default: false,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for keep in context.facts.keeps.iter().filter(|it| it.how == How::SetItem && it.outlives_call) {
        let is_session =
            matches!(&keep.value, Value::Object(Class::External(path)) if SESSION.contains(&&**path));
        if is_session && !Context::has_constant_key(keep) && !context.is_bounded(keep) {
            let target = context.text(keep.target);
            found.push(
                Diagnostic::new(&RULE, Severity::Info, keep.range, format!("`{target}` keeps a session for every key it has ever seen"))
                    .advise("bound it, as `functools.lru_cache(maxsize=…)` does"),
            );
        }
    }
}
