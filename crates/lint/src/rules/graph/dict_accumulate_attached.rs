//! Gathers tensors that are still part of their graphs in a dict that outlives the step.
//!
//! ## Why it matters
//! A dict of running sums or of lists hides the same leak as a list: each value leads to the graph of its step. Where a backward
//! pass frees those graphs, little stays; where none does, as in validation or for terms that are only logged, everything does.
//!
//! ## Example
//! ```python
//! import collections
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! criterion = torch.nn.CrossEntropyLoss()
//! stats = collections.defaultdict(list)
//! for images, labels in val_loader:
//!     stats["loss"].append(criterion(model(images), labels))
//! ```
//! Use instead:
//! ```python
//! import collections
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! criterion = torch.nn.CrossEntropyLoss()
//! stats = collections.defaultdict(list)
//! for images, labels in val_loader:
//!     stats["loss"].append(criterion(model(images), labels).detach())
//! ```
//!
//! ## When it is silent
//! The dict is made anew in each round, its entry is overwritten under the same key, or it goes into a loss.
//!
//! ## Fix
//! Appends `.detach()`: safe where it is proven that the value is a tensor with a graph and that the dict does not go into a
//! backward pass, else unsafe.
//!
//! ## References
//! - facebookresearch/mmf#560, jokester-zzz/SSA-SC#2, NVIDIA/DeepLearningExamples#1102, oxwhirl/pymarl#73

use super::kept;
use crate::{
    context::{Context, Kind},
    diagnostic::{Diagnostic, Severity},
    fix::Applicability,
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK105",
    name: "dict-accumulate-attached",
    frameworks: &[Framework::Torch],
    severity: Severity::Error,
    default: true,
    fix: Some(Applicability::Safe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for case in context.cases(Kind::Dict) {
        let (target, kept) = (context.text(case.keep.target), context.text(case.keep.kept));
        let message = format!("`{target}` keeps `{kept}` together with the graph that computed it");
        found.push(
            kept::report(context, &RULE, &case, case.severity(), message)
                .advise("keep `.detach()` of it, or `.item()` of a single number")
                .fixed_by(kept::detach(context, &case)),
        );
    }
}
