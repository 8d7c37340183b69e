//! Calls `predict` of a Keras model for one item or batch at a time, in a loop.
//!
//! ## Why it matters
//! `predict` builds a dataset, callbacks and an iterator for each call: it is made for many items in one call. In a loop these objects
//! pile up faster than they are collected, and host memory grows; users report gigabytes after some thousand calls. Calling the model
//! itself does none of this.
//!
//! ## Example
//! ```python
//! import numpy as np
//! from tensorflow import keras
//!
//! model = keras.models.load_model("model.keras")
//! for image in images:
//!     probabilities = model.predict(np.expand_dims(image, 0))
//! ```
//! Use instead:
//! ```python
//! import numpy as np
//! from tensorflow import keras
//!
//! model = keras.models.load_model("model.keras")
//! for image in images:
//!     probabilities = model(np.expand_dims(image, 0), training=False).numpy()
//! ```
//! Faster still is one `predict` over all items. `predict_on_batch` is fine in loops, too.
//!
//! ## When it is silent
//! What is predicted does not come from the loop, as in a check of the whole set after each epoch; the model is another one in each
//! round; what is called is not known to be a Keras model.
//!
//! ## Fix
//! Calls the model with `training=False`, and `.numpy()` behind it: unsafe, since a model with several outputs gives a list, and all
//! items go to the device at once.
//!
//! ## References
//! - [Keras: predict](https://keras.io/api/models/model_training_apis/#predict-method), tensorflow/tensorflow#44711, keras-team/keras#13118

use super::keras;
use crate::{
    context::{Context, Repetition, Rounds},
    diagnostic::{Diagnostic, Severity},
    facts::{Call, Position},
    fix::{Applicability, Edit, Fix},
    rule::{Framework, Rule},
    syntax::{
        Ranged, TextRange,
        ast::{self, Expr},
        int_literal,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK805",
    name: "keras-predict-in-loop",
    frameworks: &[Framework::TensorFlow],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_named("predict") {
        let Some((object, value, _)) = call.method() else { continue };
        let Some(input) = call.argument("x", 0) else { continue };
        if !keras::is_model(context, value) {
            continue;
        }
        let is_single = is_single_item(context, &call.at, input, 3);
        let (severity, place) = match context.repetition_at(&call.at) {
            Some(Repetition::Data(id) | Repetition::Loop(id)) => {
                let varies = is_single || context.varies_with(&call.at, input);
                if !varies || keras::is_made_in(context, call.at.function, object, id) {
                    continue;
                }
                let is_sure = is_single || context.rounds(id) == Rounds::Data;
                let node = context.names.the_loop(id).node;
                let head = node.iterable().map_or(node.range(), Ranged::range);
                (if is_sure { Severity::Warning } else { Severity::Info }, Some(head))
            }
            Some(Repetition::Called | Repetition::Framework) if is_single => (Severity::Info, None),
            _ => continue,
        };
        let message = format!(
            "`{}.predict` builds a dataset and its iterator for each call, which pile up in a loop",
            context.text(object)
        );
        let mut diagnostic = Diagnostic::new(&RULE, severity, call.expr, message);
        diagnostic = match place {
            Some(place) => diagnostic.because_of(place, "it is called in every round of this loop"),
            None => diagnostic.because("its function is called in a loop, for one item each time"),
        };
        found.push(
            diagnostic
                .advise("call the model itself with `training=False`, or `predict` all items in one call")
                .fixed_by(call_model(context, call, object, input)),
        );
    }
}

/// Whether an array has been made for one item: `x[None]`, `np.expand_dims(x, 0)`, `x[i : i + 1]`.
fn is_single_item<'a>(context: &Context<'a>, at: &Position<'a>, expr: &'a Expr, hops: u32) -> bool {
    let Some(hops) = hops.checked_sub(1) else { return false };
    let is_new_axis = |it: &Expr| {
        it.is_none_literal_expr() || matches!(it, Expr::Attribute(it) if it.attr.as_str() == "newaxis")
    };
    match context.meaning(at.function, expr) {
        Expr::Subscript(it) => match &*it.slice {
            Expr::Slice(slice) => is_one_wide(slice),
            Expr::Tuple(it) => it.elts.first().is_some_and(is_new_axis),
            other => is_new_axis(other),
        },
        Expr::List(it) => matches!(it.elts.as_slice(), [only] if !only.is_starred_expr()),
        Expr::Call(call) => {
            let name = match &*call.func {
                Expr::Name(it) => it.id.as_str(),
                Expr::Attribute(it) => it.attr.as_str(),
                _ => return false,
            };
            match (name, call.arguments.args.first()) {
                ("expand_dims", _) => true,
                ("reshape", _) => call.arguments.args.iter().take(2).any(|it| match it {
                    Expr::Tuple(it) => it.elts.first().and_then(int_literal) == Some(1),
                    Expr::List(it) => it.elts.first().and_then(int_literal) == Some(1),
                    _ => false,
                }) || call.arguments.args.first().and_then(int_literal) == Some(1),
                ("array" | "asarray" | "constant" | "convert_to_tensor" | "vstack", Some(first)) => {
                    is_single_item(context, at, first, hops)
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// `i : i + 1`
fn is_one_wide(slice: &ast::ExprSlice) -> bool {
    let (Some(lower), Some(upper)) = (slice.lower.as_deref(), slice.upper.as_deref()) else { return false };
    matches!(upper, Expr::BinOp(it) if it.op == ast::Operator::Add
        && int_literal(&it.right) == Some(1)
        && crate::syntax::is_same_place(&it.left, lower))
}

fn call_model<'a>(context: &Context<'a>, call: &Call<'a>, object: &Expr, input: &'a Expr) -> Option<Fix> {
    let arguments = &call.expr.arguments;
    let is_simple = matches!(&*arguments.args, [only] if !only.is_starred_expr())
        && arguments.keywords.iter().all(|it| it.arg.as_ref().is_some_and(|it| it.as_str() == "verbose"));
    // Parentheses around the model or its input, and comments, are better left alone.
    let gap = context.text(TextRange::new(object.end(), input.start()));
    let is_plain = gap.chars().filter(|it| !it.is_whitespace()).eq(".predict(".chars());
    let rest = context.text(TextRange::new(input.end(), call.expr.end()));
    if !is_simple || !is_plain || rest.contains('#') || input.is_generator_expr() {
        return None;
    }
    let range = TextRange::new(object.end(), call.expr.end());
    let text = format!("({}, training=False).numpy()", context.text(input));
    Some(Fix::new(Applicability::Unsafe, "call the model itself", vec![Edit::replace(range, text)]))
}
