//! Adds a tensor that is still part of its graph to a running total.
//!
//! ## Why it matters
//! The total becomes part of one graph over all steps. After `backward()` that graph has lost its activations, and a step costs
//! about 10 KB of nodes on the host and a number on the device; but without a backward pass, as in validation, the activations
//! of every step stay: 16.8 MB a step in a small MLP (batch 1024, width 1024).
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! criterion = torch.nn.CrossEntropyLoss()
//! total = 0
//! for images, labels in val_loader:
//!     total += criterion(model(images), labels)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! criterion = torch.nn.CrossEntropyLoss()
//! total = 0
//! for images, labels in val_loader:
//!     total += criterion(model(images), labels).detach()
//! ```
//! `.item()` gives a plain number, but waits for the GPU at every step.
//!
//! ## When it is silent
//! The total is what `backward()` is called on, starts anew in each round, or is a plain number; recording is off.
//! A loss that is accumulated for one backward pass at the end is LK119's.
//!
//! ## Fix
//! Appends `.detach()`: safe where it is proven that the value is a tensor with a graph and that the total does not go into a
//! backward pass, else unsafe.
//!
//! ## References
//! - [PyTorch FAQ: Don't accumulate history across your training loop](https://docs.pytorch.org/docs/stable/notes/faq.html)
//! - pytorch/pytorch#17568, BatsResearch/labelmodels#4, MultimediaTechLab/YOLO#83

use super::kept;
use crate::{
    context::{Context, Kind},
    diagnostic::{Diagnostic, Severity},
    fix::Applicability,
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK101",
    name: "accumulate-attached-loss",
    frameworks: &[Framework::Torch],
    severity: Severity::Error,
    default: true,
    fix: Some(Applicability::Safe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for case in context.cases(Kind::Total) {
        let (target, kept) = (context.text(case.keep.target), context.text(case.keep.kept));
        let message = format!("`{target}` keeps the graph of every `{kept}` that is added to it");
        found.push(
            kept::report(context, &RULE, &case, case.severity(), message)
                .advise("add `.detach()` of it, or `.item()`")
                .fixed_by(kept::detach(context, &case)),
        );
    }
}
