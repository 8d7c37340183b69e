//! `functools.lru_cache` on a method of a class whose objects hold modules or tensors.
//!
//! ## Why it matters
//! The cache belongs to the class and has `self` in every key: it holds each object that called the method, with all its
//! parameters, until the entry is pushed out or the process ends. In transformers 85 MB stayed after `del model` of one
//! RT-DETR model.
//!
//! ## Example
//! ```python
//! import functools
//! import torch.nn as nn
//!
//! class Net(nn.Module):
//!     @functools.lru_cache(maxsize=None)
//!     def grid(self, height, width):
//!         return height * width
//! ```
//! Use instead:
//! ```python
//! import functools
//! import torch.nn as nn
//!
//! class Net(nn.Module):
//!     @staticmethod
//!     @functools.lru_cache(maxsize=None)
//!     def grid(height, width):
//!         return height * width
//! ```
//!
//! ## When it is silent
//! Static and class methods; `maxsize=0`; classes of whose objects nothing says that they hold device memory.
//!
//! ## Fix
//! Only advice: cache in the object, in a buffer, or in a function of plain values.
//!
//! ## References
//! - Ruff's `cached-instance-method` (B019) for any class
//! - huggingface/transformers#45412, facebookresearch/ParlAI#2487, pytorch/pytorch#147233

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    names::FunctionId,
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK307",
    name: "lru-cache-on-method",
    frameworks: &[Framework::Torch, Framework::Any],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for id in (0..context.names.functions.len() as u32).map(FunctionId) {
        let function = context.names.function(id);
        let Some(class) = function.class else { continue };
        let Some(cache) = context.cache_of(id) else { continue };
        if function.receiver().is_none() || context.is_without_object(id) || !context.holds_memory(class) {
            continue;
        }
        let name = context.names.class(class).node.name.as_str();
        let until = if cache.is_unbounded { "for ever" } else { "until newer calls push it out" };
        let message = format!("the cache of `{}` keeps every `{name}` that called it, {until}", function.name);
        found.push(
            Diagnostic::new(&RULE, Severity::Warning, cache.decorator, message)
                .because("the cache belongs to the class, and `self` is part of every key")
                .because(format!("objects of `{name}` hold modules or tensors"))
                .advise("cache in the object itself, or in a function of plain values"),
        );
    }
}
