//! Turns autograd's anomaly detection on for the whole run.
//!
//! ## Why it matters
//! Anomaly detection keeps the stack trace of every operation that is recorded, as long as the graph lives, and looks for NaN
//! after every operation of a backward pass. That is memory of the host and time in every step; some
//! versions of PyTorch kept more and more of it.
//!
//! ## Example
//! ```python
//! import torch
//!
//! torch.autograd.set_detect_anomaly(True)
//!
//! for batch in loader:
//!     train_step(batch)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! if args.debug:
//!     torch.autograd.set_detect_anomaly(True)
//!
//! for batch in loader:
//!     train_step(batch)
//! ```
//! `with torch.autograd.detect_anomaly():` turns it on for a part of the program.
//!
//! ## When it is silent
//! Under an `if`, in a `with`, in tests and in functions named for debugging; where the argument is a variable; where the file
//! turns it off again.
//!
//! ## Fix
//! Shows the statement (or the argument of a Lightning `Trainer`) taken away: somebody may be looking for a NaN right now.
//!
//! ## References
//! - [Anomaly detection](https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection)
//! - pytorch/pytorch#26408, #51349, JasonMa2016/GoFAR#2

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::Call,
    fix::{Applicability, Fix},
    rule::{Framework, Rule},
    syntax::{ast::Expr, bool_literal},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK125",
    name: "anomaly-mode-left-on",
    frameworks: &[Framework::Torch, Framework::Lightning],
    severity: Severity::Info,
    default: true,
    fix: Some(Applicability::Display),
    check,
};

const SWITCH: &[&str] =
    &["torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly"];
const TRAINER: &[&str] = &["lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer"];

const MESSAGE: &str = "anomaly detection keeps a stack trace on the host for every recorded operation, for the whole run";

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    let is = |it: Option<&Expr>, value| it.and_then(bool_literal) == Some(value);
    let mode = |call: &Call<'_>, value| is(call.argument("mode", 0), value);
    let is_turned_off = context.calls_to(SWITCH).any(|it| mode(it, false));
    for call in context.calls_to(SWITCH) {
        if mode(call, true) && call.is_statement() && is_for_good(context, call) && !is_turned_off {
            let body = context.names.function(call.at.function).node.body();
            let edit = Context::block_of(call.at.statement, body)
                .and_then(|block| context.delete_statement(call.at.statement, block));
            let fix = edit.map(|it| Fix::new(Applicability::Display, "take it away", vec![it]));
            found.push(
                Diagnostic::new(&RULE, Severity::Info, call.expr, MESSAGE)
                    .because("nothing in this file turns it off again")
                    .advise("turn it on only while you look for a NaN")
                    .fixed_by(fix),
            );
        }
    }
    for call in context.calls_to(TRAINER) {
        if is(call.keyword("detect_anomaly").map(|it| &it.value), true) && is_for_good(context, call) {
            let edit = context.delete_keyword(call.expr, "detect_anomaly");
            let fix = edit.map(|it| Fix::new(Applicability::Display, "take `detect_anomaly=True` away", vec![it]));
            found.push(
                Diagnostic::new(&RULE, Severity::Info, call.expr, MESSAGE)
                    .because("`detect_anomaly=True` holds for all of the training")
                    .advise("turn it on only while you look for a NaN")
                    .fixed_by(fix),
            );
        }
    }
}

/// Whether nothing around says that it is for a while only.
fn is_for_good(context: &Context<'_>, call: &Call<'_>) -> bool {
    let is_for_debugging = context.names.functions_from(call.at.function).any(|it| {
        let name = context.names.function(it).name.to_ascii_lowercase();
        ["debug", "test", "anomaly"].iter().any(|it| name.contains(it))
    });
    call.at.branch.is_none() && !is_for_debugging
}
