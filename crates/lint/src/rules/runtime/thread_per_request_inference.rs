//! Starts a new thread for every request or batch that runs a model.
//!
//! ## Why it matters
//! cuBLAS and cuDNN handles, their workspaces (about 8 MB for each handle and stream) and caches of plans belong to a
//! thread. A new thread makes them anew, and what a thread that has ended leaves behind is not always set free: host memory
//! has been reported to grow with every thread.
//!
//! ## Example
//! ```python
//! import threading
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//!
//! def answer(request):
//!     request.reply(model(request.x))
//!
//! while True:
//!     threading.Thread(target=answer, args=(queue.get(),)).start()
//! ```
//! Use instead:
//! ```python
//! from concurrent.futures import ThreadPoolExecutor
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//!
//! def answer(request):
//!     request.reply(model(request.x))
//!
//! with ThreadPoolExecutor(1) as pool:
//!     while True:
//!         pool.submit(answer, queue.get())
//! ```
//!
//! ## When it is silent
//! A fixed number of threads is started (any loop over a `range`), or the function that the thread runs is not of the same
//! file, or calls no model itself.
//!
//! ## Fix
//! Only advice: a pool changes the order of work.
//!
//! ## References
//! - pytorch/pytorch#42111, pytorch/pytorch#104701

use crate::{
    context::{Context, EachStep},
    diagnostic::{Diagnostic, Severity},
    facts::{Call, Callee},
    flow::value::Value,
    names::{FunctionId, LoopNode},
    rule::{Framework, Rule},
    syntax::ast::Expr,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK606",
    name: "thread-per-request-inference",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_to(&["threading.Thread"]) {
        let Some(each @ (EachStep::In(id) | EachStep::CalledIn(id))) = context.each_step(&call.at) else {
            continue;
        };
        if is_fixed_number(context.names.the_loop(id).node) {
            continue;
        }
        let Some(target) = call.argument("target", 1) else { continue };
        let Value::Function(file, function) = call.value_of(target) else { continue };
        if *file != context.file {
            continue;
        }
        let Some(inference) = context.facts.calls.iter().find(|it| runs_model(context, it, *function)) else {
            continue;
        };
        let diagnostic = Diagnostic::new(
            &RULE,
            Severity::Warning,
            call.expr,
            "every new thread makes library handles, workspaces and plan caches of its own for the model that it runs",
        )
        .because_of(inference.expr, "the thread runs a model here");
        found.push(
            context
                .because_each_step(diagnostic, each, &call.at)
                .advise("hand the work to a fixed pool of threads"),
        );
    }
}

fn is_fixed_number(node: LoopNode<'_>) -> bool {
    matches!(
        node.iterable(),
        Some(Expr::Call(call)) if matches!(&*call.func, Expr::Name(it) if it.id.as_str() == "range")
    )
}

fn runs_model(context: &Context<'_>, call: &Call<'_>, function: FunctionId) -> bool {
    let is_model = match &call.callee {
        Callee::Object(value) => context.is_module(value),
        Callee::Method { value, name, .. } => *name == "generate" && context.is_module(value),
        _ => false,
    };
    is_model && call.at.function == function
}
