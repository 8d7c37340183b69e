//! `functools.lru_cache` on a function that gets tensors or modules.
//!
//! ## Why it matters
//! Tensors and modules are compared by identity, so a new batch never finds an earlier result; but every call keeps its
//! arguments and its result: 8.4 MB a call for one tensor of 4.2 MB and a result of the same size.
//!
//! ## Example
//! ```python
//! import functools
//! import torch
//!
//! @functools.lru_cache(maxsize=None)
//! def normalize(x: torch.Tensor):
//!     return x / x.norm()
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! def normalize(x: torch.Tensor):
//!     return x / x.norm()
//! ```
//!
//! ## When it is silent
//! Nothing says that an argument is a tensor or a module: neither an annotation nor a call in the same file. Classes as
//! arguments. `maxsize=0`.
//!
//! ## Fix
//! Only advice: take the cache away, or cache by shape and device.
//!
//! ## References
//! - meta-pytorch/torchtune#904

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    flow::value::Value,
    names::FunctionId,
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK308",
    name: "lru-cache-with-tensor-argument",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for id in (0..context.names.functions.len() as u32).map(FunctionId) {
        let Some(cache) = context.cache_of(id) else { continue };
        let function = context.names.function(id);
        let receiver = function.receiver().filter(|_| !context.is_without_object(id));
        let held = function.parameters().map(|it| &it.parameter).find_map(|it| {
            let name = it.name.as_str();
            if it.annotation.as_deref().is_some_and(|it| is_plain_type(context.text(it))) {
                return None;
            }
            let what = match context.facts.names.get(&(id, name)) {
                Some(Value::Tensor(_)) => "tensor",
                Some(value) if context.is_module(value) => "module",
                _ => return None,
            };
            (receiver != Some(name)).then_some((it, what))
        });
        let Some((parameter, what)) = held else { continue };
        let name = parameter.name.as_str();
        let until = if cache.is_unbounded { "for ever" } else { "until newer calls push it out" };
        let message = format!("the cache of `{}` keeps every `{name}` and its result, {until}", function.name);
        found.push(
            Diagnostic::new(&RULE, Severity::Warning, cache.decorator, message)
                .because_of(parameter, format!("`{name}` is a {what}, which is equal only to itself"))
                .advise("take the cache away, or cache by plain values such as shape and device"),
        );
    }
}

/// Whether a type annotation speaks of numbers, text and such only.
fn is_plain_type(annotation: &str) -> bool {
    let mut words = annotation.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|it| !it.is_empty());
    words.all(|it| {
        matches!(
            it,
            "int" | "float" | "bool" | "str" | "bytes" | "None" | "Optional" | "Union" | "tuple" | "Tuple"
                | "torch" | "dtype" | "device" | "typing" | "Size"
        )
    })
}
