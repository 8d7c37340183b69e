//! Makes a new `tf.function` in every round of a loop.
//!
//! ## Why it matters
//! The traced graphs belong to the object that `tf.function` returns. A new one has none yet, so that every round traces and compiles
//! again; old graphs stay until Python's cycle collector finds them, since a function and its graphs refer to each other.
//!
//! ## Example
//! ```python
//! import tensorflow as tf
//!
//! for batch in dataset:
//!     step = tf.function(lambda x: tf.reduce_sum(x * x))
//!     step(batch)
//! ```
//! Use instead:
//! ```python
//! import tensorflow as tf
//!
//! step = tf.function(lambda x: tf.reduce_sum(x * x))
//! for batch in dataset:
//!     step(batch)
//! ```
//!
//! ## When it is silent
//! The loop does not go over data or steps: one function for each of several models is needed. The function is made only sometimes,
//! under an `if`.
//!
//! ## Fix
//! Moves the assignment in front of the loop where nothing in it changes from round to round: unsafe.
//!
//! ## References
//! - [TensorFlow guide: function](https://www.tensorflow.org/guide/function), secondmind-labs/trieste#722, tensorflow/tensorflow#31175

use super::FUNCTION;
use crate::{
    context::{Context, Repetition, Rounds},
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Fix},
    names::FunctionId,
    rule::{Framework, Rule},
    syntax::ast::Expr,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK804",
    name: "tf-function-created-in-loop",
    frameworks: &[Framework::TensorFlow],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

const MESSAGE: &str = "a new compiled function in every round, which traces its graph again";
const ADVICE: &str = "make it once, before the loop";

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_to(FUNCTION).filter(|it| it.at.branch.is_none()) {
        // `@tf.function(…)` is reported with its function.
        if call.expr.arguments.args.is_empty() {
            continue;
        }
        let is_called_at_once = context
            .facts
            .calls
            .iter()
            .any(|it| matches!(&*it.expr.func, Expr::Call(inner) if std::ptr::eq(inner, call.expr)));
        let (place, id) = match context.repetition_at(&call.at) {
            Some(Repetition::Data(id)) => (context.names.the_loop(id).node.range(), Some(id)),
            Some(Repetition::Loop(id)) if is_called_at_once => {
                (context.names.the_loop(id).node.range(), Some(id))
            }
            _ => continue,
        };
        let fix = id
            .and_then(|id| context.hoist(call.at.statement, id))
            .map(|edits| Fix::new(Applicability::Unsafe, "make the function once, before the loop", edits));
        found.push(
            Diagnostic::new(&RULE, Severity::Warning, call.expr, MESSAGE)
                .because_of(place, "this loop runs again and again")
                .advise(ADVICE)
                .fixed_by(fix),
        );
    }
    for (index, function) in context.names.functions.iter().enumerate() {
        let id = FunctionId(index as u32);
        let data = context.names.loops_from(function.in_loop).find(|it| context.rounds(*it) == Rounds::Data);
        if let Some(data) = data
            && let Some(compiled) = context.compiling_decorator(id, FUNCTION)
        {
            found.push(
                Diagnostic::new(&RULE, Severity::Warning, compiled.place, MESSAGE)
                    .because_of(context.names.the_loop(data).node.range(), "this loop runs again and again")
                    .advise(ADVICE),
            );
        }
    }
}
