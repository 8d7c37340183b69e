//! Tries again inside the `except` that caught an out-of-memory error.
//!
//! ## Why it matters
//! While the handler runs, the exception's traceback holds every frame of the failed attempt, with all its tensors: measured
//! 67 MB inside the handler, 0 after it. The second attempt starts with the memory of the first still in use, and
//! `empty_cache()` in the handler cannot help.
//!
//! ## Example
//! ```python
//! import torch
//!
//! def predict(batch):
//!     try:
//!         return model(batch)
//!     except torch.cuda.OutOfMemoryError:
//!         torch.cuda.empty_cache()
//!         first, second = batch.chunk(2)
//!         return torch.cat([model(first), model(second)])
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! def predict(batch):
//!     try:
//!         return model(batch)
//!     except torch.cuda.OutOfMemoryError:
//!         pass
//!     torch.cuda.empty_cache()
//!     first, second = batch.chunk(2)
//!     return torch.cat([model(first), model(second)])
//! ```
//!
//! ## When it is silent
//! The handler only notes, logs, re-raises or continues; it calls other functions than the ones that failed; nothing says that the
//! error is one of memory.
//!
//! ## Fix
//! Only advice: what comes after the handler depends on what else the function does.
//!
//! ## References
//! - [PyTorch FAQ: My out of memory exception handler can't allocate memory](https://docs.pytorch.org/docs/stable/notes/faq.html)
//! - pytorch/pytorch#18853, pytorch/pytorch#27600

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::Call,
    rule::{Framework, Rule},
    syntax::{
        Ranged, TextRange,
        ast::{self, Expr, Stmt},
        mentions, statement_mentions, text_literal,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK201",
    name: "oom-retry-inside-except",
    frameworks: &[Framework::Any],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for (node, at) in &context.facts.tries {
        let tried: Vec<&str> = calls_in(context, &node.body, at.function)
            .filter(|it| !is_light(it.last_name()))
            .map(|it| context.text(&*it.expr.func))
            .collect();
        let own = context.names.function(at.function).name;
        for handler in &node.handlers {
            let ast::ExceptHandler::ExceptHandler(handler) = handler;
            if !is_about_memory(context, handler) {
                continue;
            }
            let again = calls_in(context, &handler.body, at.function).find(|it| {
                let is_itself = !own.is_empty() && it.last_name() == own;
                is_itself || tried.contains(&context.text(&*it.expr.func))
            });
            let Some(again) = again else { continue };
            if goes_on_on_the_host(handler, again) {
                continue;
            }
            let what = context.text(&*again.expr.func);
            found.push(
                Diagnostic::new(
                    &RULE,
                    Severity::Warning,
                    again.expr,
                    format!("`{what}` is tried again while the error still holds the memory of the first attempt"),
                )
                .because("the traceback of the error that is being handled holds all frames of the failed attempt")
                .advise("set a flag in the `except`, and try again after it"),
            );
        }
    }
}

fn calls_in<'c, 'a: 'c>(
    context: &'c Context<'a>,
    body: &'a [Stmt],
    function: crate::names::FunctionId,
) -> impl Iterator<Item = &'a Call<'a>> + 'c {
    let range = match (body.first(), body.last()) {
        (Some(first), Some(last)) => TextRange::new(first.start(), last.end()),
        _ => TextRange::default(),
    };
    context
        .facts
        .calls
        .iter()
        .filter(move |it| it.at.function == function && range.contains_range(it.expr.range()))
}

/// Whether the handler moves to the host before it tries again, which then needs nothing of what the error holds.
fn goes_on_on_the_host(handler: &ast::ExceptHandlerExceptHandler, again: &Call<'_>) -> bool {
    handler.body.iter().take_while(|it| it.start() < again.expr.end()).any(|it| {
        statement_mentions(it, &|it| it.start() < again.expr.end() && text_literal(it) == Some("cpu"))
    })
}

/// Whether a handler is for errors of memory: by the class, or by what it asks the message.
fn is_about_memory(context: &Context<'_>, handler: &ast::ExceptHandlerExceptHandler) -> bool {
    let by_class = handler.type_.as_deref().is_some_and(|it| {
        mentions(it, &|it| match it {
            Expr::Attribute(it) => it.attr.as_str() == "OutOfMemoryError",
            Expr::Name(it) => it.id.as_str() == "OutOfMemoryError",
            _ => false,
        })
    });
    by_class
        || handler.body.iter().any(|it| match it {
            Stmt::If(it) => {
                let is_question = |expr: &Expr| {
                    mentions(expr, &|it| {
                        text_literal(it).is_some_and(|it| it.to_ascii_lowercase().contains("out of memory"))
                    })
                };
                is_question(&it.test)
                    || it.elif_else_clauses.iter().any(|it| it.test.as_ref().is_some_and(is_question))
            }
            _ => false,
        })
        || context.text(handler).to_ascii_lowercase().contains("outofmemoryerror)")
}

/// Whether what has this name holds no memory worth speaking of.
fn is_light(name: &str) -> bool {
    matches!(
        name,
        "" | "print" | "len" | "str" | "int" | "float" | "bool" | "list" | "dict" | "tuple" | "max" | "min" | "range"
            | "isinstance" | "getattr" | "format" | "join" | "append" | "get" | "items" | "keys" | "values" | "time"
            | "info" | "warning" | "warn" | "error" | "debug" | "log" | "exception" | "empty_cache" | "collect"
            | "synchronize" | "sleep" | "lower" | "update" | "write" | "device" | "super" | "zip" | "enumerate"
            | "perf_counter" | "zero_grad" | "memory_allocated" | "is_available" | "detach" | "item" | "size"
    )
}
