//! Passes a hidden state on from step to step without cutting its graph.
//!
//! ## Why it matters
//! The state leads to the graph of the step before, that one to the step before it, and so on: one graph over the whole run.
//! A plain `backward()` fails at the second step, because the first one's activations are gone; with `retain_graph=True` it works, and
//! every step stays: 24 MB a step in a small LSTM. The backward pass takes longer each time, too.
//!
//! ## Example
//! ```python
//! import torch
//!
//! rnn = torch.nn.GRUCell(128, 256)
//! hidden = torch.zeros(64, 256)
//! for x in train_loader:
//!     hidden = rnn(x, hidden)
//!     loss = hidden.logsumexp(1).mean()
//!     loss.backward(retain_graph=True)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! rnn = torch.nn.GRUCell(128, 256)
//! hidden = torch.zeros(64, 256)
//! for x in train_loader:
//!     hidden = rnn(x, hidden.detach())
//!     loss = hidden.logsumexp(1).mean()
//!     loss.backward()
//! ```
//! This is truncated backpropagation through time: gradients end where the state is detached.
//!
//! ## When it is silent
//! The state is detached or made anew somewhere in the loop, recording is off, or no backward pass happens in the loop.
//!
//! ## Fix
//! Passes the detached state: unsafe, because gradients no longer flow into the steps before. Only where the state is one tensor that is
//! passed by its name.
//!
//! ## References
//! - [PyTorch FAQ](https://docs.pytorch.org/docs/stable/notes/faq.html), `word_language_model` in pytorch/examples
//! - jlamprou/Infini-Attention#3, Metta-AI/metta#1139

use super::kept;
use crate::{
    context::{Context, Kind},
    diagnostic::{Diagnostic, Severity},
    facts::Keep,
    fix::{Applicability, Edit, Fix},
    flow::value::{Graph, Value},
    names::{Usage, method_name, Use},
    rule::{Framework, Rule},
    syntax::{Ranged, ast::Expr, bool_literal, is_same_place},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK110",
    name: "hidden-state-carry",
    frameworks: &[Framework::Torch],
    severity: Severity::Error,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for case in context.cases(Kind::Carried) {
        let keep = case.keep;
        // Only what is passed to a network goes on from it as a state does; `x = x * 2` is arithmetic within a step.
        let Expr::Call(_) = keep.kept else { continue };
        // `hidden.detach_()`
        let is_detached = |it: &Use<'_>| matches!(it.usage, Usage::Method(call) if method_name(call) == "detach_");
        if context.uses(keep.root).iter().any(is_detached) {
            continue;
        }
        let retains = context.calls_named("backward").find(|call| {
            call.at.function == keep.at.function
                && call.keyword("retain_graph").is_some_and(|it| bool_literal(&it.value) == Some(true))
        });
        let severity = match (case.graph, retains.is_some()) {
            (Graph::Attached, true) => Severity::Error,
            _ => Severity::Warning,
        };
        let target = context.text(keep.target);
        let message = format!("`{target}` is carried into the next step with the graphs of all steps before");
        let mut diagnostic = kept::report(context, &RULE, &case, severity, message);
        diagnostic = match retains {
            Some(call) => diagnostic.because_of(call.expr, "`retain_graph=True` keeps those graphs alive"),
            None => diagnostic.because("the backward pass of the second step fails, or needs `retain_graph=True`, which keeps them all"),
        };
        found.push(
            diagnostic
                .advise(format!("cut it between steps: `{target} = {target}.detach()`"))
                .fixed_by(pass_detached(context, keep)),
        );
    }
}

/// `rnn(x, hidden)` becomes `rnn(x, hidden.detach())`.
fn pass_detached(context: &Context<'_>, keep: &Keep<'_>) -> Option<Fix> {
    let Expr::Call(call) = keep.kept else { return None };
    let Value::Tensor(_) = keep.before else { return None };
    let argument = call
        .arguments
        .args
        .iter()
        .chain(call.arguments.keywords.iter().map(|it| &it.value))
        .find(|it| is_same_place(it, keep.target))?;
    let _ = context;
    let edit = Edit::insert(argument.end(), ".detach()");
    Some(Fix::new(Applicability::Unsafe, "pass the state without its graph", vec![edit]))
}
