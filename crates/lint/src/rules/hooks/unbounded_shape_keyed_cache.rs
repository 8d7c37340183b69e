//! A dict that caches tensors by a key which callers choose, and from which nothing is ever taken.
//!
//! ## Why it matters
//! Every new shape, length or index adds one more tensor for as long as the program runs. With inputs of changing size,
//! the cache holds a table for each size ever seen; a rotary-embedding library mended exactly this.
//!
//! ## Example
//! ```python
//! import torch
//!
//! cache = {}
//!
//! def positions(length, device):
//!     if length not in cache:
//!         cache[length] = torch.arange(length, device=device)
//!     return cache[length]
//!
//! for batch in loader:
//!     model(batch, positions(batch.shape[1], "cuda"))
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! cache = {}
//!
//! def positions(length, device):
//!     if length not in cache:
//!         if len(cache) > 8:
//!             cache.clear()
//!         cache[length] = torch.arange(length, device=device)
//!     return cache[length]
//!
//! for batch in loader:
//!     model(batch, positions(batch.shape[1], "cuda"))
//! ```
//! Or keep the largest table only, and give out slices of it.
//!
//! ## When it is silent
//! Something is taken out of the dict or its length is asked for; the key is a constant, a device, a type or a name, of which
//! there are few; nothing in sight calls the function again and again; the value is not known to be a tensor.
//!
//! ## Fix
//! Only advice: how many entries are enough depends on the use.
//!
//! ## References
//! - lucidrains/rotary-embedding-torch#15, unslothai/unsloth#7678, huggingface/transformers#40007

use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::{Branch, How, Keep, Root},
    flow::value::{Place, Size},
    names::FunctionId,
    rule::{Framework, Rule},
    syntax::{
        ast::{CmpOp, Expr},
        is_same_place, mentions,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK309",
    name: "unbounded-shape-keyed-cache",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for keep in &context.facts.keeps {
        let Some(key) = keep.key.filter(|_| keep.how == How::SetItem) else { continue };
        let outlives = match keep.root {
            Root::Name(owner, _) => owner == FunctionId::MODULE && keep.at.function != FunctionId::MODULE,
            Root::SelfAttribute(..) => true,
            _ => false,
        };
        let holds_tensors = keep.value.tensor_within().is_some_and(|it| {
            it.place != Place::Host && !matches!(it.size, Size::Scalar)
        });
        if !outlives || !holds_tensors || !is_on_miss(keep) {
            continue;
        }
        if context.is_bounded(keep) || context.is_measured(keep.root) || Context::has_constant_key(keep) {
            continue;
        }
        let repetition = context.repetition_of_function(keep.at.function);
        if !matches!(repetition, Some(Repetition::Called | Repetition::Framework))
            || !context.comes_from_parameter(keep.at.function, key)
        {
            continue;
        }
        let (cache, key) = (context.text(keep.target), context.text(key));
        let name = context.names.function(keep.at.function).name;
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                keep.range,
                format!("`{cache}` keeps a tensor for every `{key}` that it ever sees"),
            )
            .because(format!("`{name}` runs again and again, and callers choose the key"))
            .because("nothing takes entries out")
            .advise("bound the cache, or keep the largest tensor only and slice it"),
        );
    }
}

/// Whether something is stored because it was not found: `if key not in cache`, `except KeyError`.
fn is_on_miss(keep: &Keep<'_>) -> bool {
    match keep.at.branch {
        Some(Branch::If(test)) => mentions(test, &|it| match it {
            Expr::Compare(it) => {
                it.ops.iter().any(|op| matches!(op, CmpOp::NotIn | CmpOp::In | CmpOp::Is))
                    && it.comparators.iter().any(|it| is_same_place(it, keep.target) || it.is_none_literal_expr())
            }
            _ => false,
        }),
        Some(Branch::Except(handler)) => handler
            .type_
            .as_deref()
            .is_some_and(|it| matches!(it, Expr::Name(it) if it.id.as_str() == "KeyError")),
        _ => false,
    }
}
