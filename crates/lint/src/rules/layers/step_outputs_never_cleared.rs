//! Gathers outputs of steps in a module of Lightning and never lets go of them.
//!
//! ## Why it matters
//! Since Lightning 2 a module gathers the outputs of its steps itself, in a list that has to be cleared at the end of the epoch.
//! A list that is not cleared keeps the outputs of all epochs, and their graphs if they were made in `training_step`.
//!
//! ## Example
//! ```python
//! import lightning as L
//! import torch
//!
//! class Model(L.LightningModule):
//!     def __init__(self):
//!         super().__init__()
//!         self.validation_step_outputs = []
//!
//!     def validation_step(self, batch, batch_idx):
//!         self.validation_step_outputs.append(self.net(batch))
//!
//!     def on_validation_epoch_end(self):
//!         self.log("score", torch.cat(self.validation_step_outputs).mean())
//! ```
//! Use instead:
//! ```python
//! import lightning as L
//! import torch
//!
//! class Model(L.LightningModule):
//!     def __init__(self):
//!         super().__init__()
//!         self.validation_step_outputs = []
//!
//!     def validation_step(self, batch, batch_idx):
//!         self.validation_step_outputs.append(self.net(batch))
//!
//!     def on_validation_epoch_end(self):
//!         self.log("score", torch.cat(self.validation_step_outputs).mean())
//!         self.validation_step_outputs.clear()
//! ```
//!
//! ## When it is silent
//! An attribute of this name is cleared, emptied or assigned anew anywhere in the project outside a constructor, or what is
//! gathered are numbers or text. Losses, tensors of one number, are information only.
//!
//! ## Fix
//! Unsafe: clears the list as the last thing in the hook for the end of the epoch, if the class has it. If others read the list
//! later, they find it empty.
//!
//! ## References
//! - Lightning-AI/pytorch-lightning#16520, sktime/pytorch-forecasting#1924

use super::lightning;
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::{How, Keep, Root},
    fix::{Applicability, Fix},
    flow::value::{GroupKind, Size, Value},
    names::{ClassId, FunctionNode},
    rule::{Framework, Rule},
    syntax::ast::Stmt,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK705",
    name: "step-outputs-never-cleared",
    frameworks: &[Framework::Lightning],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

/// Methods that run for each batch, and the hook that runs when the batches are through.
const STEPS: &[(&str, &str)] = &[
    ("training_step", "on_train_epoch_end"),
    ("validation_step", "on_validation_epoch_end"),
    ("test_step", "on_test_epoch_end"),
    ("predict_step", "on_predict_epoch_end"),
    ("on_train_batch_end", "on_train_epoch_end"),
    ("on_validation_batch_end", "on_validation_epoch_end"),
    ("on_test_batch_end", "on_test_epoch_end"),
];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for keep in &context.facts.keeps {
        let grows = match keep.how {
            How::Append | How::Extend => true,
            How::SetItem => !Context::has_constant_key(keep),
            _ => false,
        };
        let Root::SelfAttribute(class, name) = keep.root else { continue };
        let method = context.names.function(keep.at.function).name;
        let Some((_, hook)) = STEPS.iter().find(|(step, _)| *step == method) else { continue };
        let holds_numbers = match &keep.value {
            Value::Plain => true,
            Value::Group(group) => matches!(group.element, Value::Plain),
            _ => false,
        };
        if !grows
            || holds_numbers
            || keep.before.as_group().is_none()
            || !lightning::is_in_method(context, &keep.at, &[method])
            || context.is_bounded(keep)
        {
            continue;
        }
        let target = context.text(keep.target);
        let is_small = is_small(&keep.value);
        let severity = if is_small { Severity::Info } else { Severity::Warning };
        found.push(
            Diagnostic::new(
                &RULE,
                severity,
                keep.range,
                format!("`{target}` keeps something of every batch of all epochs: nothing clears it"),
            )
            .because(format!("`{method}` runs for each batch, and the module lives as long as the run"))
            .advise(format!("call `self.{name}.clear()` at the end of `{hook}`"))
            .fixed_by(clear(context, keep, class, name, hook)),
        );
    }
}

/// Whether all tensors of a value are single numbers.
fn is_small(value: &Value) -> bool {
    match value {
        Value::Tensor(tensor) => tensor.size == Size::Scalar,
        Value::Group(group) if !group.parts.is_empty() => group.parts.iter().all(is_small),
        Value::Group(group) => is_small(&group.element),
        Value::Plain => true,
        _ => false,
    }
}

/// Clears the list at the end of the hook.
fn clear(context: &Context<'_>, keep: &Keep<'_>, class: ClassId, name: &str, hook: &str) -> Option<Fix> {
    let group = keep.before.as_group()?;
    let function = context.names.function(*context.names.class(class).methods.get(hook)?);
    let receiver = function.receiver()?;
    let FunctionNode::Def(def) = function.node else { return None };
    let last = def.body.last()?;
    let is_simple = matches!(last, Stmt::Expr(_) | Stmt::Assign(_) | Stmt::AugAssign(_));
    if !is_simple || !context.is_alone_on_its_lines(last) || !matches!(group.kind, GroupKind::List | GroupKind::Dict) {
        return None;
    }
    // `xs = self.outputs` may stand for the list itself, which would then be empty for whoever uses it.
    let edit = context.line_below(last, last, &format!("{receiver}.{name}.clear()"));
    Some(Fix::new(Applicability::Unsafe, format!("clear it at the end of `{hook}`"), vec![edit]))
}
