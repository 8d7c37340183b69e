//! Returns outputs beside the loss from a training step of Lightning.
//!
//! ## Why it matters
//! What `training_step` returns lives until the step and its callbacks are over, so outputs beside the loss raise the peak. With
//! Lightning 1 and a `training_epoch_end` hook the outputs of the whole epoch are kept, on the GPU.
//!
//! ## Example
//! ```python
//! import lightning as L
//!
//! class Model(L.LightningModule):
//!     def training_step(self, batch, batch_idx):
//!         logits = self(batch.x)
//!         return {"loss": self.loss(logits, batch.y), "logits": logits}
//! ```
//! Use instead:
//! ```python
//! import lightning as L
//!
//! class Model(L.LightningModule):
//!     def training_step(self, batch, batch_idx):
//!         logits = self(batch.x)
//!         return self.loss(logits, batch.y)
//! ```
//!
//! ## When it is silent
//! Only losses and numbers are returned. Off by default: callbacks may need the outputs, and Lightning 2 keeps only those of the
//! current batch.
//!
//! ## Fix
//! Only advice: who reads the outputs is not to be seen.
//!
//! ## References
//! - Lightning-AI/pytorch-lightning#8453, Lightning-AI/pytorch-lightning#1510, Lightning-AI/pytorch-lightning#15514

use super::lightning;
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK707",
    name: "step-returns-tensors",
    frameworks: &[Framework::Lightning],
    severity: Severity::Info,
    default: false,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for class in lightning::modules(context) {
        let Some(step) = context.names.class(class).methods.get("training_step") else { continue };
        let Some((key, place)) = lightning::returned_tensors(context, *step) else { continue };
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Info,
                place,
                format!("`{key}` stays in memory until the step and its callbacks are over, and longer with Lightning 1"),
            )
            .advise("return the loss alone, or `.detach()` what callbacks need"),
        );
    }
}
