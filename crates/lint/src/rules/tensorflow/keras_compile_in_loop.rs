//! Compiles the same Keras model again in every round of a loop.
//!
//! ## Why it matters
//! `compile` throws away the functions for training and testing that TensorFlow has traced, and the state of the optimizer: the next
//! `fit` traces anew and allocates that state again, while the old ones wait for the cycle collector.
//!
//! ## Example
//! ```python
//! import keras
//!
//! model = keras.Sequential([keras.layers.Dense(10)])
//! for episode in range(episodes):
//!     model.compile(optimizer="adam", loss="mse")
//!     model.fit(states, targets)
//! ```
//! Use instead:
//! ```python
//! import keras
//!
//! model = keras.Sequential([keras.layers.Dense(10)])
//! model.compile(optimizer="adam", loss="mse")
//! for episode in range(episodes):
//!     model.fit(states, targets)
//! ```
//!
//! ## When it is silent
//! The model is a new one in each round; the loop sets `trainable`, after which a model must be compiled again; the call stands under
//! an `if`.
//!
//! ## Fix
//! Only advice: a compilation sets the optimizer back, which may be meant.
//!
//! ## References
//! - keras-team/keras#9151

use super::keras;
use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    names::Usage,
    rule::{Framework, Rule},
    syntax::Ranged,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK807",
    name: "keras-compile-in-loop",
    frameworks: &[Framework::TensorFlow],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_named("compile") {
        let Some((object, value, _)) = call.method() else { continue };
        if call.at.branch.is_some() || !keras::is_model(context, value) {
            continue;
        }
        let Some(Repetition::Data(id)) = context.repetition_at(&call.at) else { continue };
        let node = context.names.the_loop(id).node;
        let sets_trainable = context.names.attributes.get("trainable").is_some_and(|uses| {
            uses.iter().any(|it| {
                matches!(it.usage, Usage::Stored) && node.range().contains_range(it.expr.range())
            })
        });
        if sets_trainable || keras::is_made_in(context, call.at.function, object, id) {
            continue;
        }
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                call.expr,
                format!("compiles `{}` again in every round: its traced functions and optimizer state are made anew", context.text(object)),
            )
            .because_of(node.iterable().map_or(node.range(), Ranged::range), "this loop runs for each epoch, episode or batch")
            .advise("compile the model once, before the loop"),
        );
    }
}
