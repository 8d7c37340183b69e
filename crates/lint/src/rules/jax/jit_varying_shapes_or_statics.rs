//! Calls a compiled function with another shape or another static number in every round.
//!
//! ## Why it matters
//! JAX compiles a function for each shape of its arguments and each value of its static ones, and keeps every executable. Where they
//! change with the loop, the cache grows with every round.
//!
//! ## Example
//! ```python
//! import jax
//!
//!
//! @jax.jit
//! def mean(x):
//!     return x.mean()
//!
//!
//! for step in range(1, num_steps):
//!     mean(history[:step])
//! ```
//! Use instead:
//! ```python
//! import jax
//!
//!
//! @jax.jit
//! def mean(x, length):
//!     return (x * (jax.numpy.arange(x.shape[0]) < length)).sum() / length
//!
//!
//! for step in range(1, num_steps):
//!     mean(history, step)
//! ```
//! Pad to a few sizes, and pass numbers as usual arguments rather than static ones.
//!
//! ## When it is silent
//! The loop has few rounds, or the size of a slice is the same in each (`x[i : i + 32]`).
//!
//! ## Fix
//! Only advice.
//!
//! ## References
//! - [JAX: static arguments](https://docs.jax.dev/en/latest/jit-compilation.html), jax-ml/jax#2072, #11923, #10878

use super::wrappers::JIT;
use crate::{
    context::{Compiled, Context, Rounds},
    diagnostic::{Diagnostic, Severity},
    facts::{Call, Callee},
    rule::{Framework, Rule},
    syntax::{
        ast::{self, Expr},
        int_literal, mentions, text_literal,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK952",
    name: "jit-varying-shapes-or-statics",
    frameworks: &[Framework::Jax],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.facts.calls.iter().filter(|it| it.at.in_loop.is_some() && !it.has_unpacking()) {
        let Some(compiled) = context.compiled_callee(call, JIT) else { continue };
        let arguments = &call.expr.arguments;
        // A method's own object is the first argument of what is compiled.
        let shift = usize::from(matches!(call.callee, Callee::Method { .. }) && compiled.is_decorated);
        let by_position = arguments.args.iter().enumerate().map(|(at, it)| (Some(at + shift), None, it));
        let by_name = arguments.keywords.iter().map(|it| (None, it.arg.as_ref(), &it.value));
        for (position, name, argument) in by_position.chain(by_name) {
            let name = name.map(ast::Identifier::as_str).or_else(|| parameter(context, &compiled, position?));
            if let Expr::Name(it) = argument
                && is_static(&compiled, position, name)
                && is_counted(context, call, it.id.as_str())
            {
                let text = &it.id;
                found.push(
                    Diagnostic::new(&RULE, Severity::Warning, argument, format!("`{text}` is static: JAX compiles and keeps the function for each of its values"))
                        .because_of(compiled.place, "declared static here")
                        .advise("pass it as a usual argument"),
                );
            } else if let Some(counter) = growing_slice(context, call, argument) {
                found.push(
                    Diagnostic::new(&RULE, Severity::Warning, argument, format!("its shape changes with `{counter}`: JAX compiles and keeps the function for each shape"))
                        .because_of(compiled.place, "compiled here")
                        .advise("pad to one size or a few, and mask what is padding"),
                );
            }
        }
    }
}

fn parameter<'a>(context: &Context<'a>, compiled: &Compiled<'a>, position: usize) -> Option<&'a str> {
    let function = context.names.function(compiled.function?);
    let is_bound = function.class.is_some() && !compiled.is_decorated;
    function.parameters().nth(position + usize::from(is_bound)).map(|it| it.parameter.name.as_str())
}

fn is_static(compiled: &Compiled<'_>, position: Option<usize>, name: Option<&str>) -> bool {
    let any = |expr: &Expr, is_meant: &dyn Fn(&Expr) -> bool| match expr {
        Expr::Tuple(it) => it.elts.iter().any(is_meant),
        Expr::List(it) => it.elts.iter().any(is_meant),
        other => is_meant(other),
    };
    let by_number = compiled.option("static_argnums").is_some_and(|it| {
        any(it, &|it| int_literal(it).is_some_and(|it| position.is_some_and(|at| at as i64 == it)))
    });
    let by_name = compiled
        .option("static_argnames")
        .is_some_and(|it| any(it, &|it| text_literal(it).is_some_and(|it| Some(it) == name)));
    by_number || by_name
}

/// Whether a loop of more than a few rounds counts in this name.
fn is_counted<'a>(context: &Context<'a>, call: &Call<'a>, name: &str) -> bool {
    context
        .counted_by(&call.at, name)
        .is_some_and(|id| matches!(context.rounds(id), Rounds::Data | Rounds::Unknown))
}

/// The counter of a slice like `x[:i]` or `x[i:]`.
fn growing_slice<'a>(context: &Context<'a>, call: &Call<'a>, argument: &'a Expr) -> Option<&'a str> {
    let Expr::Subscript(item) = context.meaning(call.at.function, argument) else { return None };
    let first = match &*item.slice {
        Expr::Tuple(it) => it.elts.first()?,
        other => other,
    };
    let Expr::Slice(slice) = first else { return None };
    let bound = match (slice.lower.as_deref(), slice.upper.as_deref()) {
        (None, Some(bound)) | (Some(bound), None) if slice.step.is_none() => bound,
        _ => return None,
    };
    let counter = match bound {
        Expr::Name(it) => it.id.as_str(),
        Expr::BinOp(it) => match &*it.left {
            Expr::Name(name) if int_literal(&it.right).is_some() => name.id.as_str(),
            _ => return None,
        },
        _ => return None,
    };
    let is_stable = mentions(&item.value, &|it| matches!(it, Expr::Slice(_))) ;
    (!is_stable && is_counted(context, call, counter)).then_some(counter)
}
