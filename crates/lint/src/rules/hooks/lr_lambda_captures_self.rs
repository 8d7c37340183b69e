//! A learning-rate lambda refers to the object that owns its optimizer, in a class whose objects are made again and again.
//!
//! ## Why it matters
//! The object holds the scheduler, the scheduler holds the lambda, and the lambda holds the object: a cycle. With it stay the
//! model, its gradients and the optimizer's state, until Python's garbage collector runs: 25 MB an object in a small
//! MLP (width 1024) with Adam. Schedulers that are made anew without such a lambda keep nothing.
//!
//! ## Example
//! ```python
//! import torch
//!
//! class Trainer:
//!     def __init__(self, model):
//!         self.warmup = 100
//!         self.optimizer = torch.optim.Adam(model.parameters())
//!         self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: step / self.warmup)
//!
//! for epoch in range(100):
//!     trainer = Trainer(torch.nn.Linear(10, 10).cuda())
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! class Trainer:
//!     def __init__(self, model):
//!         self.warmup = 100
//!         self.optimizer = torch.optim.Adam(model.parameters())
//!         self.scheduler = torch.optim.lr_scheduler.LambdaLR(
//!             self.optimizer, lambda step, warmup=self.warmup: step / warmup
//!         )
//!
//! for epoch in range(100):
//!     trainer = Trainer(torch.nn.Linear(10, 10).cuda())
//! ```
//!
//! ## When it is silent
//! Nothing in sight makes objects of the class in a loop.
//!
//! ## Fix
//! Only advice: a value bound to the lambda no longer changes with the object.
//!
//! ## References
//! - pytorch/pytorch#47589

use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
    syntax::{
        ast::Expr,
        mentions,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK306",
    name: "lr-lambda-captures-self",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let schedulers =
        ["torch.optim.lr_scheduler.LambdaLR", "torch.optim.lr_scheduler.MultiplicativeLR"];
    for call in context.calls_to(&schedulers) {
        let Some(Expr::Lambda(lambda)) = call.argument("lr_lambda", 1) else { continue };
        let own = context.names.function(call.at.function);
        let (Some(receiver), Some(class)) = (own.receiver(), own.class) else { continue };
        let refers = mentions(&lambda.body, &|it| matches!(it, Expr::Name(it) if it.id.as_str() == receiver));
        if refers && context.made_repeatedly(class).is_some_and(|it| !matches!(it, Repetition::Loop(_))) {
            let name = context.names.class(class).node.name.as_str();
            let message = format!(
                "the lambda holds its `{name}`, which holds the scheduler: it stays until the garbage collector runs"
            );
            found.push(
                Diagnostic::new(&RULE, Severity::Warning, lambda, message)
                    .because(format!("`{name}` is made again and again"))
                    .advise("bind what the lambda needs as a default argument: `lambda step, warmup=self.warmup: …`"),
            );
        }
    }
}
