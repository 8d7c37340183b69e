//! Passes a tensor with its graph to a logger of experiments.
//!
//! ## Why it matters
//! What a logger keeps until it writes keeps the graph of the step. wandb did so before 0.8.2; today's wandb and
//! `MLflow` turn the tensor into a number at once and keep nothing, which is why the rule does not run unless it is
//! selected: it shows where a logger that keeps what it gets would cost 16.8 MB a step (three layers, activations of 4.2 MB),
//! and where each call waits for the GPU.
//!
//! ## Example
//! ```python
//! import torch
//! import wandb
//!
//! model = torch.nn.Linear(10, 1)
//! for batch in loader:
//!     loss = model(batch).mean()
//!     wandb.log({"loss": loss})
//! ```
//! Use instead:
//! ```python
//! import torch
//! import wandb
//!
//! model = torch.nn.Linear(10, 1)
//! for batch in loader:
//!     loss = model(batch).mean()
//!     wandb.log({"loss": loss.item()})
//! ```
//!
//! ## When it is silent
//! What is logged has no graph, or nobody knows; the logger is one that detaches (Lightning's `self.log`).
//!
//! ## Fix
//! Only advice: `.item()` waits for the GPU and works on single numbers only.
//!
//! ## References
//! - wandb/wandb#354, oxwhirl/pymarl#73, cyoon1729/RLcycle#10

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    flow::value::Graph,
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK118",
    name: "log-attached",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: false,
    fix: None,
    check,
};

const LOGGERS: &[&str] =
    &["wandb.log", "mlflow.log_metric", "mlflow.log_metrics", "trackio.log", "swanlab.log"];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_to(LOGGERS) {
        let arguments = call.expr.arguments.args.iter().chain(call.expr.arguments.keywords.iter().map(|it| &it.value));
        let attached = arguments.zip(&call.arguments).find(|(_, value)| context.graph(value, &call.at) >= Graph::Likely);
        if let Some((expr, _)) = attached {
            found.push(
                Diagnostic::new(
                    &RULE,
                    Severity::Info,
                    call.expr,
                    format!("`{}` is logged together with the graph that computed it", context.text(expr)),
                )
                .because("a logger that keeps what it gets until it writes keeps the activations of the step, too")
                .advise("log `.item()` of it"),
            );
        }
    }
}
