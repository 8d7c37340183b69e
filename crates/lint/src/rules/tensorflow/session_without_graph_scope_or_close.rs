//! Opens a TensorFlow 1 session again and again and never closes it.
//!
//! ## Why it matters
//! A session owns its variables and the buffers of its devices until it is closed, and what is built for it stays in the default
//! graph, which lives as long as the program.
//!
//! ## Example
//! ```python
//! import tensorflow.compat.v1 as tf
//!
//!
//! def predict(path):
//!     sess = tf.Session()
//!     saver = tf.train.import_meta_graph(path)
//!     return sess.run("output:0")
//!
//!
//! for path in requests:
//!     predict(path)
//! ```
//! Use instead:
//! ```python
//! import tensorflow.compat.v1 as tf
//!
//!
//! def predict(path):
//!     with tf.Graph().as_default(), tf.Session() as sess:
//!         saver = tf.train.import_meta_graph(path)
//!         return sess.run("output:0")
//!
//!
//! for path in requests:
//!     predict(path)
//! ```
//!
//! ## When it is silent
//! The session is closed, returned, kept for later, given a graph, or opened only once.
//!
//! ## Fix
//! Only advice: the `with` block has to take in all that uses the session.
//!
//! ## References
//! - tensorflow/tensorflow#700, apple/turicreate#2728

use super::session::SESSIONS;
use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::Root,
    names::{Usage, method_name},
    rule::{Framework, Rule},
    syntax::ast::{Expr, Stmt},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK802",
    name: "session-without-graph-scope-or-close",
    frameworks: &[Framework::TensorFlow],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_to(SESSIONS) {
        let Some(Repetition::Data(_) | Repetition::Loop(_) | Repetition::Called) =
            context.repetition_at(&call.at)
        else {
            continue;
        };
        let Stmt::Assign(assign) = call.at.statement else { continue };
        let [Expr::Name(name)] = assign.targets.as_slice() else { continue };
        let has_graph = call.argument("graph", 1).is_some() || call.has_unpacking();
        if has_graph || call.at.branch.is_some() || !matches!(&*assign.value, Expr::Call(it) if std::ptr::eq(it, call.expr)) {
            continue;
        }
        let Some(owner) = context.names.scope_of(context.scope(call.at.function), name.id.as_str()) else {
            continue;
        };
        let owner = context.names.scope(owner).function;
        // Of a global session others may take care.
        let is_let_go = owner != call.at.function
            || context.uses(Root::Name(owner, name.id.as_str())).iter().any(|it| match it.usage {
                Usage::Method(call) => matches!(method_name(call), "close" | "__exit__"),
                Usage::Returned | Usage::Gathered | Usage::Assigned | Usage::Argument(_) | Usage::Other => true,
                _ => false,
            });
        if !is_let_go {
            found.push(
                Diagnostic::new(&RULE, Severity::Warning, call.expr, format!("the session `{}` is opened again and again and never closed", name.id))
                    .because("an open session keeps its variables and buffers on the device")
                    .advise("open it with `with tf.Graph().as_default(), tf.Session() as …:`, or once for all calls"),
            );
        }
    }
}
