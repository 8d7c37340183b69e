//! What the rules about kept graphs say alike: why, how bad, and the `.detach()` that helps.

use crate::{
    context::{Case, Context, Release, Repetition, is_copy},
    diagnostic::{Diagnostic, Severity},
    facts::Hook,
    fix::{Applicability, Edit, Fix},
    flow::value::{Graph, Size, Value},
    rule::Rule,
    syntax::{Ranged, ast::Expr},
};

/// A diagnostic about a case, with its reasons.
pub(super) fn report<'a>(
    context: &Context<'a>,
    rule: &'static Rule,
    case: &Case<'a>,
    severity: Severity,
    message: String,
) -> Diagnostic {
    let keep = case.keep;
    let mut diagnostic =
        Diagnostic::new(rule, severity, keep.range, message).kept_in(context.text(keep.target));
    diagnostic = match case.repetition {
        Repetition::Data(id) | Repetition::Loop(id) => {
            let what = context.text(keep.target);
            let node = context.names.the_loop(id).node;
            let head = node.iterable().map_or(node.range(), Ranged::range);
            diagnostic.because_of(head, format!("`{what}` outlives every round of this loop"))
        }
        Repetition::Called => {
            let name = context.names.function(keep.at.function).name;
            diagnostic.because(format!(
                "`{name}` is called in a loop, and `{}` outlives the calls",
                context.text(keep.target)
            ))
        }
        Repetition::Hook(Hook::Forward) => {
            diagnostic.because("it is a hook, which runs at every forward pass")
        }
        Repetition::Hook(Hook::Backward) => {
            diagnostic.because("it is a hook, which runs at every backward pass")
        }
        Repetition::Framework => {
            let name = context.names.function(keep.at.function).name;
            diagnostic.because(format!("`{name}` runs at every step"))
        }
    };
    match (case.graph, case.release) {
        (Graph::Attached | Graph::Likely, Release::Kept) => {
            diagnostic.because("no backward pass is seen to free the graph behind it, so all activations of the step stay")
        }
        (Graph::Attached | Graph::Likely, Release::Released) => diagnostic.because(match case.size {
            Size::Scalar => {
                "its backward pass frees the activations; what stays is the number itself, 512 bytes on a GPU, and graph nodes on the host"
            }
            _ => "its backward pass frees the activations; the tensor itself and graph nodes on the host stay",
        }),
        (Graph::Attached | Graph::Likely, Release::Unknown) => {
            diagnostic.because("a backward pass happens here or where this leads to; whether it frees the graph is not seen")
        }
        _ => diagnostic,
    }
}

/// `.detach()` behind what is kept, before a copy of it. Safe if it is surely a tensor and its gradient is not wanted.
pub(super) fn detach<'a>(context: &Context<'a>, case: &Case<'a>) -> Option<Fix> {
    if !matches!(case.keep.value, Value::Tensor(_)) {
        return None;
    }
    let mut tensor = case.keep.kept;
    // `out.cpu()` becomes `out.detach().cpu()`: the copy need not be recorded.
    while is_copy(tensor) {
        match tensor {
            Expr::Call(call) => match &*call.func {
                Expr::Attribute(it) => tensor = &it.value,
                _ => break,
            },
            _ => break,
        }
    }
    if matches!(tensor, Expr::Starred(_) | Expr::Await(_) | Expr::Named(_) | Expr::If(_) | Expr::BoolOp(_)) {
        return None;
    }
    let is_tensor = context.is_surely_tensor(case.keep.at.function, tensor);
    let is_own = context.is_read_here_only(case.keep.root);
    let applicability =
        if is_tensor && is_own && case.is_proven() && !context.reaches_backward(case.keep.root) {
            Applicability::Safe
        } else {
            Applicability::Unsafe
        };
    let detach = match (case.size, case.release) {
        // Without its graph it is as large as before; the host has more room for it.
        (Size::Array, Release::Released) if std::ptr::eq(tensor, case.keep.kept) => ".detach().cpu()",
        _ => ".detach()",
    };
    let is_graph_only = detach == ".detach()";
    let applicability = if is_graph_only { applicability } else { Applicability::Unsafe };
    let edits = if crate::context::needs_parentheses(tensor) {
        vec![Edit::insert(tensor.start(), "("), Edit::insert(tensor.end(), format!("){detach}"))]
    } else {
        vec![Edit::insert(tensor.end(), detach)]
    };
    Some(if is_graph_only {
        Fix::new(applicability, "add `.detach()`, which lets go of the graph", edits).of_the_graph_only()
    } else {
        Fix::new(
            applicability,
            "add `.detach().cpu()`, which lets go of the graph and of device memory",
            edits,
        )
    })
}
