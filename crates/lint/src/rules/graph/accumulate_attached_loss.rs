//! Adds a loss to a running total without detaching it.
//!
//! ## Why it matters
//! x

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    fix::Applicability,
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK101",
    name: "accumulate-attached-loss",
    frameworks: &[Framework::Torch],
    severity: Severity::Error,
    default: true,
    fix: Some(Applicability::Safe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let _ = (context.source.text(), found);
}
