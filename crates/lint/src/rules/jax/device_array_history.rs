//! Gathers results of a compiled function, arrays on the device, over the whole run.
//!
//! ## Why it matters
//! Every array that a list refers to stays on the device. A number takes 256 bytes or more there with its buffer; an output takes its
//! whole size. What is not yet computed holds its inputs, too.
//!
//! ## Example
//! ```python
//! import jax
//!
//!
//! @jax.jit
//! def step(params, batch):
//!     return params, (params * batch).mean()
//!
//!
//! history = []
//! for batch in loader:
//!     params, loss = step(params, batch)
//!     history.append(loss)
//! ```
//! Use instead:
//! ```python
//! import jax
//!
//!
//! @jax.jit
//! def step(params, batch):
//!     return params, (params * batch).mean()
//!
//!
//! history = []
//! for batch in loader:
//!     params, loss = step(params, batch)
//!     history.append(float(loss))
//! ```
//! `float` waits for the device: do it every hundred steps, or fetch the list at the end of each epoch with `jax.device_get`.
//!
//! ## When it is silent
//! The list is emptied again, or what is kept was not computed by a compiled function of the same file. Mostly these are a few
//! numbers, so the rule is off by default.
//!
//! ## Fix
//! Wraps what is kept in `float`: unsafe, since it waits for the device and works for single numbers only.
//!
//! ## References
//! - [JAX: profiling device memory](https://docs.jax.dev/en/latest/device_memory_profiling.html)

use super::wrappers::JIT;
use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::{How, Keep},
    fix::{Applicability, Edit, Fix},
    rule::{Framework, Rule},
    syntax::{Ranged, ast::Expr},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK954",
    name: "device-array-history",
    frameworks: &[Framework::Jax],
    severity: Severity::Info,
    default: false,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for keep in context.facts.keeps.iter().filter(|it| it.how == How::Append) {
        let Some(Repetition::Data(id)) = context.repetition(keep) else { continue };
        if !is_result(context, keep) || context.is_bounded(keep) {
            continue;
        }
        let (list, kept) = (context.text(keep.target), context.text(keep.kept));
        let node = context.names.the_loop(id).node;
        let edit = Edit::replace(keep.kept, format!("float({kept})"));
        found.push(
            Diagnostic::new(&RULE, Severity::Info, keep.range, format!("`{list}` keeps `{kept}` of every step on the device"))
                .because_of(node.iterable().map_or(node.range(), Ranged::range), format!("`{list}` outlives every round of this loop"))
                .advise("keep `float(…)` of a number, or fetch what is kept from time to time with `jax.device_get`")
                .fixed_by(Fix::new(Applicability::Unsafe, "keep a Python number", vec![edit])),
        );
    }
}

/// Whether what is kept is a name that gets its value from a compiled function in the same loop.
fn is_result<'a>(context: &Context<'a>, keep: &Keep<'a>) -> bool {
    let Expr::Name(kept) = keep.kept else { return false };
    context.facts.assignments.iter().any(|it| {
        let is_same = matches!(it.target, Expr::Name(name) if name.id == kept.id);
        is_same
            && it.at.function == keep.at.function
            && it.at.in_loop == keep.at.in_loop
            && matches!(it.expr, Expr::Call(made) if context.facts.calls.iter().any(|call| {
                std::ptr::eq(call.expr, made) && context.compiled_callee(call, JIT).is_some()
            }))
    })
}
