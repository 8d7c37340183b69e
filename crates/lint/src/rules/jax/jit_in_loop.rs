//! Compiles a function of its own in every round of a loop.
//!
//! ## Why it matters
//! JAX finds compiled code by the function object. A lambda or a function defined in the loop is a new object in each round: it is traced
//! and compiled again, and its executable stays in the cache, on the device, too, until the object is collected and beyond.
//!
//! ## Example
//! ```python
//! import jax
//!
//! for batch in loader:
//!     step = jax.jit(lambda x: (x * x).sum())
//!     step(batch)
//! ```
//! Use instead:
//! ```python
//! import jax
//!
//! step = jax.jit(lambda x: (x * x).sum())
//! for batch in loader:
//!     step(batch)
//! ```
//!
//! ## When it is silent
//! The same function of the module is wrapped again, for which JAX has the compiled code; the functions are kept in a list or dict; the
//! function around returns the compiled one, or is called only once.
//!
//! ## Fix
//! Moves the assignment in front of the loop where nothing in it changes from round to round: unsafe.
//!
//! ## References
//! - [JAX: JIT and caching](https://docs.jax.dev/en/latest/jit-compilation.html#jit-and-caching), jax-ml/jax#1605, #7930, #10828, #14220

use super::wrappers::JIT;
use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::Call,
    fix::{Applicability, Fix},
    flow::value::Value,
    names::{FunctionId, LoopId},
    rule::{Framework, Rule},
    syntax::{
        Ranged, TextRange,
        ast::{Expr, Stmt},
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK951",
    name: "jit-in-loop",
    frameworks: &[Framework::Jax],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

const ADVICE: &str = "define and compile the function once, outside";

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_to(JIT).filter(|it| it.at.branch.is_none()) {
        let Some(compiled) = call.expr.arguments.args.first() else { continue };
        let is_at_once = context
            .facts
            .calls
            .iter()
            .any(|it| matches!(&*it.expr.func, Expr::Call(inner) if std::ptr::eq(inner, call.expr)));
        let is_for_one_round = match call.at.statement {
            Stmt::Assign(it) => {
                it.targets.iter().all(Expr::is_name_expr)
                    && matches!(&*it.value, Expr::Call(it) if std::ptr::eq(it, call.expr))
            }
            _ => false,
        };
        if !is_at_once && !is_for_one_round {
            continue;
        }
        match context.repetition_at(&call.at) {
            Some(Repetition::Data(id) | Repetition::Loop(id)) => {
                let range = context.names.the_loop(id).node.range();
                if is_new_each_time(context, call, compiled, Some(range)) {
                    found.push(in_loop(context, call.expr.range(), id).fixed_by(
                        context.hoist(call.at.statement, id).map(|edits| {
                            Fix::new(Applicability::Unsafe, "compile once, before the loop", edits)
                        }),
                    ));
                }
            }
            Some(Repetition::Called) if is_at_once && is_new_each_time(context, call, compiled, None) => {
                let name = context.names.function(call.at.function).name;
                found.push(
                    Diagnostic::new(&RULE, Severity::Info, call.expr, "compiles a function of its own at each call")
                        .because(format!("`{name}` is called in a loop, and each call makes a new function object"))
                        .advise(ADVICE),
                );
            }
            _ => {}
        }
    }
    for (index, function) in context.names.functions.iter().enumerate() {
        let id = FunctionId(index as u32);
        let Some(innermost) = function.in_loop else { continue };
        let data = context
            .names
            .loops_from(Some(innermost))
            .find(|it| context.is_over_data(*it));
        if let Some(data) = data
            && let Some(compiled) = context.compiling_decorator(id, JIT)
        {
            found.push(in_loop(context, compiled.place.range(), data));
        }
    }
}

fn in_loop(context: &Context<'_>, place: TextRange, id: LoopId) -> Diagnostic {
    let node = context.names.the_loop(id).node;
    Diagnostic::new(&RULE, Severity::Warning, place, "compiles a new function in every round, and each keeps its executable")
        .because_of(node.iterable().map_or(node.range(), Ranged::range), "each round of this loop makes a new function object")
        .advise(ADVICE)
}

/// Whether what is compiled is a new object each time: a lambda, a partial, a function defined in the loop or function around.
fn is_new_each_time<'a>(context: &Context<'a>, call: &Call<'a>, compiled: &'a Expr, within: Option<TextRange>) -> bool {
    if compiled.is_lambda_expr() {
        return true;
    }
    if let Expr::Call(inner) = compiled {
        return context.path(call.at.function, &inner.func).is_some_and(|it| it.is("functools.partial"));
    }
    match call.arguments.first() {
        Some(Value::Function(file, id)) if *file == context.file && compiled.is_name_expr() => {
            let own = context.names.function(*id);
            match within {
                Some(range) => range.contains_range(own.range()),
                None => own.parent == Some(call.at.function) && call.at.function != FunctionId::MODULE,
            }
        }
        _ => false,
    }
}
