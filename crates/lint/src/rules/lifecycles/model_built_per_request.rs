//! Loads a model each time that a request or task comes in.
//!
//! ## Why it matters
//! Requests that come at the same time each have a model of their own on the GPU, and one that has been answered keeps its model
//! until the collector has found it, since models often are garbage in cycles. Memory follows the traffic, not the model, and
//! every answer waits for the weights to be read.
//!
//! ## Example
//! ```python
//! from fastapi import FastAPI
//! from transformers import pipeline
//!
//! app = FastAPI()
//!
//! @app.post("/classify")
//! def classify(text: str):
//!     classifier = pipeline("text-classification", device=0)
//!     return classifier(text)
//! ```
//! Use instead:
//! ```python
//! from fastapi import FastAPI
//! from transformers import pipeline
//!
//! app = FastAPI()
//! classifier = pipeline("text-classification", device=0)
//!
//! @app.post("/classify")
//! def classify(text: str):
//!     return classifier(text)
//! ```
//!
//! ## When it is silent
//! A condition guards the loading (`if model is None`); the model is put into a global or an attribute; a function that loads has
//! a decorator, which may cache; tokenizers, configurations and schedulers, which take no device memory.
//!
//! ## Fix
//! Only advice: where the server starts is not to be seen.
//!
//! ## References
//! - [FastAPI: lifespan events, whose example is a model](https://fastapi.tiangolo.com/advanced/events/)
//! - gradio-app/gradio#6971, fastapi/fastapi#3174, huggingface/diffusers#867

use super::model_loads::{model_loads, plain_calls_of};
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    flow::value::Value,
    names::FunctionId,
    rule::{Framework, Rule},
    syntax::{ast::Expr, text_literal},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK511",
    name: "model-built-per-request",
    frameworks: &[Framework::Serving],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for load in model_loads(context) {
        let function = load.at.function;
        let own = context.names.function(function);
        let is_cached = !own.node.decorators().is_empty();
        let (handler, through) = if is_handler(context, function) {
            (function, None)
        } else if is_cached {
            continue;
        } else {
            let Some(call) = plain_calls_of(context, function).find(|it| is_handler(context, it.at.function))
            else {
                continue;
            };
            (call.at.function, Some(call))
        };
        let name = context.names.function(handler).name;
        let mut diagnostic = Diagnostic::new(
            &RULE,
            Severity::Warning,
            load.expr,
            format!("every call of `{name}` loads a model of its own"),
        );
        if let Some(call) = through {
            diagnostic = diagnostic.because_of(call.expr, format!("`{name}` calls this for each request"));
        }
        found.push(diagnostic.advise("load it once, when the server starts"));
    }
}

/// Whether a function answers requests: a route, a task, or what an interface calls.
fn is_handler(context: &Context<'_>, function: FunctionId) -> bool {
    if function == FunctionId::MODULE {
        return false;
    }
    let own = context.names.function(function);
    let around = own.parent.unwrap_or(FunctionId::MODULE);
    own.node.decorators().iter().any(|it| is_route(context, around, &it.expression))
        || is_given_to_interface(context, function)
}

fn is_route<'a>(context: &Context<'a>, around: FunctionId, decorator: &'a Expr) -> bool {
    let callee = match decorator {
        Expr::Call(call) => &*call.func,
        other => other,
    };
    if context.path(around, callee).is_some_and(|it| it.is("celery.shared_task")) {
        return true;
    }
    let Expr::Attribute(method) = callee else { return false };
    match (method.attr.as_str(), decorator) {
        ("task", _) => context.imports("celery"),
        (
            "get" | "post" | "put" | "patch" | "delete" | "route" | "websocket" | "api_route",
            Expr::Call(call),
        ) => {
            let has_path =
                call.arguments.args.first().and_then(text_literal).is_some_and(|it| it.starts_with('/'));
            has_path
                && ["fastapi", "flask", "starlette", "quart", "sanic"].iter().any(|it| context.imports(it))
        }
        _ => false,
    }
}

/// `gr.Interface(fn=…)`, `button.click(…)`
fn is_given_to_interface(context: &Context<'_>, function: FunctionId) -> bool {
    if !context.imports("gradio") {
        return false;
    }
    let own = Value::Function(context.file, function);
    let interfaces = context.calls_to(&["gradio.Interface", "gradio.ChatInterface"]);
    let events = ["click", "submit", "change"].into_iter().flat_map(|it| context.calls_named(it));
    interfaces
        .chain(events.filter(|it| it.method().is_some()))
        .any(|it| it.argument("fn", 0).is_some_and(|argument| *it.value_of(argument) == own))
}
