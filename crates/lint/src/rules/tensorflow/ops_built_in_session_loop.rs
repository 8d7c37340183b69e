//! Builds operations of a TensorFlow 1 graph in a loop that runs a session.
//!
//! ## Why it matters
//! Calls such as `tf.square(x)` or `tf.assign(v, x)` compute nothing: they add nodes to the default graph, which keeps them until
//! the program ends. In a loop the graph grows with every round, on the host and, since the session must prepare the new graph
//! again, on the device; rounds become slower and slower.
//!
//! ## Example
//! ```python
//! import tensorflow.compat.v1 as tf
//!
//! x = tf.placeholder(tf.float32, [None])
//! with tf.Session() as sess:
//!     for step in range(steps):
//!         print(sess.run(tf.square(x), {x: [step]}))
//! ```
//! Use instead:
//! ```python
//! import tensorflow.compat.v1 as tf
//!
//! x = tf.placeholder(tf.float32, [None])
//! squared = tf.square(x)
//! with tf.Session() as sess:
//!     for step in range(steps):
//!         print(sess.run(squared, {x: [step]}))
//! ```
//! `tf.get_default_graph().finalize()` before the loop turns such growth into an error.
//!
//! ## When it is silent
//! Each round has a graph of its own, or the loop has few rounds. In tests it is only an info.
//!
//! ## Fix
//! Moving the operation in front of the loop is shown where nothing in it changes from round to round.
//!
//! ## References
//! - tensorflow/tensorflow#7127, #9646, #10408, #19049; rakutentech/stAdv#5

use super::session::{builds_operations, has_graph_of_its_own, runs_session};
use crate::{
    context::{Context, Repetition, Rounds},
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Fix},
    rule::{Framework, Rule},
    syntax::Ranged,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK801",
    name: "ops-built-in-session-loop",
    frameworks: &[Framework::TensorFlow],
    severity: Severity::Error,
    default: true,
    fix: Some(Applicability::Display),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let runs: Vec<_> = context.calls_named("run").filter(|it| runs_session(it)).collect();
    if runs.is_empty() {
        return;
    }
    for call in context.facts.calls.iter().filter(|it| builds_operations(it)) {
        // One operation a round is already bad, so that loops of unknown length count, too.
        let Some(Repetition::Data(id) | Repetition::Loop(id)) = context.repetition_at(&call.at) else {
            continue;
        };
        let node = context.names.the_loop(id).node;
        // An operation within another is reported with it.
        let is_part = context.facts.calls.iter().any(|it| {
            it.expr.range() != call.expr.range()
                && it.expr.range().contains_range(call.expr.range())
                && builds_operations(it)
        });
        let runs_in_loop = runs.iter().any(|it| node.range().contains_range(it.expr.range()));
        if is_part || !runs_in_loop || has_graph_of_its_own(context, id) {
            continue;
        }
        let severity = match context.rounds(id) {
            _ if context.is_test() => Severity::Info,
            Rounds::Data => Severity::Error,
            _ => Severity::Warning,
        };
        let fix = context
            .hoist(call.at.statement, id)
            .map(|edits| Fix::new(Applicability::Display, "move the operation in front of the loop", edits));
        found.push(
            Diagnostic::new(
                &RULE,
                severity,
                call.expr,
                format!("`{}` adds operations to the graph in every round, and none is ever removed", context.text(&*call.expr.func)),
            )
            .because_of(node.iterable().map_or(node.range(), Ranged::range), "this loop runs the session again and again")
            .advise("build the operation once before the loop, and feed what changes through a placeholder")
            .fixed_by(fix),
        );
    }
}
