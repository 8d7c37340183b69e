//! Lets a module's own state go on from itself, graph and all.
//!
//! ## Why it matters
//! A running mean or a hidden state that is computed from its old value at each forward pass extends one graph over all passes. Of what a
//! backward pass has freed only nodes stay (about 10 KB a step on the host), which slows the program down; of a branch that no
//! backward pass reaches everything stays.
//!
//! ## Example
//! ```python
//! import torch
//! from torch import nn
//!
//!
//! class Normalise(nn.Module):
//!     def __init__(self):
//!         super().__init__()
//!         self.linear = nn.Linear(10, 10)
//!         self.mean = torch.zeros(10)
//!
//!     def forward(self, x):
//!         y = self.linear(x)
//!         self.mean = self.mean + 0.1 * y.mean(0)
//!         return y - self.mean
//! ```
//! Use instead:
//! ```python
//! import torch
//! from torch import nn
//!
//!
//! class Normalise(nn.Module):
//!     def __init__(self):
//!         super().__init__()
//!         self.linear = nn.Linear(10, 10)
//!         self.mean = torch.zeros(10)
//!
//!     def forward(self, x):
//!         y = self.linear(x)
//!         self.mean = self.mean + 0.1 * y.detach().mean(0)
//!         return y - self.mean
//! ```
//! A buffer that is updated in place under `torch.no_grad()` is the usual way.
//!
//! ## When it is silent
//! The attribute is only overwritten (`self.last = out` holds one step, not all), or the update happens under `torch.no_grad()`.
//!
//! ## Fix
//! Appends `.detach()` to what is added: unsafe, because gradients may be meant to flow through the state.
//!
//! ## References
//! - pytorch/pytorch#20275, growingnet/gromo#135, lucidrains/rotary-embedding-torch#15

use super::kept;
use crate::{
    context::{Context, Kind, Release},
    diagnostic::{Diagnostic, Severity},
    facts::How,
    fix::{Applicability, Fix},
    flow::value::Graph,
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK111",
    name: "attached-module-state",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for case in context.cases(Kind::ModuleState) {
        let severity = match (case.graph, case.release) {
            (Graph::Attached | Graph::Likely, Release::Kept) => Severity::Warning,
            _ => Severity::Info,
        };
        let (target, kept) = (context.text(case.keep.target), context.text(case.keep.kept));
        let message = format!("`{target}` goes on from itself, so the graph of `{kept}` grows with every forward pass");
        let fix = match case.keep.how {
            // Where to cut a state that a network goes on from is the training's to say.
            How::Chain => None,
            _ => kept::detach(context, &case).map(|it| Fix { applicability: Applicability::Unsafe, ..it }),
        };
        found.push(
            Diagnostic::new(&RULE, severity, case.keep.range, message)
                .kept_in(target)
                .because("`forward` runs at every step, and the attribute outlives it")
                .because(match case.keep.how {
                    How::Chain => "the backward pass of the second step fails, or needs `retain_graph=True`, which keeps all graphs before",
                    _ => "what the loss is computed from is freed by its backward pass, but the nodes of the chain stay, and so does all that the loss does not reach",
                })
                .advise("update it under `torch.no_grad()`, or from detached values")
                .fixed_by(fix),
        );
    }
}
