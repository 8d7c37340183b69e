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
//! Nothing shows that tensors are at work in the `try`, or, for a variable that holds the exception of its own function, in the function;
//! that variable is deleted, set to something else, returned or raised; only the last exception is kept; the handler raises it again; the list is emptied.
//!
//! ## Fix
//! `error.with_traceback(None)` keeps the exception without its frames; unsafe, because the traceback is lost.
//!
//! ## References
//! - pytorch/pytorch#10348, pytorch/pytorch#27600, jax-ml/jax#12877

use super::to_host::because_repeated;
use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::{Call, Callee, How, Position},
    fix::{Applicability, Edit, Fix},
    names::{Definition, FunctionId, Usage},
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
    found.extend(context.facts.tries.iter().filter_map(|(node, at)| cycle_with_frame(context, node, at)));
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
                && handles_tensors(context, it)
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

/// Whether a call has to do with tensors, or runs a function of this file that has.
fn handles_tensors<'a>(context: &Context<'a>, call: &Call<'a>) -> bool {
    let does = |it: &Call<'a>| {
        context.is_forward(it) || it.result.tensor_within().is_some() || it.last_name() == "backward"
    };
    does(call)
        || match &call.callee {
            Callee::Function(file, id) if *file == context.file => {
                context.facts.calls.iter().any(|it| it.at.function == *id && does(it))
            }
            _ => false,
        }
}

/// `error = e` in a handler: the frame holds the exception, the exception its traceback, the traceback the frame.
fn cycle_with_frame<'a>(
    context: &Context<'a>,
    node: &'a ast::StmtTry,
    at: &Position<'a>,
) -> Option<Diagnostic> {
    let name_of = |it: &'a Expr| match it {
        Expr::Name(it) => Some(it.id.as_str()),
        _ => None,
    };
    let assignment = node.handlers.iter().find_map(|it| {
        let ast::ExceptHandler::ExceptHandler(handler) = it;
        let error = handler.name.as_ref()?.as_str();
        context.facts.assignments.iter().find(|it| {
            handler.range.contains_range(it.expr.range())
                && it.at.function == at.function
                && name_of(it.expr) == Some(error)
                && name_of(it.target).is_some()
        })
    })?;
    let name = name_of(assignment.target)?;
    let function = context.names.function(at.function);
    let own = context.names.scope(function.scope).names.get(name)?;
    let is_given_up = own.definitions.iter().any(|it| match it {
        Definition::Value(value, _) => value.start() > assignment.expr.end(),
        _ => true,
    }) || own.uses.iter().any(|it| match it.usage {
        // Who is given the exception has it, and may do with it what is right.
        Usage::Deleted | Usage::Returned | Usage::Argument(_) | Usage::Other => true,
        _ => false,
    });
    let repetition = context.repetition_of_function(at.function)?;
    let works_on_tensors =
        context.facts.calls.iter().any(|it| it.at.function == at.function && handles_tensors(context, it));
    if at.function == FunctionId::MODULE || is_given_up || !works_on_tensors {
        return None;
    }
    let why = match repetition {
        Repetition::Framework => format!("`{}` runs at every step", function.name),
        _ => format!("`{}` is called again and again", function.name),
    };
    let message = format!(
        "`{name}` holds the traceback, which holds this very call: its tensors stay until the garbage collector runs"
    );
    let range = assignment.target.range().cover(assignment.expr.range());
    Some(
        Diagnostic::new(&RULE, Severity::Warning, range, message)
            .because(why)
            .advise(format!("keep `repr()` of it, or end the function with `del {name}` in a `finally`")),
    )
}
