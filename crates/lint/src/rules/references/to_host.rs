//! What the rules about data on the device say alike.

use crate::{
    context::{Context, Repetition, needs_parentheses},
    diagnostic::Diagnostic,
    facts::Keep,
    fix::{Applicability, Edit, Fix},
    flow::value::{Graph, Value},
    syntax::{Ranged, ast::Expr},
};

/// Appends `.cpu()` to what is kept, with `.detach()` before it if it may have a graph. Unsafe: the device of what is kept changes.
pub(crate) fn to_host(keep: &Keep<'_>) -> Option<Fix> {
    match &keep.value {
        Value::Tensor(tensor) if tensor.graph == Graph::Detached => {
            append(keep, ".cpu()", "append `.cpu()`, which frees the copy on the device")
        }
        Value::Tensor(_) => {
            append(keep, ".detach().cpu()", "append `.detach().cpu()`, which frees graph and device memory")
        }
        _ => None,
    }
}

/// Appends a call to what is kept. Unsafe.
pub(crate) fn append(keep: &Keep<'_>, call: &str, message: &str) -> Option<Fix> {
    let kept = keep.kept;
    if matches!(kept, Expr::Starred(_) | Expr::Await(_) | Expr::Named(_)) {
        return None;
    }
    let edits = if needs_parentheses(kept) {
        vec![Edit::insert(kept.start(), "("), Edit::insert(kept.end(), format!("){call}"))]
    } else {
        vec![Edit::insert(kept.end(), call)]
    };
    Some(Fix::new(Applicability::Unsafe, message, edits))
}

/// Adds why something is kept again and again.
pub(crate) fn because_repeated(
    context: &Context<'_>,
    diagnostic: Diagnostic,
    keep: &Keep<'_>,
    repetition: Repetition,
) -> Diagnostic {
    let target = context.text(keep.target);
    let name = context.names.function(keep.at.function).name;
    match repetition {
        Repetition::Data(id) | Repetition::Loop(id) => {
            let node = context.names.the_loop(id).node;
            let head = node.iterable().map_or(node.range(), Ranged::range);
            diagnostic.because_of(head, format!("`{target}` outlives every round of this loop"))
        }
        Repetition::Called => {
            diagnostic.because(format!("`{name}` is called in a loop, and `{target}` outlives the calls"))
        }
        Repetition::Hook(_) => {
            diagnostic.because("it is a hook, which runs at every pass through its module")
        }
        Repetition::Framework => diagnostic.because(format!("`{name}` runs at every step")),
    }
}
