//! Keeps a tensor whose graph `retain_graph=True` prevents from being freed.
//!
//! ## Why it matters
//! Normally `backward()` frees the activations, and a loss that is kept costs next to nothing. With `retain_graph=True` it frees
//! nothing, and each loss that is kept holds its whole step: 16.8 MB a step in a small MLP.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! history = []
//! for x in train_loader:
//!     loss = model(x).square().mean()
//!     loss.backward(retain_graph=True)
//!     history.append(loss)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! history = []
//! for x in train_loader:
//!     loss = model(x).square().mean()
//!     loss.backward(retain_graph=True)
//!     history.append(loss.detach())
//! ```
//! If there is only one backward pass a step, `retain_graph=True` should go, too.
//!
//! ## When it is silent
//! Another backward pass of the same step frees the graph.
//!
//! ## Fix
//! Appends `.detach()`: safe where it is proven that the value is a tensor with a graph, else unsafe.
//!
//! ## References
//! - GBLin5566/toward-controlled-generation-of-text-pytorch#9, pytorch/pytorch#40005, hosseinshn/GradNorm#9

use super::kept;
use crate::{
    context::{Context, Kind},
    diagnostic::{Diagnostic, Severity},
    fix::Applicability,
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK108",
    name: "retain-graph-with-kept-value",
    frameworks: &[Framework::Torch],
    severity: Severity::Error,
    default: true,
    fix: Some(Applicability::Safe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for case in context.cases(Kind::RetainedGraph) {
        let (target, kept) = (context.text(case.keep.target), context.text(case.keep.kept));
        let message = format!("`{target}` keeps `{kept}`, whose graph `retain_graph=True` holds");
        found.push(
            kept::report(context, &RULE, &case, case.severity(), message)
                .advise("keep `.detach()` of it; drop `retain_graph=True` if there is no second backward pass")
                .fixed_by(kept::detach(context, &case)),
        );
    }
}
