//! Sessions of TensorFlow 1, and calls that add operations to its graph.

use crate::{
    context::Context,
    facts::{Call, Callee},
    flow::value::{Class, Value},
    names::{LoopId, Path},
};

/// Dotted names of sessions.
pub(super) const SESSIONS: &[&str] = &[
    "tensorflow.Session",
    "tensorflow.InteractiveSession",
    "tensorflow.compat.v1.Session",
    "tensorflow.compat.v1.InteractiveSession",
];

/// Whether a value is a session.
pub(super) fn is_session(value: &Value) -> bool {
    matches!(value, Value::Object(Class::External(path)) if SESSIONS.contains(&&**path))
}

/// Whether a call adds operations to the graph.
pub(super) fn builds_operations(call: &Call<'_>) -> bool {
    matches!(&call.callee, Callee::External(path) if is_operation(path))
}

fn is_operation(path: &Path<'_>) -> bool {
    let (["tensorflow", "compat", "v1", parts @ ..] | ["tensorflow", parts @ ..]) = path.parts() else {
        return false;
    };
    match parts {
        ["nn" | "math" | "linalg" | "losses" | "random" | "strings" | "layers" | "image", name] => {
            name.starts_with(char::is_lowercase) && !name.starts_with("get_")
        }
        ["summary", name] => {
            matches!(*name, "scalar" | "histogram" | "image" | "merge" | "merge_all" | "text")
        }
        [name] => matches!(
            *name,
            "abs"
                | "add"
                | "add_n"
                | "argmax"
                | "argmin"
                | "assign"
                | "assign_add"
                | "assign_sub"
                | "cast"
                | "clip_by_value"
                | "concat"
                | "constant"
                | "convert_to_tensor"
                | "divide"
                | "equal"
                | "exp"
                | "expand_dims"
                | "fill"
                | "gather"
                | "gather_nd"
                | "gradients"
                | "greater"
                | "identity"
                | "less"
                | "log"
                | "matmul"
                | "maximum"
                | "minimum"
                | "multiply"
                | "norm"
                | "not_equal"
                | "one_hot"
                | "ones"
                | "ones_like"
                | "pad"
                | "pow"
                | "random_normal"
                | "random_uniform"
                | "range"
                | "reduce_all"
                | "reduce_any"
                | "reduce_max"
                | "reduce_mean"
                | "reduce_min"
                | "reduce_prod"
                | "reduce_sum"
                | "reshape"
                | "reverse"
                | "round"
                | "sigmoid"
                | "sign"
                | "slice"
                | "sqrt"
                | "square"
                | "squeeze"
                | "stack"
                | "stop_gradient"
                | "subtract"
                | "tanh"
                | "tile"
                | "transpose"
                | "truncated_normal"
                | "where"
                | "zeros"
                | "zeros_like"
        ),
        _ => false,
    }
}

/// Whether a call runs a session.
pub(super) fn runs_session(call: &Call<'_>) -> bool {
    call.method().is_some_and(|(_, value, name)| name == "run" && is_session(value))
}

/// Whether each round of a loop has a graph of its own, so that nothing grows from round to round.
pub(super) fn has_graph_of_its_own(context: &Context<'_>, id: LoopId) -> bool {
    let range = context.names.the_loop(id).node.range();
    context.calls_any_within(range, &["Graph", "reset_default_graph", "clear_session"])
}
