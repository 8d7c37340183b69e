//! Has the hook that makes Lightning 1 keep the outputs of all steps of an epoch.
//!
//! ## Why it matters
//! Where a module has `training_epoch_end`, `validation_epoch_end` or `test_epoch_end`, Lightning 1 keeps what every step returns
//! until the epoch ends, on the GPU. If steps return logits that is the whole data set. Lightning 2 refuses these hooks for
//! this reason.
//!
//! ## Example
//! ```python
//! import pytorch_lightning as pl
//!
//! class Model(pl.LightningModule):
//!     def validation_step(self, batch, batch_idx):
//!         return {"loss": self.loss(batch), "preds": self(batch)}
//!
//!     def validation_epoch_end(self, outputs):
//!         self.log("score", score([it["preds"] for it in outputs]))
//! ```
//! Use instead:
//! ```python
//! import pytorch_lightning as pl
//!
//! class Model(pl.LightningModule):
//!     def validation_step(self, batch, batch_idx):
//!         self.score.update(self(batch))
//!
//!     def on_validation_epoch_end(self):
//!         self.log("score", self.score.compute())
//!         self.score.reset()
//! ```
//!
//! ## When it is silent
//! The class is no module of Lightning, or the hook takes no outputs. Where steps return nothing that looks as large as a batch it
//! is information only.
//!
//! ## Fix
//! Only advice: what the hook computes has to be computed batch by batch.
//!
//! ## References
//! - Lightning-AI/pytorch-lightning#16520, Lightning-AI/pytorch-lightning#8453, Lightning-AI/pytorch-lightning#5735
//! - ashleve/lightning-hydra-template#458

use super::lightning;
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    names::FunctionNode,
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK706",
    name: "memory-retaining-epoch-end-hook",
    frameworks: &[Framework::Lightning],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

const HOOKS: &[(&str, &str)] = &[
    ("training_epoch_end", "training_step"),
    ("validation_epoch_end", "validation_step"),
    ("test_epoch_end", "test_step"),
];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for class in lightning::modules(context) {
        let methods = &context.names.class(class).methods;
        for (hook, step) in HOOKS {
            let Some(function) = methods.get(hook).map(|it| context.names.function(*it)) else { continue };
            let FunctionNode::Def(def) = function.node else { continue };
            if function.parameters().count() != 2 {
                continue;
            }
            let large = methods.get(step).and_then(|it| lightning::returned_tensors(context, *it));
            let severity = if large.is_some() { Severity::Warning } else { Severity::Info };
            let message = format!("`{hook}` makes Lightning keep what every `{step}` of the epoch returns");
            let mut diagnostic = Diagnostic::new(&RULE, severity, &def.name, message);
            if let Some((key, place)) = large {
                diagnostic = diagnostic.because_of(place, format!("`{key}` of each batch is kept on the GPU"));
            }
            let new_name = match *hook {
                "training_epoch_end" => "on_train_epoch_end",
                "validation_epoch_end" => "on_validation_epoch_end",
                _ => "on_test_epoch_end",
            };
            found.push(
                diagnostic.advise(format!("use `{new_name}`, and gather what it needs batch by batch, or in a metric")),
            );
        }
    }
}
