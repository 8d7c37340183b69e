//! Keeps a small window into a large tensor, which keeps all of it.
//!
//! ## Why it matters
//! `x[:, -1]` copies nothing: it is a view that holds the memory of the whole of `x`. Keeping one row of each batch keeps
//! every batch: measured 4.2 MB a step for one row of 1024 numbers, and 4 KB after `.clone()`.
//!
//! ## Example
//! ```python
//! import torch
//!
//! last = []
//! with torch.no_grad():
//!     for batch in loader:
//!         hidden = torch.tanh(model(batch))
//!         last.append(hidden[:, -1])
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! last = []
//! with torch.no_grad():
//!     for batch in loader:
//!         hidden = torch.tanh(model(batch))
//!         last.append(hidden[:, -1].clone())
//! ```
//!
//! ## When it is silent
//! The index is a tensor, a list or a mask, which copies; it has no single number in it, so most of the tensor may be kept
//! anyway; nothing shows that the indexed value is a tensor and not a tuple; the tensor has a graph, which the rules about
//! graphs report.
//!
//! ## Fix
//! Appends `.clone()`. Unsafe: what is written to the tensor later no longer shows in the copy.
//!
//! ## References
//! - pytorch/pytorch#1995, pytorch/pytorch#33101, pytorch/pytorch#40157

use super::to_host::{append, because_repeated};
use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::How,
    fix::Applicability,
    flow::value::{Graph, Value},
    rule::{Framework, Rule},
    syntax::{
        ast::Expr,
        int_literal,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK205",
    name: "view-pins-base",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for keep in &context.facts.keeps {
        if !is_window(keep.kept) || !matches!(keep.how, How::Append | How::SetItem) {
            continue;
        }
        let Value::Tensor(tensor) = &keep.value else { continue };
        let has_graph = tensor.graph > Graph::Unknown && context.graph(&keep.value, &keep.at) >= Graph::Likely;
        let Some(repetition @ (Repetition::Data(_) | Repetition::Called | Repetition::Framework)) =
            context.repetition(keep)
        else {
            continue;
        };
        if !tensor.is_view || has_graph || context.is_bounded(keep) || Context::has_constant_key(keep) {
            continue;
        }
        let (target, kept) = (context.text(keep.target), context.text(keep.kept));
        let base = match keep.kept {
            Expr::Subscript(it) => context.text(&*it.value),
            _ => kept,
        };
        let message = format!("`{target}` keeps all of `{base}` for the sake of `{kept}`, which is a view of it");
        let diagnostic = Diagnostic::new(&RULE, Severity::Warning, keep.range, message);
        found.push(
            because_repeated(context, diagnostic, keep, repetition)
                .advise("keep a `.clone()` of the part that is needed")
                .fixed_by(append(keep, ".clone()", "append `.clone()`, which lets go of the rest")),
        );
    }
}

/// Whether an expression picks one of several along some dimension, which only a tensor can do with more than one index.
pub(super) fn is_window(expr: &Expr) -> bool {
    let Expr::Subscript(it) = expr else { return false };
    let Expr::Tuple(index) = &*it.slice else { return false };
    matches!(&*it.value, Expr::Name(_) | Expr::Attribute(_))
        && index.elts.len() > 1
        && index.elts.iter().any(|it| int_literal(it).is_some())
        && index.elts.iter().all(|it| {
            matches!(it, Expr::Slice(_) | Expr::EllipsisLiteral(_) | Expr::NoneLiteral(_))
                || int_literal(it).is_some()
        })
}
