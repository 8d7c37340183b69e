//! Lets Lightning gather all predictions and throws them away.
//!
//! ## Why it matters
//! `trainer.predict` returns what `predict_step` returned for every batch of the data, in one list, which it has to keep until the
//! end. If nobody uses the list, that memory buys nothing.
//!
//! ## Example
//! ```python
//! import lightning as L
//!
//! trainer = L.Trainer(callbacks=[writer])
//! trainer.predict(model, loader)
//! ```
//! Use instead:
//! ```python
//! import lightning as L
//!
//! trainer = L.Trainer(callbacks=[writer])
//! trainer.predict(model, loader, return_predictions=False)
//! ```
//! A `BasePredictionWriter` with `write_interval="batch"` saves them as they come.
//!
//! ## When it is silent
//! The result is used, `return_predictions` is given, the trainer is not known to be Lightning's, or it is a test.
//!
//! ## Fix
//! Unsafe: adds `return_predictions=False`. Callbacks that read the predictions of the whole run from the trainer's loop, which is
//! rare, find none.
//!
//! ## References
//! - Lightning-AI/pytorch-lightning#15656, Lightning-AI/pytorch-lightning#19398, NKI-AI/ahcore#19

use super::lightning;
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::Callee,
    fix::{Applicability, Fix},
    flow::value::{Class, Value},
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK708",
    name: "predict-returns-everything",
    frameworks: &[Framework::Lightning],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for call in context.calls_named("predict") {
        let Callee::Method { value: Value::Object(Class::External(path)), .. } = &call.callee else { continue };
        let is_given = call.argument("return_predictions", 3).is_some() || call.has_unpacking();
        if !lightning::is_of_lightning(path, "Trainer") || is_given || !call.is_statement() {
            continue;
        }
        let fix = context
            .add_keyword(call.expr, "return_predictions=False")
            .map(|it| Fix::new(Applicability::Unsafe, "add `return_predictions=False`", vec![it]));
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                call.expr,
                "the predictions for all batches are kept until the end, and then nobody uses them",
            )
            .advise("pass `return_predictions=False`")
            .fixed_by(fix),
        );
    }
}
