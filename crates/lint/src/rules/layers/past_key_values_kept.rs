//! Gathers key-value caches in a list or dict.
//!
//! ## Why it matters
//! `past_key_values` holds the keys and values of all layers for all tokens so far, half a MB for each token of a model
//! of 7 billion parameters. One that is handed from step to step is what makes decoding fast; each one that is put
//! into a list or dict stays on the GPU.
//!
//! ## Example
//! ```python
//! caches = {}
//! for prompt in prompts:
//!     out = model(prompt, use_cache=True)
//!     caches[prompt.id] = out.past_key_values
//! ```
//! Use instead:
//! ```python
//! past = None
//! for prompt in prompts:
//!     out = model(prompt, past_key_values=past, use_cache=True)
//!     past = out.past_key_values
//! ```
//! To go on later, keep the ids of the tokens and compute the cache again, or bound the number of caches.
//!
//! ## When it is silent
//! The cache replaces the one before it (a name, an attribute, a constant key), or what holds the caches is emptied again.
//!
//! ## Fix
//! Only advice: a cache of prefixes may be wanted.
//!
//! ## References
//! - generative-computing/mellea#544, huggingface/transformers#30536, huggingface/transformers#25930

use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
    syntax::{ast::Expr, text_literal},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK703",
    name: "past-key-values-kept",
    frameworks: &[Framework::HuggingFace],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for keep in &context.facts.keeps {
        if !Context::adds_each_time(keep) || !is_cache(keep.kept) {
            continue;
        }
        let Some(repetition) = context.repetition(keep) else { continue };
        if context.is_bounded(keep) {
            continue;
        }
        let target = context.text(keep.target);
        let mut diagnostic = Diagnostic::new(
            &RULE,
            Severity::Warning,
            keep.range,
            format!("`{target}` keeps a key-value cache more every time, all on the GPU"),
        );
        if let Repetition::Data(id) | Repetition::Loop(id) = repetition {
            diagnostic = diagnostic
                .because_of(context.head(id), format!("`{target}` outlives every round of this loop"));
        }
        found.push(diagnostic.advise("keep the ids of the tokens, or a bounded number of caches"));
    }
}

/// `out.past_key_values`, `out["past_key_values"]`
fn is_cache(expr: &Expr) -> bool {
    match expr {
        Expr::Attribute(it) => it.attr.as_str() == "past_key_values",
        Expr::Subscript(it) => text_literal(&it.slice) == Some("past_key_values"),
        _ => false,
    }
}
