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
    names::FunctionId,
    rule::{Framework, Rule},
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

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    let mut entries: Vec<FunctionId> = (1..context.names.functions.len() as u32)
        .map(FunctionId)
        .filter(|it| context.is_route(*it) || context.is_handler(*it))
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
