//! Loads an ONNX Runtime session anew for each call, request or batch.
//!
//! ## Why it matters
//! A session owns the weights of its model, a memory arena on each device and its threads. A new one for each call loads all of that
//! again; until the old one is collected both are in memory, and services under load hold many at once.
//!
//! ## Example
//! ```python
//! import onnxruntime
//!
//! for batch in loader:
//!     session = onnxruntime.InferenceSession("model.onnx")
//!     outputs = session.run(None, {"x": batch})
//! ```
//! Use instead:
//! ```python
//! import onnxruntime
//!
//! session = onnxruntime.InferenceSession("model.onnx")
//! for batch in loader:
//!     outputs = session.run(None, {"x": batch})
//! ```
//!
//! ## When it is silent
//! The session is made under an `if` (as caches do), in `__init__`, or in a function that returns or stores it; the loop goes over
//! model files; the file is a test.
//!
//! ## Fix
//! Moves the session in front of the loop if the path is written out and nothing else changes from round to round: unsafe.
//!
//! ## References
//! - microsoft/onnxruntime#18749, #11362, #26831, #17142

use super::shapes::SESSION;
use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::{Call, Root},
    fix::{Applicability, Fix},
    names::{Definition, FunctionId, Usage},
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{Expr, Stmt},
        mentions, text_literal,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK901",
    name: "ort-session-per-call",
    frameworks: &[Framework::OnnxRuntime],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for call in context.calls_to(SESSION).filter(|it| it.at.branch.is_none() && !it.has_unpacking()) {
        let Some(path) = call.argument("path_or_bytes", 0) else { continue };
        if !is_for_one_use(context, call) || context.varies_with(&call.at, path) {
            continue;
        }
        let diagnostic =
            Diagnostic::new(&RULE, Severity::Warning, call.expr, "the model is loaded again each time, with weights and a memory arena of its own")
                .advise("make the session once and keep it");
        match context.repetition_at(&call.at) {
            Some(Repetition::Data(id)) => {
                let node = context.names.the_loop(id).node;
                let is_literal = text_literal(path).is_some();
                let fix = context.hoist(call.at.statement, id).filter(|_| is_literal).map(|edits| {
                    Fix::new(Applicability::Unsafe, "make the session once, before the loop", edits)
                });
                found.push(
                    diagnostic
                        .because_of(node.iterable().map_or(node.range(), Ranged::range), "a new session in every round of this loop")
                        .fixed_by(fix),
                );
            }
            // Another model each time is another session.
            Some(Repetition::Called | Repetition::Framework) if !comes_from_outside(context, call.at.function, path) => {
                found.push(diagnostic.because("its function is called in a loop"));
            }
            _ if is_route(context, call.at.function) && !comes_from_outside(context, call.at.function, path) => {
                found.push(diagnostic.because("its function handles requests"));
            }
            _ => {}
        }
    }
}

/// Whether a session is used where it is made and not kept, returned or given away.
fn is_for_one_use<'a>(context: &Context<'a>, call: &Call<'a>) -> bool {
    let Stmt::Assign(assign) = call.at.statement else {
        // `InferenceSession(path).run(…)`
        return !matches!(call.at.statement, Stmt::Return(_))
            && context.facts.calls.iter().any(|it| {
                matches!(it.method(), Some((Expr::Call(object), _, "run")) if std::ptr::eq(object, call.expr))
            });
    };
    let is_whole = matches!(&*assign.value, Expr::Call(it) if std::ptr::eq(it, call.expr));
    let [Expr::Name(name)] = assign.targets.as_slice() else {
        return context.facts.calls.iter().any(|it| {
            matches!(it.method(), Some((Expr::Call(object), _, "run")) if std::ptr::eq(object, call.expr))
        });
    };
    let Some(owner) = context.names.scope_of(context.scope(call.at.function), name.id.as_str()) else {
        return false;
    };
    is_whole
        && context.names.scope(owner).function == call.at.function
        && !context.uses(Root::Name(call.at.function, name.id.as_str())).iter().any(|it| {
            matches!(it.usage, Usage::Returned | Usage::Gathered | Usage::Assigned | Usage::Argument(_) | Usage::Other)
                || it.function != call.at.function
        })
}

/// Whether the path is a parameter or made from one.
fn comes_from_outside<'a>(context: &Context<'a>, function: FunctionId, path: &'a Expr) -> bool {
    let scope = context.scope(function);
    mentions(context.meaning(function, path), &|it| match it {
        Expr::Name(name) => context.names.name(scope, name.id.as_str()).is_some_and(|it| {
            it.definitions.iter().any(|it| matches!(it, Definition::Parameter(it) if it.name.as_str() != "self"))
        }),
        _ => false,
    })
}

/// Whether a function answers requests: `@app.post("/predict")`.
fn is_route(context: &Context<'_>, function: FunctionId) -> bool {
    context.names.function(function).node.decorators().iter().any(|it| match &it.expression {
        Expr::Call(call) => matches!(
            &*call.func,
            Expr::Attribute(it) if matches!(it.attr.as_str(), "route" | "get" | "post" | "put" | "websocket")
                && it.value.is_name_expr()
        ),
        _ => false,
    })
}
