//! Puts a tensor of a `tf.function` into a list, dict or attribute outside of it.
//!
//! ## Why it matters
//! The Python code of a `tf.function` runs only while it is traced. What is appended then is a symbolic tensor without a value: it
//! keeps the whole traced graph in memory, once for each trace, and cannot be used outside (TensorFlow calls it a leaked tensor).
//!
//! ## Example
//! ```python
//! import tensorflow as tf
//!
//! losses = []
//!
//!
//! @tf.function
//! def step(x):
//!     loss = tf.reduce_mean(x)
//!     losses.append(loss)
//!     return loss
//! ```
//! Use instead:
//! ```python
//! import tensorflow as tf
//!
//!
//! @tf.function
//! def step(x):
//!     loss = tf.reduce_mean(x)
//!     return loss
//!
//!
//! losses = [step(x) for x in dataset]
//! ```
//! Inside of a function, a `tf.TensorArray` collects tensors.
//!
//! ## When it is silent
//! What is kept is no tensor (a shape, a name, a constant), or the list belongs to the function itself.
//!
//! ## Fix
//! Only advice: the value has to be returned.
//!
//! ## References
//! - [TensorFlow guide: leaked tensors](https://www.tensorflow.org/guide/function#python_side_effects)

use super::FUNCTION;
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK811",
    name: "side-effect-append-in-traced-function",
    frameworks: &[Framework::TensorFlow],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.calls_to(FUNCTION).next().is_none()
        && !context.names.functions.iter().any(|it| !it.node.decorators().is_empty())
    {
        return;
    }
    for keep in &context.facts.keeps {
        let Some(compiled) = context.leaks_traced(keep, FUNCTION) else { continue };
        let (target, kept) = (context.text(keep.target), context.text(keep.kept));
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                keep.range,
                format!("`{target}` gets `{kept}` only while the function is traced, and keeps its graph"),
            )
            .because_of(compiled.place, "the function is compiled here")
            .advise("return the value and keep it where the function is called"),
        );
    }
}
