//! Lets an Optuna study keep models, or never collects what its trials leave behind.
//!
//! ## Why it matters
//! User attributes live as long as the study: a model in one stays on the GPU for every trial. And what a trial makes is often
//! garbage in cycles (models with hooks, trainers with callbacks), which Python collects by the number of objects, not by the
//! memory they hold: after some trials the GPU is full of models that nobody can reach.
//!
//! ## Example
//! ```python
//! import optuna
//! import torch
//!
//! study = optuna.create_study()
//! study.optimize(objective, n_trials=100)
//! ```
//! Use instead:
//! ```python
//! import optuna
//! import torch
//!
//! study = optuna.create_study()
//! study.optimize(objective, n_trials=100, gc_after_trial=True)
//! ```
//!
//! ## When it is silent
//! The file imports no library that uses a GPU; `gc_after_trial` is given, or something in the file calls `gc.collect()`; what
//! goes into an attribute is not known to be a model by its class or its name.
//!
//! ## Fix
//! Adds `gc_after_trial=True`: unsafe, because a collection after each trial takes time.
//!
//! ## References
//! - [Optuna: How do I avoid running out of memory?](https://optuna.readthedocs.io/en/stable/faq.html)
//! - optuna/optuna#1385, optuna/optuna#1307, sktime/pytorch-forecasting#1161

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Fix},
    rule::{Framework, Rule},
    syntax::ast::Expr,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK508",
    name: "optuna-keeps-models",
    frameworks: &[Framework::Any],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() || !context.imports("optuna") {
        return;
    }
    for call in context.calls_named("set_user_attr") {
        let Some(model) = call.argument("value", 1).filter(|_| call.method().is_some()) else { continue };
        let value = call.value_of(model);
        let is_called_so = match model {
            Expr::Name(it) => matches!(it.id.as_str(), "model" | "net" | "trainer"),
            Expr::Attribute(it) => matches!(it.attr.as_str(), "model" | "trainer"),
            _ => false,
        };
        if context.is_module(value) || value.is_unknown() && is_called_so {
            found.push(
                Diagnostic::new(
                    &RULE,
                    Severity::Warning,
                    call.expr,
                    format!("the study keeps `{}` of every trial", context.text(model)),
                )
                .advise("save the model to a file and keep its path"),
            );
        }
    }
    let uses_gpu = ["torch", "tensorflow", "keras", "lightning", "pytorch_lightning", "transformers"]
        .iter()
        .any(|it| context.imports(it));
    let collects = context.calls_named("collect").any(|it| it.is_to(&["gc.collect"]));
    if !uses_gpu || collects {
        return;
    }
    for call in context.calls_named("optimize") {
        let Some((study, ..)) = call.method() else { continue };
        let is_study = context.calls_to(&["optuna.create_study", "optuna.load_study"]).any(|made| {
            made.at.function == call.at.function
                && made.name_of_result().is_some_and(|name| matches!(study, Expr::Name(it) if it.id == name.id))
        });
        if !is_study || call.keyword("gc_after_trial").is_some() || call.has_unpacking() {
            continue;
        }
        let fix = context.add_keyword(call.expr, "gc_after_trial=True").map(|edit| {
            Fix::new(Applicability::Unsafe, "collect garbage after each trial", vec![edit])
        });
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Info,
                call.expr,
                "models of earlier trials that are garbage in cycles stay on the GPU until Python collects them",
            )
            .advise("pass `gc_after_trial=True`")
            .fixed_by(fix),
        );
    }
}
