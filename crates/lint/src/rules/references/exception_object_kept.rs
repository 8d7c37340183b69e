//! Keeps exceptions, whose tracebacks hold the frames of what failed.
//!
//! ## Why it matters
//! An exception holds its traceback, the traceback the frames, and the frames all their variables: the batch, the outputs,
//! the graph. A list of exceptions costs as much as the tensors of every failed step: measured 4.2 MB each; lists of `str(e)` or
//! `traceback.format_exc()` cost nothing.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! errors = []
//! for batch in loader:
//!     try:
//!         model(batch).sum().backward()
//!     except RuntimeError as error:
//!         errors.append(error)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! errors = []
//! for batch in loader:
//!     try:
//!         model(batch).sum().backward()
//!     except RuntimeError as error:
//!         errors.append(repr(error))
//! ```
//!
//! ## When it is silent
//! Nothing shows that tensors are at work in the `try`; only the last exception is kept; the handler raises it again; the list is emptied.
//!
//! ## Fix
//! `error.with_traceback(None)` keeps the exception without its frames; unsafe, because the traceback is lost.
//!
//! ## References
//! - pytorch/pytorch#10348, pytorch/pytorch#27600, jax-ml/jax#12877

use super::to_host::because_repeated;
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::How,
    fix::{Applicability, Edit, Fix},
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{self, Expr, Stmt},
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK202",
    name: "exception-object-kept",
    frameworks: &[Framework::Any],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for keep in &context.facts.keeps {
        if !matches!(keep.how, How::Append | How::SetItem) {
            continue;
        }
        let kept = match keep.kept {
            Expr::Tuple(it) => it.elts.iter().rev().find(|it| it.is_name_expr()),
            other => Some(other),
        };
        let Some(kept @ Expr::Name(name)) = kept else { continue };
        let Some(node) = context.facts.tries.iter().map(|(node, _)| *node).find(|node| {
            node.handlers.iter().any(|it| {
                let ast::ExceptHandler::ExceptHandler(it) = it;
                it.name.as_ref().is_some_and(|it| it.as_str() == name.id.as_str())
                    && it.range.contains_range(keep.range)
                    && !matches!(it.body.last(), Some(Stmt::Raise(_)))
            })
        }) else {
            continue;
        };
        let works_on_tensors = context.facts.calls.iter().any(|it| {
            node.body.iter().any(|statement| statement.range().contains_range(it.expr.range()))
                && (context.is_forward(it) || it.result.tensor_within().is_some() || it.last_name() == "backward")
        });
        let Some(repetition) = context.repetition(keep) else { continue };
        if !works_on_tensors || context.is_bounded(keep) || Context::has_constant_key(keep) {
            continue;
        }
        let (target, name) = (context.text(keep.target), name.id.as_str());
        let message = format!("`{target}` keeps `{name}`, whose traceback holds all tensors of the failed step");
        let diagnostic = Diagnostic::new(&RULE, Severity::Warning, keep.range, message);
        found.push(
            because_repeated(context, diagnostic, keep, repetition)
                .advise("keep `repr()` of it, or `traceback.format_exc()`")
                .fixed_by(Fix::new(
                    Applicability::Unsafe,
                    "append `.with_traceback(None)`, which lets go of the frames",
                    vec![Edit::insert(kept.end(), ".with_traceback(None)")],
                )),
        );
    }
}
