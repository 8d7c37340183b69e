//! Puts a tensor that is still part of its graph into a list that outlives the step.
//!
//! ## Why it matters
//! A tensor that requires gradients holds the graph that computed it, and the graph holds the activations of the whole
//! step. If no backward pass frees that graph, as in validation, each step stays in memory as a whole: 16.8 MB a step in
//! a small MLP (batch 1024, width 1024), four times the size of the output that was to be kept. After `backward()` the
//! activations are gone, and what stays is the tensor itself and the nodes of its graph on the host: 512 bytes a step
//! for a loss, but all of an output.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! criterion = torch.nn.CrossEntropyLoss()
//! losses = []
//! for images, labels in val_loader:
//!     loss = criterion(model(images), labels)
//!     losses.append(loss)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! criterion = torch.nn.CrossEntropyLoss()
//! losses = []
//! for images, labels in val_loader:
//!     loss = criterion(model(images), labels)
//!     losses.append(loss.detach())
//! ```
//! `losses.append(loss.item())` frees even the number on the device, but waits for the GPU; `torch.no_grad()` around the
//! loop also saves the activations while the step runs.
//!
//! ## When it is silent
//! The list is emptied again, is a `deque(maxlen=…)`, or goes into a loss later; recording is off there, or whoever calls
//! the function turns it off.
//!
//! ## Fix
//! Appends `.detach()`: safe where it is proven that the value is a tensor with a graph and that the list does not go into a
//! backward pass, else unsafe.
//!
//! ## References
//! - [PyTorch FAQ: Don't accumulate history across your training loop](https://docs.pytorch.org/docs/stable/notes/faq.html)
//! - rballester/tntorch#19, ULTR-Community/ULTRA_pytorch#6, allenai/longformer#36

use super::kept;
use crate::{
    context::{Context, Kind, Release},
    diagnostic::{Diagnostic, Severity},
    facts::Root,
    fix::Applicability,
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK102",
    name: "append-attached-tensor",
    frameworks: &[Framework::Torch],
    severity: Severity::Error,
    default: true,
    fix: Some(Applicability::Safe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for case in context.cases(Kind::List) {
        // What a step of Lightning gathers and nothing clears is the matter of LK705, whose edit helps more.
        let is_step_output = matches!(case.keep.root, Root::SelfAttribute(..))
            && case.keep.before.as_group().is_some()
            && context.names.function(case.keep.at.function).name.ends_with("_step")
            && context.is_called_by_framework(case.keep.at.function);
        if is_step_output && case.release == Release::Unknown {
            continue;
        }
        let (list, kept) = (context.text(case.keep.target), context.text(case.keep.kept));
        let message = format!("`{list}` keeps `{kept}` together with the graph that computed it");
        found.push(
            kept::report(context, &RULE, &case, case.severity(), message)
                .advise("keep `.detach()` of it, or `.item()` of a single number")
                .fixed_by(kept::detach(context, &case)),
        );
    }
}
