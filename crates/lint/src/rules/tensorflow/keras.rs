//! What is a model of Keras.

use crate::{
    context::Context,
    flow::value::{Class, Value},
    names::{Definition, LoopId, Path},
    syntax::{Ranged, ast::Expr},
};

/// Whether a value is a model of Keras.
pub(super) fn is_model(context: &Context<'_>, value: &Value) -> bool {
    match value {
        Value::Object(Class::External(path)) => is_model_path(path),
        Value::Object(class) => context.project.foreign_bases(class).iter().any(|it| is_model_path(it)),
        _ => false,
    }
}

fn is_model_path(path: &str) -> bool {
    let path = Path::of(path);
    let parts = path.parts();
    parts.iter().take(3).any(|it| *it == "keras")
        && (matches!(path.last(), "Model" | "Sequential" | "Functional") || parts.contains(&"applications"))
}

/// Whether what `expr` names is made anew in the rounds of this loop.
pub(super) fn is_made_in(
    context: &Context<'_>,
    at: crate::names::FunctionId,
    expr: &Expr,
    id: LoopId,
) -> bool {
    let range = context.names.the_loop(id).node.range();
    match expr {
        Expr::Name(name) => context.names.name(context.scope(at), name.id.as_str()).is_some_and(|it| {
            it.definitions.iter().any(|it| match it {
                Definition::Value(value, _) => range.contains_range(value.range()),
                Definition::Other(at) => range.contains_range(*at),
                Definition::Loop(id) => {
                    let inner = context.names.the_loop(*id).node.range();
                    range.contains_range(inner)
                }
                _ => false,
            })
        }),
        // `self.model = …` in the loop
        Expr::Attribute(it) => context.names.attributes.get(it.attr.as_str()).is_some_and(|uses| {
            uses.iter().any(|it| {
                matches!(it.usage, crate::names::Usage::Stored) && range.contains_range(it.expr.range())
            })
        }),
        _ => true,
    }
}
