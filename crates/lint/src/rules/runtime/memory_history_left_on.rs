//! Records every allocation without a limit and never stops.
//!
//! ## Why it matters
//! `torch.cuda.memory._record_memory_history()` keeps an entry with its call stack for every allocation and every free, without
//! a limit unless `max_entries` is given: host memory grows for as long as the program runs, gigabytes in a training run.
//!
//! ## Example
//! ```python
//! import torch
//!
//! torch.cuda.memory._record_memory_history()
//! for batch in loader:
//!     train(batch)
//! torch.cuda.memory._dump_snapshot("snapshot.pickle")
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! torch.cuda.memory._record_memory_history(max_entries=100_000)
//! for batch in loader:
//!     train(batch)
//! torch.cuda.memory._dump_snapshot("snapshot.pickle")
//! torch.cuda.memory._record_memory_history(enabled=None)
//! ```
//!
//! ## When it is silent
//! A limit is given, recording is turned off again anywhere in the file, or the call is of the old form
//! (`_record_memory_history(True)`), which keeps one entry for each block. So it is if the same function dumps a snapshot and has
//! no loop over data: that is a short look.
//!
//! ## Fix
//! Unsafe: adds `max_entries=100_000`; older entries are then forgotten.
//!
//! ## References
//! - pytorch/pytorch#129674, pytorch/pytorch#155889, pytorch/pytorch#153571

use crate::{
    context::{Context, Rounds},
    diagnostic::{Diagnostic, Severity},
    facts::Call,
    fix::{Applicability, Fix},
    names::LoopId,
    rule::{Framework, Rule},
    syntax::{ast::Expr, bool_literal},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK612",
    name: "memory-history-left-on",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

const RECORD: &[&str] =
    &["torch.cuda.memory._record_memory_history", "torch.cuda._memory_viz._record_memory_history"];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.calls_to(RECORD).any(is_off) {
        return;
    }
    for call in context.calls_to(RECORD) {
        let is_old = call.argument("enabled", 0).is_some_and(|it| bool_literal(it).is_some());
        let is_limited = call.keyword("max_entries").is_some()
            || call.keyword("trace_alloc_max_entries").is_some()
            || call.expr.arguments.args.len() > 3;
        if is_old || is_limited || call.has_unpacking() || is_short(context, call) {
            continue;
        }
        // What is recorded: text, or not said. Anything else may be nothing.
        if !matches!(call.argument("enabled", 0), None | Some(Expr::StringLiteral(_))) {
            continue;
        }
        let fix = context
            .add_keyword(call.expr, "max_entries=100_000")
            .map(|it| Fix::new(Applicability::Unsafe, "add `max_entries=100_000`", vec![it]));
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                call.expr,
                "every allocation is recorded in host memory, without a limit and without an end",
            )
            .because("`max_entries` is not given, and nothing in this file turns recording off again")
            .advise("give `max_entries`, and call `_record_memory_history(enabled=None)` at the end")
            .fixed_by(fix),
        );
    }
}

/// Whether the same function looks at what was recorded, without a loop over data in between.
fn is_short(context: &Context<'_>, call: &Call<'_>) -> bool {
    let function = call.at.function;
    let dumps = ["_dump_snapshot", "_snapshot"]
        .iter()
        .any(|it| context.calls_named(it).any(|it| it.at.function == function));
    let loops = context.names.loops.iter().enumerate();
    dumps
        && !loops
            .filter(|(_, it)| it.function == function)
            .any(|(index, _)| context.rounds(LoopId::at(index)) == Rounds::Data)
}

fn is_off(call: &Call<'_>) -> bool {
    call.argument("enabled", 0)
        .is_some_and(|it| matches!(it, Expr::NoneLiteral(_)) || bool_literal(it) == Some(false))
}
