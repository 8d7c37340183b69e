//! Passes a Python number that changes from step to step to a `tf.function`.
//!
//! ## Why it matters
//! For TensorFlow a Python number is part of the signature of a `tf.function`: each new number makes it trace the function again, and
//! the new graph stays in its cache. Memory grows with every step, and each step takes as long as a compilation. A tensor has one
//! signature whatever its value.
//!
//! ## Example
//! ```python
//! import tensorflow as tf
//!
//!
//! @tf.function
//! def train(x, step):
//!     return x * tf.cast(step, tf.float32)
//!
//!
//! for step in range(num_steps):
//!     train(batch, step)
//! ```
//! Use instead:
//! ```python
//! import tensorflow as tf
//!
//!
//! @tf.function
//! def train(x, step):
//!     return x * tf.cast(step, tf.float32)
//!
//!
//! for step in range(num_steps):
//!     train(batch, tf.constant(step))
//! ```
//!
//! ## When it is silent
//! The function has an `input_signature` or `reduce_retracing=True`; the loop has few rounds; the number goes through `tf.constant`,
//! `tf.range` or a dataset first.
//!
//! ## Fix
//! Wraps the number in `tf.constant`: unsafe, since in the function it is a tensor then, which Python's `if` and `range` treat
//! differently.
//!
//! ## References
//! - [TensorFlow guide: controlling retracing](https://www.tensorflow.org/guide/function#controlling_retracing)
//! - tensorflow/tensorflow#31842, tensorflow/addons#807, instadeepai/Mava#346

use super::FUNCTION;
use crate::{
    context::{Context, Rounds},
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Edit, Fix},
    rule::{Framework, Rule},
    syntax::{Ranged, ast::Expr, bool_literal},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK803",
    name: "tf-function-python-scalar",
    frameworks: &[Framework::TensorFlow],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.facts.calls.iter().filter(|it| it.at.in_loop.is_some()) {
        let arguments = &call.expr.arguments;
        let values = arguments.args.iter().chain(arguments.keywords.iter().map(|it| &it.value));
        let counted = values.filter_map(|it| match it {
            Expr::Name(name) => Some((it, context.counted_by(&call.at, name.id.as_str())?)),
            _ => None,
        });
        // Few rounds are few traces.
        let counted: Vec<_> =
            counted.filter(|(_, id)| matches!(context.rounds(*id), Rounds::Data | Rounds::Unknown)).collect();
        let Some((argument, id)) = counted.first().copied() else { continue };
        let Some(compiled) = context.compiled_callee(call, FUNCTION) else { continue };
        let relaxes = ["reduce_retracing", "experimental_relax_shapes", "experimental_follow_type_hints"]
            .iter()
            .any(|it| compiled.option(it).is_some_and(|it| bool_literal(it) != Some(false)));
        if relaxes || compiled.option("input_signature").is_some() || compiled.has_unseen_options() {
            continue;
        }
        let name = context.text(argument);
        let fix = prefix(context, compiled.place).map(|tf| {
            let edits = counted
                .iter()
                .map(|(it, _)| Edit::replace(*it, format!("{tf}.constant({})", context.text(*it))))
                .collect();
            Fix::new(Applicability::Unsafe, "pass the number as a tensor", edits)
        });
        let node = context.names.the_loop(id).node;
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                argument,
                format!("each new value of `{name}` makes TensorFlow trace the function again and keep one more graph"),
            )
            .because_of(compiled.place, "this function is compiled for each value of its Python arguments")
            .because_of(node.iterable().map_or(node.range(), Ranged::range), format!("`{name}` is a Python number here"))
            .advise(format!("pass `tf.constant({name})`, or set `reduce_retracing=True`"))
            .fixed_by(fix),
        );
    }
}

/// `tf` in `tf.function` or `tf.function(…)`.
fn prefix<'a>(context: &Context<'a>, place: &'a Expr) -> Option<&'a str> {
    let callee = match place {
        Expr::Call(call) => match call.arguments.args.first() {
            Some(first @ Expr::Attribute(it)) if it.attr.as_str() == "function" => first,
            _ => &*call.func,
        },
        other => other,
    };
    match callee {
        Expr::Attribute(it) if it.attr.as_str() == "function" && it.value.is_name_expr() => {
            Some(context.text(&*it.value))
        }
        _ => None,
    }
}
