//! Makes a large `NumPy` array part of a compiled function.
//!
//! ## Why it matters
//! While JAX traces a function, a `NumPy` array in it is a constant: it is written into the program, copied by the compiler, and lies on
//! the device for as long as the executable does, once for each shape that the function is compiled for. Random numbers of `NumPy`
//! are the same in every call, besides.
//!
//! ## Example
//! ```python
//! import jax
//! import numpy as np
//!
//! table = np.zeros((4096, 4096))
//!
//!
//! @jax.jit
//! def look_up(indices):
//!     return table[indices]
//! ```
//! Use instead:
//! ```python
//! import jax
//! import numpy as np
//!
//! table = jax.device_put(np.zeros((4096, 4096)))
//!
//!
//! @jax.jit
//! def look_up(table, indices):
//!     return table[indices]
//! ```
//!
//! ## When it is silent
//! The size is not written out, or below 250 000 elements.
//!
//! ## Fix
//! Only advice: the array has to become an argument.
//!
//! ## References
//! - [JAX: constants in compiled functions](https://docs.jax.dev/en/latest/faq.html), jax-ml/jax#10878, #7930

use super::wrappers::JIT;
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    names::{Definition, FunctionId},
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{self, Expr},
        int_literal,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK953",
    name: "host-array-constant-in-jit",
    frameworks: &[Framework::Jax],
    severity: Severity::Info,
    default: true,
    fix: None,
    check,
};

/// Arrays of this many elements are worth an argument: 1 MB of `float32`.
const LARGE: i64 = 250_000;

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let compiled: Vec<FunctionId> = (0..context.names.functions.len() as u32)
        .map(FunctionId)
        .filter(|it| context.compilation_of(*it, JIT).is_some())
        .collect();
    if compiled.is_empty() {
        return;
    }
    let is_inside = |at: FunctionId| context.names.functions_from(at).any(|it| compiled.contains(&it));
    for call in &context.facts.calls {
        if is_inside(call.at.function) && elements(context, call.at.function, call.expr).is_some_and(|it| it >= LARGE) {
            found.push(report(call.expr, "this NumPy array is written into the compiled program as a constant"));
        }
    }
    // Arrays of the module that compiled functions close over.
    let names = &context.names.scope(crate::names::ScopeId::MODULE).names;
    found.extend(names.iter().filter_map(|(name, entry)| {
        let [Definition::Value(Expr::Call(made), _)] = entry.definitions.as_slice() else { return None };
        let size = elements(context, FunctionId::MODULE, made).filter(|it| *it >= LARGE)?;
        let one = entry.uses.iter().find(|it| is_inside(it.function))?;
        let message = format!("the NumPy array `{name}` is written into the compiled program as a constant");
        Some(report(one.expr, &message).because_of(made, format!("it has {size} elements")))
    }));
}

fn report(place: impl Ranged, message: &str) -> Diagnostic {
    Diagnostic::new(&RULE, Severity::Info, place, message)
        .advise("pass it as an argument, or make it with `jax.random` or `jax.numpy`")
}

/// How many elements a new array of `NumPy` has, if its shape is written out.
fn elements<'a>(context: &Context<'a>, function: FunctionId, call: &'a ast::ExprCall) -> Option<i64> {
    let path = context.path(function, &call.func)?;
    let first = call.arguments.args.first();
    let product = |dimensions: &[Expr]| {
        dimensions.iter().try_fold(1_i64, |all, it| int_literal(it).and_then(|it| all.checked_mul(it)))
    };
    let of_shape = |shape: &Expr| match shape {
        Expr::Tuple(it) => product(&it.elts),
        Expr::List(it) => product(&it.elts),
        other => int_literal(other),
    };
    match path.parts() {
        ["numpy", "random", "rand" | "randn"] => product(&call.arguments.args),
        ["numpy", "random", _] => {
            call.arguments.find_keyword("size").and_then(|it| of_shape(&it.value))
        }
        ["numpy", "zeros" | "ones" | "full" | "empty"] => of_shape(first?),
        ["numpy", "arange"] if call.arguments.args.len() == 1 => int_literal(first?),
        ["numpy", "eye" | "identity"] if call.arguments.args.len() == 1 => {
            int_literal(first?).and_then(|it| it.checked_mul(it))
        }
        _ => None,
    }
}
