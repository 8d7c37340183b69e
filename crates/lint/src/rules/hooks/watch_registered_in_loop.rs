//! Calls `wandb.watch` on the same model again and again.
//!
//! ## Why it matters
//! Each call adds hooks to the model's parameters and outputs, and none of them is removed: every pass then runs all of
//! them, and each keeps what it refers to. Hooks that are registered in every round cost 4.2 MB a round if they hold one
//! activation.
//!
//! ## Example
//! ```python
//! import torch
//! import wandb
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! for epoch in range(100):
//!     wandb.watch(model)
//!     train(model)
//! ```
//! Use instead:
//! ```python
//! import torch
//! import wandb
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! wandb.watch(model)
//! for epoch in range(100):
//!     train(model)
//! ```
//!
//! ## When it is silent
//! It is called once, or the model is made anew each time; the file calls `wandb.unwatch`.
//!
//! ## Fix
//! Only advice: move the call in front of the loop.
//!
//! ## References
//! - wandb/wandb#2644, ML4SCI/DeepLense#141

use crate::{
    context::{Context, Repetition, is_done_once},
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
    syntax::Ranged,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK312",
    name: "watch-registered-in-loop",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.calls_named("unwatch").next().is_some() {
        return;
    }
    for call in context.calls_to(&["wandb.watch"]) {
        let (Some(Repetition::Data(id)), Some(model)) =
            (context.repetition_at(&call.at), call.argument("models", 0))
        else {
            continue;
        };
        if is_done_once(&call.at) || context.is_made_within(call.at.function, id, model) {
            continue;
        }
        let node = context.names.the_loop(id).node;
        let head = node.iterable().map_or(node.range(), Ranged::range);
        let message = format!("more hooks on `{}` in every round, and none is removed", context.text(model));
        found.push(
            Diagnostic::new(&RULE, Severity::Warning, call.expr, message)
                .because_of(head, "this loop runs for each batch, step or epoch")
                .advise("call it once, before the loop"),
        );
    }
}
