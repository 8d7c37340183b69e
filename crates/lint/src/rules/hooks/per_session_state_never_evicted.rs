//! Keeps the key-value cache of a language model for every session, and never drops one.
//!
//! ## Why it matters
//! `past_key_values` holds two tensors a layer for every token so far: for a 7B model about half a megabyte a token, so
//! that one session of 4096 tokens is 2 GB. Sessions that never end stay in a dict for as long as the server runs.
//!
//! ## Example
//! ```python
//! import torch
//!
//! sessions = {}
//!
//! def chat(session_id, tokens):
//!     out = model(tokens, past_key_values=sessions.get(session_id), use_cache=True)
//!     sessions[session_id] = out.past_key_values
//!     return out.logits
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! sessions = {}
//!
//! def chat(session_id, tokens):
//!     out = model(tokens, past_key_values=sessions.get(session_id), use_cache=True)
//!     sessions[session_id] = out.past_key_values
//!     while len(sessions) > 8:
//!         sessions.pop(next(iter(sessions)))
//!     return out.logits
//! ```
//!
//! ## When it is silent
//! Something is taken out of the dict, or its length is asked for; the key is a constant; the dict ends with the function.
//!
//! ## Fix
//! Only advice: which sessions may go is for the program to say.
//!
//! ## References
//! - generative-computing/mellea#544, facebookresearch/sam2#258, facebookresearch/sam3#305

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::{How, Root},
    names::FunctionId,
    rule::{Framework, Rule},
    syntax::ast::Expr,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK310",
    name: "per-session-state-never-evicted",
    frameworks: &[Framework::HuggingFace, Framework::Serving],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for keep in &context.facts.keeps {
        let Some(key) = keep.key.filter(|_| keep.how == How::SetItem) else { continue };
        let is_state = match keep.kept {
            Expr::Attribute(it) => matches!(it.attr.as_str(), "past_key_values" | "cache_params"),
            Expr::Name(it) => is_named_like_a_cache(it.id.as_str()),
            _ => false,
        };
        let outlives = match keep.root {
            Root::Name(owner, _) => owner == FunctionId::MODULE && keep.at.function != FunctionId::MODULE,
            Root::SelfAttribute(..) => true,
            _ => false,
        };
        if !is_state || !outlives || !context.comes_from_parameter(keep.at.function, key) {
            continue;
        }
        if context.is_bounded(keep) || context.is_measured(keep.root) || Context::has_constant_key(keep) {
            continue;
        }
        let (dict, key) = (context.text(keep.target), context.text(key));
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                keep.range,
                format!("`{dict}` keeps the key-value cache of every `{key}`, and nothing takes one out"),
            )
            .because("it holds two tensors a layer for every token of the session")
            .advise("drop the oldest sessions, or delete a session's state when it ends"),
        );
    }
}

/// `past`, `pasts`, `past_kv`, `kv_cache`
fn is_named_like_a_cache(name: &str) -> bool {
    name.split('_').any(|it| matches!(it, "past" | "pasts" | "kv" | "kvs"))
}
