//! Replaces a state by what a compiled function makes of it, without donating the old one.
//!
//! ## Why it matters
//! Arrays of JAX do not change: the new parameters and optimizer state are new buffers, and the old ones live until the call is over.
//! The peak holds the state twice. With `donate_argnums` XLA writes the new state into the buffers of the old.
//!
//! ## Example
//! ```python
//! import jax
//!
//! step = jax.jit(train_step)
//! for batch in loader:
//!     state = step(state, batch)
//! ```
//! Use instead:
//! ```python
//! import jax
//!
//! step = jax.jit(train_step, donate_argnums=(0,))
//! for batch in loader:
//!     state = step(state, batch)
//! ```
//!
//! ## When it is silent
//! The call donates already; the state has a second name, goes into a list or is looked at by a closure, for which the old buffers
//! would be gone; the loop does not go over data; the file is a test.
//!
//! ## Fix
//! Adds `donate_argnums` where the call of `jax.jit` is in sight: unsafe, since whoever else holds the old state cannot use it any more.
//!
//! ## References
//! - [JAX: buffer donation](https://docs.jax.dev/en/latest/buffer_donation.html), jax-ml/jax#2936

use super::wrappers::JIT;
use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::{Callee, Root},
    fix::{Applicability, Fix},
    names::Usage,
    rule::{Framework, Rule},
    syntax::{
        ast::{Expr, Stmt},
        is_same_place,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK956",
    name: "state-update-without-donation",
    frameworks: &[Framework::Jax],
    severity: Severity::Info,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for call in context.facts.calls.iter().filter(|it| it.at.in_loop.is_some() && !it.has_unpacking()) {
        let Stmt::Assign(assign) = call.at.statement else { continue };
        let is_whole = matches!(&*assign.value, Expr::Call(it) if std::ptr::eq(it, call.expr));
        let [target] = assign.targets.as_slice() else { continue };
        if !is_whole {
            continue;
        }
        let targets = match target {
            Expr::Tuple(it) => it.elts.as_slice(),
            one => std::slice::from_ref(one),
        };
        let replaced: Vec<usize> = call
            .expr
            .arguments
            .args
            .iter()
            .enumerate()
            .filter(|(_, argument)| {
                matches!(argument, Expr::Name(_)) && targets.iter().any(|it| is_same_place(it, argument))
            })
            .map(|(position, _)| position)
            .collect();
        if replaced.is_empty() {
            continue;
        }
        let Some(Repetition::Data(_)) = context.repetition_at(&call.at) else { continue };
        let Some(compiled) = context.compiled_callee(call, JIT) else { continue };
        let donates = ["donate_argnums", "donate_argnames", "donate"].iter().any(|it| compiled.option(it).is_some());
        let is_shared = replaced.iter().any(|it| {
            call.expr.arguments.args.get(*it).is_none_or(|it| is_held_elsewhere(context, call.at.function, it))
        });
        if donates || compiled.has_unseen_options() || is_shared {
            continue;
        }
        let shift = usize::from(matches!(call.callee, Callee::Method { .. }) && compiled.is_decorated);
        let numbers: Vec<String> = replaced.iter().map(|it| (it + shift).to_string()).collect();
        let numbers = match numbers.as_slice() {
            [one] => format!("({one},)"),
            many => format!("({})", many.join(", ")),
        };
        let fix = compiled.options.and_then(|it| context.add_keyword(it, &format!("donate_argnums={numbers}")));
        let names: Vec<String> = replaced
            .iter()
            .filter_map(|it| call.expr.arguments.args.get(*it))
            .map(|it| format!("`{}`", context.text(it)))
            .collect();
        let names = names.join(" and ");
        found.push(
            Diagnostic::new(&RULE, Severity::Info, call.expr, format!("the old and the new {names} are on the device at once"))
                .because_of(compiled.place, "compiled without `donate_argnums`")
                .advise(format!("compile with `donate_argnums={numbers}`"))
                .fixed_by(fix.map(|edit| Fix::new(Applicability::Unsafe, "donate the buffers of the old state", vec![edit]))),
        );
    }
}

/// Whether anything else may hold the state: another name, a list, a closure.
fn is_held_elsewhere<'a>(context: &Context<'a>, function: crate::names::FunctionId, state: &'a Expr) -> bool {
    let Expr::Name(name) = state else { return true };
    context.uses(Root::Name(function, name.id.as_str())).iter().any(|it| match it.usage {
        // Part of a target that is unpacked into is no mention of the old state.
        Usage::Gathered => !matches!(it.expr, Expr::Name(name) if name.ctx.is_store()),
        Usage::Assigned | Usage::Other => true,
        Usage::Argument(call) => matches!(
            &*call.func,
            Expr::Attribute(it) if matches!(it.attr.as_str(), "append" | "add" | "put" | "appendleft")
        ),
        _ => it.function != function,
    })
}
