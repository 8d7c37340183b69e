//! Puts a new parameter in the place of an old one in an optimizer, and leaves the state of the old one behind.
//!
//! ## Why it matters
//! The state of an optimizer is a dict whose keys are the parameters themselves. A parameter that is replaced in
//! `param_groups` is still a key there: it stays in memory together with its state, for Adam three times its size, each time
//! that one is replaced. Point clouds that grow and shrink during training do this at every step of densification.
//!
//! ## Example
//! ```python
//! import torch
//!
//! optimizer = torch.optim.Adam([points])
//!
//! def prune(mask):
//!     group = optimizer.param_groups[0]
//!     group["params"][0] = torch.nn.Parameter(group["params"][0][mask])
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! optimizer = torch.optim.Adam([points])
//!
//! def prune(mask):
//!     group = optimizer.param_groups[0]
//!     optimizer.state.pop(group["params"][0], None)
//!     group["params"][0] = torch.nn.Parameter(group["params"][0][mask])
//! ```
//!
//! ## When it is silent
//! The function looks at the `state` of anything: it then deletes or hands over the old state, as the code of Gaussian
//! splatting does.
//!
//! ## Fix
//! Only advice: the state may have to be handed over, cut to size.
//!
//! ## References
//! - graphdeco-inria/gaussian-splatting#897, nerfstudio-project/gsplat#931, pytorch/pytorch#42428

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{Expr, Stmt},
        text_literal,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK502",
    name: "stale-optimizer-state",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_to(&["torch.nn.Parameter", "torch.nn.parameter.Parameter"]) {
        let Stmt::Assign(assignment) = call.at.statement else { continue };
        let is_value = assignment.value.range().contains_range(call.expr.range());
        let Some(target) = assignment.targets.iter().find(|it| is_parameter_of_group(it)) else { continue };
        let sees_state = context
            .names
            .attributes
            .get("state")
            .is_some_and(|uses| uses.iter().any(|it| it.function == call.at.function));
        if is_value && !sees_state {
            found.push(
                Diagnostic::new(
                    &RULE,
                    Severity::Warning,
                    target.range(),
                    "the optimizer still keeps the parameter that was here, and its state",
                )
                .because("the parameters are the keys of `optimizer.state`, and nothing here takes the old one out")
                .advise("take it out first: `optimizer.state.pop(old, None)`"),
            );
        }
    }
}

/// `group["params"][0]`
fn is_parameter_of_group(target: &Expr) -> bool {
    match target {
        Expr::Subscript(it) => {
            matches!(&*it.value, Expr::Subscript(inner) if text_literal(&inner.slice) == Some("params"))
        }
        _ => false,
    }
}
