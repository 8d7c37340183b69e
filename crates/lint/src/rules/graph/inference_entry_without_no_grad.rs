//! Serves requests with a network while autograd records.
//!
//! ## Why it matters
//! Each request keeps all activations of its forward pass until its results go: the peak of a request is that of a training step
//! without its backward pass (measured: 4 times the output for three layers), and it counts once for every request that
//! runs at the same time.
//!
//! ## Example
//! ```python
//! import torch
//! from fastapi import FastAPI
//!
//! app = FastAPI()
//! model = torch.nn.Linear(10, 2).eval()
//!
//!
//! @app.post("/predict")
//! def predict(values: list[float]):
//!     return model(torch.tensor(values)).tolist()
//! ```
//! Use instead:
//! ```python
//! import torch
//! from fastapi import FastAPI
//!
//! app = FastAPI()
//! model = torch.nn.Linear(10, 2).eval()
//!
//!
//! @app.post("/predict")
//! @torch.no_grad()
//! def predict(values: list[float]):
//!     return model(torch.tensor(values)).tolist()
//! ```
//! A decorator does not help an `async def`, whose body runs after the decorator has ended: write `with torch.no_grad():` in it.
//!
//! ## When it is silent
//! What is called is not known to be a network (pipelines and `generate` turn recording off themselves); recording is off there;
//! the function works with gradients.
//!
//! ## Fix
//! Puts `@torch.no_grad()` below the decorator of the route. Unsafe: results can no longer be differentiated.
//!
//! ## References
//! - pytorch/serve#501, maum-ai/voicefilter#6, Improbable-AI/walk-these-ways#10

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::{Call, Callee, Grad},
    fix::{Applicability, Fix},
    flow::value::Value,
    names::{Definition, Function, FunctionId},
    rule::{Framework, Rule},
    syntax::ast::Expr,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK116",
    name: "inference-entry-without-no-grad",
    frameworks: &[Framework::Torch, Framework::Serving],
    severity: Severity::Info,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

const APPS: &[&str] = &[
    "fastapi.FastAPI",
    "fastapi.APIRouter",
    "fastapi.routing.APIRouter",
    "flask.Flask",
    "flask.Blueprint",
    "sanic.Sanic",
    "quart.Quart",
];
const ROUTES: &[&str] = &["get", "post", "put", "route", "api_route", "websocket"];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    let mut entries: Vec<FunctionId> = (1..context.names.functions.len() as u32)
        .map(FunctionId)
        .filter(|it| is_route(context, *it) || is_handler(context, *it))
        .collect();
    for call in context.calls_to(&["gradio.Interface", "gradio.ChatInterface"]) {
        if let Some(Value::Function(file, id)) = call.argument("fn", 0).map(|it| call.value_of(it))
            && *file == context.file
        {
            entries.push(*id);
        }
    }
    entries.sort_unstable();
    entries.dedup();
    for entry in entries {
        if let Some(call) = network_run_by(context, entry) {
            let (name, network) = (context.names.function(entry).name, context.text(&*call.expr.func));
            let edit = context.decorate_with_no_grad(entry);
            let fix = edit.map(|it| Fix::new(Applicability::Unsafe, "turn recording off for the request", vec![it]));
            found.push(
                Diagnostic::new(
                    &RULE,
                    Severity::Info,
                    call.expr,
                    format!("`{network}` records for a backward pass that never comes, so each request keeps its activations while it runs"),
                )
                .because(format!("`{name}` serves requests, and nothing turns recording off"))
                .advise("run the network under `torch.no_grad()` or `torch.inference_mode()`")
                .fixed_by(fix),
            );
        }
    }
}

/// The call by which an entry, or a function of the file that it calls, runs a network while autograd records.
fn network_run_by<'a>(context: &Context<'a>, entry: FunctionId) -> Option<&'a Call<'a>> {
    let own = || context.facts.calls.iter().filter(move |it| it.at.function == entry && records(it));
    let helpers = own().filter_map(|it| match it.callee {
        Callee::Function(file, id) if file == context.file && id != entry => Some(id),
        _ => None,
    });
    let all: Vec<FunctionId> = std::iter::once(entry).chain(helpers).collect();
    if all.iter().any(|it| context.wants_gradients(*it, None)) {
        return None;
    }
    let calls = context.facts.calls.iter();
    calls.filter(|it| all.contains(&it.at.function) && records(it)).find(|it| context.runs_network(it))
}

fn records(call: &Call<'_>) -> bool {
    matches!(call.at.grad, Grad::AsCaller | Grad::On)
}

/// Whether a decorator makes a function the handler of a route of a web application of this file.
fn is_route(context: &Context<'_>, id: FunctionId) -> bool {
    let function: &Function<'_> = context.names.function(id);
    let around = function.parent.unwrap_or(FunctionId::MODULE);
    function.node.decorators().iter().any(|it| {
        let Expr::Call(call) = &it.expression else { return false };
        let Expr::Attribute(route) = &*call.func else { return false };
        let Expr::Name(app) = &*route.value else { return false };
        let definitions = context.names.name(context.scope(around), app.id.as_str());
        let is_app = definitions.is_some_and(|it| {
            it.definitions.iter().any(|it| match it {
                Definition::Value(Expr::Call(made), _) => context
                    .path(FunctionId::MODULE, &made.func)
                    .is_some_and(|path| APPS.iter().any(|it| path.is(it))),
                _ => false,
            })
        });
        is_app && ROUTES.contains(&route.attr.as_str())
    })
}

/// Whether a method is one that `TorchServe` or Cog calls for each request.
fn is_handler(context: &Context<'_>, id: FunctionId) -> bool {
    let function = context.names.function(id);
    let Some(class) = function.class else { return false };
    let bases = context.names.external_bases(class);
    bases.iter().any(|it| match it.first() {
        "ts" => it.last() == "BaseHandler" && matches!(function.name, "inference" | "handle"),
        "cog" => it.last() == "BasePredictor" && function.name == "predict",
        _ => false,
    })
}
