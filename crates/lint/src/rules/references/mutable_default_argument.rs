//! A function puts tensors into a list that is the default of one of its parameters.
//!
//! ## Why it matters
//! The default is made once, when the function is defined, and lives as long as it: every call without that argument adds to
//! the same list, and nothing frees it.
//!
//! ## Example
//! ```python
//! import torch
//!
//! def collect(x, outputs=[]):
//!     outputs.append(torch.relu(x))
//!     return outputs
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! def collect(x, outputs=None):
//!     outputs = [] if outputs is None else outputs
//!     outputs.append(torch.relu(x))
//!     return outputs
//! ```
//!
//! ## When it is silent
//! Nothing is put into it, or something is taken out; what is put in is not known to be a tensor.
//!
//! ## Fix
//! Only advice: take `None` as the default and make the list in the function.
//!
//! ## References
//! - Ruff's `mutable-argument-default` (B006) for any function

use super::class_level_container::is_empty_container;
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::{How, Root},
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK208",
    name: "mutable-default-argument",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut told = Vec::new();
    for keep in &context.facts.keeps {
        let Root::Name(owner, name) = keep.root else { continue };
        let puts = matches!(keep.how, How::Append | How::Extend | How::SetItem | How::Update);
        if !puts || told.contains(&(owner, name)) || keep.value.tensor_within().is_none() {
            continue;
        }
        let parameter = context.names.function(owner).parameters().find(|it| it.parameter.name.as_str() == name);
        let Some(default) = parameter.and_then(|it| it.default.as_deref()) else { continue };
        let is_replaced = context.definitions(keep.root).len() > 1;
        if !is_empty_container(default) || is_replaced || context.is_bounded(keep) || Context::has_constant_key(keep) {
            continue;
        }
        told.push((owner, name));
        let kept = context.text(keep.kept);
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                default,
                format!("`{name}` is the same object in every call, and keeps what all of them put into it"),
            )
            .because_of(keep.range, format!("`{kept}` is put into it here"))
            .advise("take `None` as the default, and make it in the function"),
        );
    }
}
