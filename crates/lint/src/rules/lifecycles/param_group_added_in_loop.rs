//! Adds a group of parameters to an optimizer in every step.
//!
//! ## Why it matters
//! An optimizer never lets go of a parameter: the group holds it, and the state of Adam adds two tensors of its size. What is
//! added in each step stays with all of that for as long as the optimizer lives: measured, three times the size of the
//! parameter a step (12.6 MB for 4.2 MB).
//!
//! ## Example
//! ```python
//! import torch
//!
//! optimizer = torch.optim.Adam([torch.zeros(10, requires_grad=True)])
//! for step, frame in enumerate(frames):
//!     pose = torch.nn.Parameter(initial_pose(frame))
//!     optimizer.add_param_group({"params": [pose]})
//!     optimizer.step()
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! for step, frame in enumerate(frames):
//!     pose = torch.nn.Parameter(initial_pose(frame))
//!     optimizer = torch.optim.Adam([pose])
//!     optimizer.step()
//! ```
//!
//! ## When it is silent
//! It happens only under a condition, as when layers are unfrozen after some epochs; the loop goes over parts of the model; the
//! optimizer is made in the loop, too.
//!
//! ## Fix
//! Only advice: what should become of the state is for the author to say.
//!
//! ## References
//! - pytorch/pytorch#53712

use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
    syntax::Ranged,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK501",
    name: "param-group-added-in-loop",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_named("add_param_group") {
        let Some((optimizer, ..)) = call.method() else { continue };
        let repetition = context.repetition_at(&call.at);
        let is_fresh = context
            .names
            .loops_from(call.at.in_loop)
            .any(|id| context.may_be_another_in(id, optimizer));
        if call.at.branch.is_some() || is_fresh || context.is_test() {
            continue;
        }
        let name = context.text(optimizer);
        let diagnostic = Diagnostic::new(
            &RULE,
            Severity::Warning,
            call.expr,
            format!("`{name}` keeps the parameters of every step, with their state"),
        );
        let diagnostic = match repetition {
            Some(Repetition::Data(id)) => {
                let node = context.names.the_loop(id).node;
                diagnostic.because_of(
                    node.iterable().map_or(node.range(), Ranged::range),
                    "this loop runs for each step",
                )
            }
            Some(Repetition::Framework) => {
                let function = context.names.function(call.at.function).name;
                diagnostic.because(format!("`{function}` runs at every step"))
            }
            _ => continue,
        };
        found.push(diagnostic.advise(
            "make a new optimizer when the parameters change, or take out the old group and its state first",
        ));
    }
}
