//! Keeps batches as they come from the workers of a data loader.
//!
//! ## Why it matters
//! A batch from a worker lies in shared memory, and each tensor of it holds a file descriptor. As long as any tensor that shares
//! its data is alive, both stay: a list of labels of one number each ends in "too many open files" or fills `/dev/shm`, long
//! before memory is short.
//!
//! ## Example
//! ```python
//! from torch.utils.data import DataLoader
//!
//! loader = DataLoader(dataset, batch_size=32, num_workers=8)
//! seen = []
//! for batch in loader:
//!     seen.append(batch["index"])
//! ```
//! Use instead:
//! ```python
//! from torch.utils.data import DataLoader
//!
//! loader = DataLoader(dataset, batch_size=32, num_workers=8)
//! seen = []
//! for batch in loader:
//!     seen.append(batch["index"].clone())
//! ```
//!
//! ## When it is silent
//! The loader has no workers, pins its batches (which copies them), or is not seen; the batch is moved to a device, copied or
//! turned into numbers; what is kept is taken out again.
//!
//! ## Fix
//! Appends `.clone()`, or `.copy()` behind `.numpy()`: unsafe, because a dataset can also give text or numbers, which have no
//! such method.
//!
//! ## References
//! - pytorch/pytorch#11201, pytorch/pytorch#973, pytorch/pytorch#41465, pytorch/pytorch#65198

use crate::{
    context::{Context, Loader, Workers},
    diagnostic::{Diagnostic, Severity},
    facts::{Call, How, Keep},
    fix::{Applicability, Edit, Fix},
    flow::value::Value,
    names::{Definition, LoopId},
    rule::{Framework, Rule},
    syntax::{Ranged, ast::Expr, bool_literal},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK405",
    name: "kept-worker-batch",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for keep in &context.facts.keeps {
        if !matches!(keep.how, How::Append | How::Extend | How::SetItem) || matches!(keep.value, Value::Plain) && !is_array(keep.kept) {
            continue;
        }
        let Some((id, made)) = batch_of(context, keep) else { continue };
        let outlives = keep.outlives_call
            || keep.outlived_loop.is_some_and(|outlived| {
                context.names.loops_from(Some(id)).any(|it| it == outlived)
            });
        if !outlives || context.is_bounded(keep) || Context::has_constant_key(keep) {
            continue;
        }
        let (target, kept) = (context.text(keep.target), context.text(keep.kept));
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                keep.range,
                format!("`{target}` keeps the shared memory and the file descriptors of `{kept}`"),
            )
            .because_of(made.expr, "the batches of this loader come from workers")
            .advise("keep a copy: `.clone()` of a tensor, `copy.deepcopy` of anything else")
            .fixed_by(copy(context, keep)),
        );
    }
}

/// The loop over a loader with workers of whose batch the kept value is a part, and the call that made the loader.
fn batch_of<'a>(context: &Context<'a>, keep: &Keep<'a>) -> Option<(LoopId, &'a Call<'a>)> {
    let Expr::Name(name) = what_shares_its_data(keep.kept) else { return None };
    let scope = context.scope(keep.at.function);
    let definitions = &context.names.name(scope, name.id.as_str())?.definitions;
    // A batch that is given another value, as by moving it, is no longer the batch.
    let loops: Vec<LoopId> = definitions
        .iter()
        .map(|it| match it {
            Definition::Loop(id) => Some(*id),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let id = context.names.loops_from(keep.at.in_loop).find(|it| loops.contains(it))?;
    let the_loop = context.names.the_loop(id);
    match context.loader_iterated(the_loop.function, the_loop.node.iterable()?)? {
        Loader::Made(made) if context.workers(made) == Workers::Some && !pins(made) => Some((id, made)),
        _ => None,
    }
}

fn pins(made: &Call<'_>) -> bool {
    made.keyword("pin_memory").is_some_and(|it| bool_literal(&it.value) != Some(false))
}

/// The variable behind attributes, items and methods that copy nothing.
fn what_shares_its_data(mut expr: &Expr) -> &Expr {
    loop {
        expr = match expr {
            Expr::Attribute(it) => &it.value,
            Expr::Subscript(it) => &it.value,
            Expr::Call(call) => match &*call.func {
                Expr::Attribute(it)
                    if matches!(
                        it.attr.as_str(),
                        "detach" | "cpu" | "numpy" | "view" | "squeeze" | "unsqueeze" | "flatten" | "reshape"
                    ) =>
                {
                    &it.value
                }
                _ => return expr,
            },
            _ => return expr,
        };
    }
}

fn copy(context: &Context<'_>, keep: &Keep<'_>) -> Option<Fix> {
    if keep.how == How::Extend {
        return None;
    }
    let method = match keep.kept {
        array if is_array(array) => ".copy()",
        // A name by itself may be a whole batch, which is a list or a dict.
        Expr::Name(name) => {
            let is_whole = context.names.loops.iter().any(|it| {
                matches!(it.node.target(), Some(Expr::Name(target)) if target.id == name.id)
            });
            if is_whole {
                return None;
            }
            ".clone()"
        }
        Expr::Call(_) | Expr::Subscript(_) | Expr::Attribute(_) => ".clone()",
        _ => return None,
    };
    Some(Fix::new(
        Applicability::Unsafe,
        format!("append `{method}`"),
        vec![Edit::insert(keep.kept.end(), method)],
    ))
}

/// `x.numpy()`, which shares the memory of the tensor.
fn is_array(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(call) if matches!(&*call.func, Expr::Attribute(it) if it.attr.as_str() == "numpy"))
}
