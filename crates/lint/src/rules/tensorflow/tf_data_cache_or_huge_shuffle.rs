//! Caches a whole `tf.data` dataset in host memory, or fills a very large shuffle buffer with decoded items.
//!
//! ## Why it matters
//! `cache()` without a file name keeps every element of its dataset in host memory, decoded, for as long as the dataset lives.
//! `shuffle(n)` holds `n` elements; behind a `map` that decodes images these are the decoded ones.
//!
//! ## Example
//! ```python
//! import tensorflow as tf
//!
//! dataset = tf.data.Dataset.from_tensor_slices(paths).map(decode).cache().batch(32)
//! ```
//! Use instead:
//! ```python
//! import tensorflow as tf
//!
//! dataset = tf.data.Dataset.from_tensor_slices(paths).map(decode).cache("/tmp/decoded").batch(32)
//! ```
//! Shuffle paths or indices before `map`, not what they are decoded to.
//!
//! ## When it is silent
//! The dataset is not known to be one of `tf.data`, or nothing has been decoded yet. The rule cannot see how large the dataset is and
//! is therefore off by default.
//!
//! ## Fix
//! Only advice.
//!
//! ## References
//! - [tf.data: better performance](https://www.tensorflow.org/guide/data_performance#caching), tensorflow/tensorflow#32376, #44176, #54299

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    names::FunctionId,
    rule::{Framework, Rule},
    syntax::{ast::Expr, int_literal},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK809",
    name: "tf-data-cache-or-huge-shuffle",
    frameworks: &[Framework::TensorFlow],
    severity: Severity::Info,
    default: false,
    fix: None,
    check,
};

/// From this many elements on a shuffle buffer of decoded items is large.
const LARGE: i64 = 50_000;

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_named("cache") {
        let Some((object, ..)) = call.method() else { continue };
        let arguments = &call.expr.arguments;
        if arguments.args.is_empty()
            && arguments.keywords.is_empty()
            && is_decoded_dataset(context, call.at.function, object)
        {
            found.push(
                Diagnostic::new(&RULE, Severity::Info, call.expr, "`cache()` keeps the whole decoded dataset in host memory")
                    .advise("give it a file name, or cache before what is decoded grows large"),
            );
        }
    }
    for call in context.calls_named("shuffle") {
        let Some((object, ..)) = call.method() else { continue };
        let size = call.argument("buffer_size", 0).and_then(int_literal);
        if size.is_some_and(|it| it >= LARGE) && is_decoded_dataset(context, call.at.function, object) {
            found.push(
                Diagnostic::new(&RULE, Severity::Info, call.expr, "the shuffle buffer holds that many decoded elements in host memory")
                    .advise("shuffle paths or indices before `map`, with a small buffer behind it"),
            );
        }
    }
}

/// Whether a chain of methods begins with a dataset of `tf.data` and maps its elements.
fn is_decoded_dataset<'a>(context: &Context<'a>, function: FunctionId, expr: &'a Expr) -> bool {
    let mut at = expr;
    let mut is_mapped = false;
    for _ in 0..24 {
        at = match context.meaning(function, at) {
            Expr::Call(call) => {
                let path = context.path(function, &call.func);
                if path.is_some_and(|it| it.is_within("tensorflow.data")) {
                    return is_mapped;
                }
                let Expr::Attribute(it) = &*call.func else { return false };
                is_mapped |= matches!(it.attr.as_str(), "map" | "interleave" | "flat_map");
                &it.value
            }
            _ => return false,
        };
    }
    false
}
