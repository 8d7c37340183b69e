//! Keeps a copy of a tensor on the host, or a converted one, that still holds the graph on the GPU.
//!
//! ## Why it matters
//! `.cpu()`, `.to("cpu")`, `.clone()` and `.float()` are recorded like any other operation: the copy leads back to the graph, and
//! the graph to all activations on the GPU. People write it to free the GPU, and it frees nothing: 16.8 MB a step in a small
//! MLP instead of 4.2 MB on the host.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! outputs = []
//! for images in test_loader:
//!     outputs.append(model(images).cpu())
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! outputs = []
//! for images in test_loader:
//!     outputs.append(model(images).detach().cpu())
//! ```
//! With `torch.no_grad()` around the loop there is no graph in the first place.
//!
//! ## When it is silent
//! Recording is off there, or whoever calls the function turns it off; the list goes into a loss later, is emptied, or is bounded.
//!
//! ## Fix
//! Puts `.detach()` in front of the copy: safe where it is proven that the value is a tensor with a graph and that the list does
//! not go into a backward pass, else unsafe.
//!
//! ## References
//! - pytorch/pytorch#16303, pytorch/pytorch#13613, pfnet/pytorch-pfn-extras#49, TorchSim/torch-sim#491

use super::kept;
use crate::{
    context::{Context, Kind},
    diagnostic::{Diagnostic, Severity},
    fix::Applicability,
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK103",
    name: "host-copy-without-detach",
    frameworks: &[Framework::Torch],
    severity: Severity::Error,
    default: true,
    fix: Some(Applicability::Safe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for case in context.cases(Kind::Copies) {
        let (target, kept) = (context.text(case.keep.target), context.text(case.keep.kept));
        let message = format!("the copy that `{target}` keeps still holds the graph of `{kept}` on the device");
        found.push(
            kept::report(context, &RULE, &case, case.severity(), message)
                .advise("detach before copying: `.detach().cpu()`")
                .fixed_by(kept::detach(context, &case)),
        );
    }
}
