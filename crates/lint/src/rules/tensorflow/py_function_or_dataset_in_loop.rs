//! Makes a `py_function` or a dataset from a generator anew in every round of a loop.
//!
//! ## Why it matters
//! TensorFlow registers the Python function behind `tf.py_function`, `tf.numpy_function` and `Dataset.from_generator` in a table of the
//! process, with all that it refers to. Entries go, if at all, when the graph that uses them goes; in a loop over epochs or steps the
//! table and the graphs grow.
//!
//! ## Example
//! ```python
//! import tensorflow as tf
//!
//! for epoch in range(epochs):
//!     dataset = tf.data.Dataset.from_generator(generate, output_types=tf.float32)
//!     for batch in dataset:
//!         train(batch)
//! ```
//! Use instead:
//! ```python
//! import tensorflow as tf
//!
//! dataset = tf.data.Dataset.from_generator(generate, output_types=tf.float32)
//! for epoch in range(epochs):
//!     for batch in dataset:
//!         train(batch)
//! ```
//!
//! ## When it is silent
//! The loop does not go over epochs, steps or batches; the call is part of a function that a dataset maps, which is traced once.
//!
//! ## Fix
//! Moving the dataset in front of the loop is shown where nothing in it changes from round to round.
//!
//! ## References
//! - tensorflow/tensorflow#35084, #51839, #37653

use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Fix},
    rule::{Framework, Rule},
    syntax::Ranged,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK810",
    name: "py-function-or-dataset-in-loop",
    frameworks: &[Framework::TensorFlow],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Display),
    check,
};

const REGISTER: &[&str] = &[
    "tensorflow.py_function",
    "tensorflow.numpy_function",
    "tensorflow.py_func",
    "tensorflow.compat.v1.py_func",
    "tensorflow.data.Dataset.from_generator",
    "tensorflow.compat.v1.data.Dataset.from_generator",
];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_to(REGISTER).filter(|it| it.at.branch.is_none()) {
        let Some(Repetition::Data(id)) = context.repetition_at(&call.at) else { continue };
        let node = context.names.the_loop(id).node;
        let fix = context
            .hoist(call.at.statement, id)
            .map(|edits| Fix::new(Applicability::Display, "make it once, before the loop", edits));
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                call.expr,
                format!("`{}` registers its Python function anew in every round, and TensorFlow keeps each", context.text(&*call.expr.func)),
            )
            .because_of(node.iterable().map_or(node.range(), Ranged::range), "this loop runs for each epoch, step or batch")
            .advise("make it once before the loop; a dataset can be iterated again, or `repeat()`ed")
            .fixed_by(fix),
        );
    }
}
