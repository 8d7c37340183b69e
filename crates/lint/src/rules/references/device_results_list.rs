//! Gathers results of every step in a list, and leaves them on the device.
//!
//! ## Why it matters
//! Without a graph each result costs only itself, but over a data set that is everything: 4.2 MB a step for outputs of
//! 1024 x 1024 numbers. The list competes with the model for GPU memory until it is given up, though only the CPU reads it.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! embeddings = []
//! with torch.no_grad():
//!     for batch in loader:
//!         embeddings.append(model(batch))
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! embeddings = []
//! with torch.no_grad():
//!     for batch in loader:
//!         embeddings.append(model(batch).cpu())
//! ```
//!
//! ## When it is silent
//! The list is emptied or bounded, or is the caller's; its elements are on the host, single numbers, or one index an item (`argmax`); nothing
//! says that the loop is one over data or steps. It is only an info where the loop counts rounds without training (what is generated is needed), and where neither a device is written out nor a network made them. Results with a graph are reported by the rules about graphs.
//!
//! ## Fix
//! Appends `.cpu()`; unsafe, because what reads the list then finds tensors on another device.
//!
//! ## References
//! - allenai/longformer#36, sktime/pytorch-forecasting#1924

use super::to_host::{because_repeated, to_host};
use crate::{
    context::{Context, Kind, Repetition, is_called_loss},
    diagnostic::{Diagnostic, Severity},
    facts::{Keep, Root},
    fix::Applicability,
    flow::value::{Graph, Place},
    names::{Definition, FunctionId},
    rule::{Framework, Rule},
    syntax::{is_parameter, mentions},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK211",
    name: "device-results-list",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for case in context.cases(Kind::DeviceData) {
        let keep = case.keep;
        let is_repeated =
            matches!(case.repetition, Repetition::Data(_) | Repetition::Called | Repetition::Framework);
        // A list of the function around or of the caller is one result of several parts; what is passed in is the caller's.
        let is_of_another = match keep.root {
            Root::Name(owner, _) => {
                owner != keep.at.function && owner != FunctionId::MODULE
                    || context.definitions(keep.root).iter().any(|it| matches!(it, Definition::Parameter(_)))
            }
            _ => false,
        };
        let is_made_here = case.graph == Graph::Detached;
        if !is_repeated || is_of_another || !is_made_here || super::global_container_of_tensors::is_global(keep) {
            continue;
        }
        let (list, kept) = (context.text(keep.target), context.text(keep.kept));
        let message = format!("`{list}` gathers `{kept}` of every step on the device");
        let is_surely_on_device = keep.value.tensor_within().is_some_and(|it| it.place == Place::Device);
        let is_over_data = match case.repetition {
            Repetition::Data(id) => !context.is_over_range(id) || context.names.the_loop(id).trains,
            // A callback that a framework calls at every step.
            Repetition::Framework => keep.outlives_call,
            _ => false,
        };
        let severity = if is_surely_on_device || is_over_data && is_made_by_model(context, keep) && !is_called_loss(keep.kept) {
            Severity::Warning
        } else {
            Severity::Info
        };
        let diagnostic = Diagnostic::new(&RULE, severity, keep.range, message);
        found.push(
            because_repeated(context, diagnostic, keep, case.repetition)
                .advise("move each result to the host with `.cpu()` before it is kept")
                .fixed_by(to_host(keep)),
        );
    }
}

/// Whether a network computed what is kept: what a data set gives may well lie on the host.
fn is_made_by_model<'a>(context: &Context<'a>, keep: &Keep<'a>) -> bool {
    mentions(keep.kept, &is_parameter)
        || context.is_result_of(keep.at.function, keep.kept, &|call| context.is_forward(call))
}
