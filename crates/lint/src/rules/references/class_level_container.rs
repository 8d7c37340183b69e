//! A list or dict in the body of a class, into which methods put tensors.
//!
//! ## Why it matters
//! Such a list belongs to the class, not to its objects: all of them fill the same one, and none of them frees it when it is
//! deleted. What is in it stays until the process ends.
//!
//! ## Example
//! ```python
//! import torch
//!
//! class Net(torch.nn.Module):
//!     features = []
//!
//!     def forward(self, x):
//!         x = torch.relu(x)
//!         self.features.append(x)
//!         return x
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! class Net(torch.nn.Module):
//!     def __init__(self):
//!         super().__init__()
//!         self.features = []
//!
//!     def forward(self, x):
//!         self.features.clear()
//!         x = torch.relu(x)
//!         self.features.append(x)
//!         return x
//! ```
//!
//! ## When it is silent
//! A method gives each object a list of its own, or something empties the list; what is put in is not known to be a tensor.
//!
//! ## Fix
//! Only advice: make it in `__init__`.
//!
//! ## References
//! - Ruff's `mutable-class-default` (RUF012) for any class

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::{How, Root},
    names::{Definition, Usage},
    rule::{Framework, Rule},
    syntax::ast::Expr,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK207",
    name: "class-level-container",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut told = Vec::new();
    for keep in &context.facts.keeps {
        let Root::SelfAttribute(class, name) = keep.root else { continue };
        let puts = matches!(keep.how, How::Append | How::Extend | How::SetItem | How::Update);
        if !puts || told.contains(&(class, name)) || keep.value.tensor_within().is_none() {
            continue;
        }
        let scope = context.names.scope(context.names.class(class).scope);
        let made = scope.names.get(name).and_then(|it| match it.definitions.as_slice() {
            [Definition::Value(value, _)] if is_empty_container(value) => Some(*value),
            _ => None,
        });
        let Some(made) = made else { continue };
        let is_own = context.uses(keep.root).iter().any(|it| matches!(it.usage, Usage::Stored | Usage::Deleted));
        if is_own || context.is_bounded(keep) || Context::has_constant_key(keep) {
            continue;
        }
        told.push((class, name));
        let kept = context.text(keep.kept);
        let class = context.names.class(class).node.name.as_str();
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                made,
                format!("`{name}` belongs to the class, so what `{class}` objects put into it stays after them"),
            )
            .because_of(keep.range, format!("`{kept}` is put into it here"))
            .advise("make it in `__init__`, so that it ends with its object"),
        );
    }
}

/// `[]`, `{}`, `list()`, `dict()`
pub(super) fn is_empty_container(expr: &Expr) -> bool {
    match expr {
        Expr::List(it) => it.elts.is_empty(),
        Expr::Dict(it) => it.items.is_empty(),
        Expr::Call(call) => {
            call.arguments.is_empty()
                && matches!(&*call.func, Expr::Name(it) if matches!(it.id.as_str(), "list" | "dict" | "set"))
        }
        _ => false,
    }
}
