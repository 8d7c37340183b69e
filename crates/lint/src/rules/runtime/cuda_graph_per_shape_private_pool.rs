//! Captures several CUDA graphs, each with a memory pool of its own.
//!
//! ## Why it matters
//! A graph that is captured without `pool=` gets a private pool, which nothing else may use for as long as the graph lives.
//! Graphs for twenty batch sizes then hold twenty times the activations; sharing one pool brought a detector from 38.2 to
//! 11.4 GiB.
//!
//! ## Example
//! ```python
//! import torch
//!
//! graphs = {}
//! for size in batch_sizes:
//!     graphs[size] = torch.cuda.CUDAGraph()
//!     with torch.cuda.graph(graphs[size]):
//!         out = model(static_input[:size])
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! graphs = {}
//! pool = torch.cuda.graph_pool_handle()
//! for size in sorted(batch_sizes, reverse=True):
//!     graphs[size] = torch.cuda.CUDAGraph()
//!     with torch.cuda.graph(graphs[size], pool=pool):
//!         out = model(static_input[:size])
//! ```
//! The largest comes first, so that the others fit into what it has reserved. Graphs that share a pool must not be replayed
//! at the same time, and their outputs must be read before the next is replayed.
//!
//! ## When it is silent
//! A pool is given, there is no loop around the capture and no loop that calls its function, or the graph does not outlive the
//! round: it is reset, or only a name or an attribute holds it, which the next one takes over.
//!
//! ## Fix
//! Only advice: whether graphs run at the same time is not to be seen.
//!
//! ## References
//! - roboflow/rf-detr#1490, lightseekorg/tokenspeed#1065, pytorch/pytorch#121475, pytorch/pytorch#97419

use crate::{
    context::{Context, Repetition, Rounds},
    diagnostic::{Diagnostic, Severity},
    facts::Call,
    names::Usage,
    rule::{Framework, Rule},
    syntax::ast::{Expr, Stmt},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK603",
    name: "cuda-graph-per-shape-private-pool",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

const CAPTURES: &[&str] =
    &["torch.cuda.graph", "torch.cuda.graphs.graph", "torch.cuda.make_graphed_callables"];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for call in context.calls_to(CAPTURES) {
        // `torch.cuda.graph(graph, pool)`, `make_graphed_callables(callables, args, warm-up, allow_unused, pool)`
        let position = if call.last_name() == "make_graphed_callables" { 4 } else { 1 };
        if call.argument("pool", position).is_some() || call.has_unpacking() || !is_kept(context, call) {
            continue;
        }
        // One capture a round is enough here: sizes are few, and each holds the memory of a whole step.
        let around = context
            .names
            .loops_from(call.at.in_loop)
            .find(|it| matches!(context.rounds(*it), Rounds::Data | Rounds::Unknown | Rounds::Few));
        let diagnostic = Diagnostic::new(
            &RULE,
            Severity::Warning,
            call.expr,
            "each graph that is captured here keeps a memory pool for itself",
        );
        let diagnostic = match (around, context.repetition_of_function(call.at.function)) {
            (Some(id), _) => diagnostic.because_of(context.head(id), "a graph is captured in every round of this loop"),
            (None, Some(Repetition::Called)) => {
                let name = context.names.function(call.at.function).name;
                diagnostic.because(format!("`{name}` is called in a loop"))
            }
            _ => continue,
        };
        found.push(diagnostic.advise(
            "pass one `torch.cuda.graph_pool_handle()` as `pool=` to all graphs that are not replayed at the same time, the largest first",
        ));
    }
}

/// Whether the graph outlives the round: it is put into something, handed on or returned, and not given up again. A plain name or
/// attribute holds only the last one.
fn is_kept<'a>(context: &Context<'a>, call: &Call<'a>) -> bool {
    if call.last_name() == "make_graphed_callables" {
        return match call.at.statement {
            Stmt::Assign(it) => it.targets.iter().any(Expr::is_subscript_expr),
            _ => true,
        };
    }
    let Some(graph) = call.argument("cuda_graph", 0) else { return false };
    let is_reset = context.calls_named("reset").any(|it| {
        it.at.function == call.at.function
            && it.method().is_some_and(|(object, ..)| context.text(object) == context.text(graph))
    });
    match graph {
        Expr::Subscript(_) => !is_reset,
        Expr::Name(name) => {
            let uses = context.names.name(context.scope(call.at.function), name.id.as_str()).map(|it| &it.uses);
            let is_handed_on = uses.into_iter().flatten().any(|it| match it.usage {
                Usage::Assigned | Usage::Gathered | Usage::Returned => true,
                Usage::Argument(other) => {
                    matches!(&*other.func, Expr::Attribute(it) if matches!(it.attr.as_str(), "append" | "add" | "setdefault"))
                }
                _ => false,
            });
            is_handed_on && !is_reset
        }
        _ => false,
    }
}
