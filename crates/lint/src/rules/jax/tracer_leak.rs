//! Puts a traced value into a list, dict or attribute outside of the function that JAX traces.
//!
//! ## Why it matters
//! The Python code of a compiled, mapped or differentiated function runs only while JAX traces it, and what it keeps then is a tracer:
//! it holds the whole trace in memory, once for each compilation, and raises `UnexpectedTracerError` when somebody uses it.
//!
//! ## Example
//! ```python
//! import jax
//!
//! activations = []
//!
//!
//! @jax.jit
//! def forward(params, x):
//!     h = params * x
//!     activations.append(h)
//!     return h.sum()
//! ```
//! Use instead:
//! ```python
//! import jax
//!
//!
//! @jax.jit
//! def forward(params, x):
//!     h = params * x
//!     return h.sum(), h
//! ```
//! `JAX_CHECK_TRACER_LEAKS=1` finds such places at run time.
//!
//! ## When it is silent
//! What is kept is known while tracing (a shape, a static argument, a constant), or the list belongs to the function itself; `flax.nnx`
//! and `equinox` update the state of what they trace and are not meant.
//!
//! ## Fix
//! Only advice: the value has to be returned.
//!
//! ## References
//! - [JAX: UnexpectedTracerError](https://docs.jax.dev/en/latest/errors.html#jax.errors.UnexpectedTracerError), jax-ml/jax#5492, #3086, #13022

use super::wrappers::TRACE;
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK955",
    name: "tracer-leak",
    frameworks: &[Framework::Jax],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for keep in &context.facts.keeps {
        let Some(compiled) = context.leaks_traced(keep, TRACE) else { continue };
        let (target, kept) = (context.text(keep.target), context.text(keep.kept));
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                keep.range,
                format!("`{target}` gets `{kept}` while JAX traces the function, and holds the whole trace"),
            )
            .because_of(compiled.place, "the function is traced here")
            .advise("return the value and keep it where the function is called"),
        );
    }
}
