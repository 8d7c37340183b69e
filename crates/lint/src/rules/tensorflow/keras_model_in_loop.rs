//! Builds a new Keras model in every round of a loop and never clears Keras's own state.
//!
//! ## Why it matters
//! Keras keeps state for all models that a process has made: names, and with TensorFlow the functions that were compiled for them. The
//! model of the round before goes only when Python's cycle collector runs, so that two or more are on the device at once.
//! Searches over parameters and cross validations run out of memory after some rounds.
//!
//! ## Example
//! ```python
//! import keras
//!
//! for config in grid:
//!     model = keras.Sequential([keras.layers.Dense(config.units)])
//!     model.compile(loss="mse")
//!     model.fit(x, y)
//! ```
//! Use instead:
//! ```python
//! import keras
//!
//! for config in grid:
//!     keras.backend.clear_session()
//!     model = keras.Sequential([keras.layers.Dense(config.units)])
//!     model.compile(loss="mse")
//!     model.fit(x, y)
//! ```
//! If memory grows even so, run each round in a process of its own.
//!
//! ## When it is silent
//! `clear_session` is called in the loop or the file's function that builds the model; the models are kept together in a list; the
//! loop has few rounds; the model is not trained or used to predict in the loop.
//!
//! ## Fix
//! Inserts `clear_session()` in front of the model: unsafe, since models that were made before the loop may suffer.
//!
//! ## References
//! - [Keras: clear_session](https://keras.io/api/utils/config_utils/#clear_session-function), keras-team/keras#2102, #17458, #19471

use super::keras;
use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::{Callee, Root},
    fix::{Applicability, Edit, Fix},
    names::{Usage, method_name},
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{Expr, Stmt},
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK806",
    name: "keras-model-in-loop",
    frameworks: &[Framework::TensorFlow],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    // Whoever clears the session somewhere in a file knows what a round leaves behind.
    if context.calls_named("clear_session").next().is_some() {
        return;
    }
    for call in &context.facts.calls {
        let makes = matches!(call.callee, Callee::External(_) | Callee::Class(_) | Callee::Function(..));
        let Stmt::Assign(assign) = call.at.statement else { continue };
        let [Expr::Name(name)] = assign.targets.as_slice() else { continue };
        let is_whole = matches!(&*assign.value, Expr::Call(it) if std::ptr::eq(it, call.expr));
        if !makes || !is_whole || call.at.branch.is_some() || !keras::is_model(context, &call.result) {
            continue;
        }
        let Some(Repetition::Data(id) | Repetition::Loop(id)) = context.repetition_at(&call.at) else {
            continue;
        };
        let node = context.names.the_loop(id).node;
        let uses = context.uses(Root::Name(call.at.function, name.id.as_str()));
        let is_used = uses.iter().any(|it| {
            matches!(it.usage, Usage::Method(call) if matches!(method_name(call), "fit" | "train_on_batch" | "predict" | "evaluate" | "fit_generator"))
                && node.range().contains_range(it.expr.range())
        });
        let is_kept = uses.iter().any(|it| match it.usage {
            Usage::Gathered | Usage::Returned => true,
            Usage::Argument(call) => {
                matches!(&*call.func, Expr::Attribute(it) if matches!(it.attr.as_str(), "append" | "add" | "put"))
            }
            _ => false,
        });
        if !is_used || is_kept {
            continue;
        }
        let statement = call.at.statement;
        let fix = prefix(context, &call.expr.func)
            .filter(|_| context.is_alone_on_its_lines(statement))
            .map(|keras| {
                let indentation = context.indentation(statement);
                let text = format!("{keras}.backend.clear_session(){}{indentation}", context.end_of_line());
                let edits = vec![Edit::insert(statement.start(), text)];
                Fix::new(Applicability::Unsafe, "clear what Keras keeps of the model before", edits)
            });
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                call.expr,
                format!("Keras keeps state of every model: `{}` of the rounds before stays in memory", name.id),
            )
            .because_of(node.iterable().map_or(node.range(), Ranged::range), "a new model in every round of this loop")
            .advise("call `keras.backend.clear_session()` as each round begins, or run each round in its own process")
            .fixed_by(fix),
        );
    }
}

/// `tf.keras` in `tf.keras.models.Sequential`.
fn prefix<'a>(context: &Context<'a>, callee: &'a Expr) -> Option<&'a str> {
    let Expr::Attribute(it) = callee else { return None };
    let is_keras = match &*it.value {
        Expr::Attribute(inner) => inner.attr.as_str() == "keras" && inner.value.is_name_expr(),
        Expr::Name(_) => context
            .path(crate::names::FunctionId::MODULE, &it.value)
            .is_some_and(|it| it.is("keras") || it.is("tensorflow.keras")),
        _ => false,
    };
    if is_keras { Some(context.text(&*it.value)) } else { prefix(context, &it.value) }
}
