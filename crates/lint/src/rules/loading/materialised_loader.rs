//! Puts all batches of a data loader into a list.
//!
//! ## Why it matters
//! A loader is there so that only a few batches are in memory at a time. A list of all of them is the whole dataset, decoded and
//! collated: in host memory, or on the device if batches are moved there, for as long as the list is alive. With workers each
//! tensor also holds shared memory and a file descriptor.
//!
//! ## Example
//! ```python
//! from torch.utils.data import DataLoader
//!
//! loader = DataLoader(dataset, batch_size=32)
//! batches = [batch.to("cuda") for batch in loader]
//! for batch in batches:
//!     train_step(batch)
//! ```
//! Use instead:
//! ```python
//! from torch.utils.data import DataLoader
//!
//! loader = DataLoader(dataset, batch_size=32)
//! for batch in loader:
//!     train_step(batch.to("cuda"))
//! ```
//!
//! ## When it is silent
//! A part of each batch is computed with before it is kept; some batches are chosen; the loader is not known to be one by its
//! class or its name. On the host it is only an info: to keep a small dataset can be wanted. Tests.
//!
//! ## Fix
//! Only advice: whether the list is needed is not to be seen.
//!
//! ## References
//! - pytorch/pytorch#23900, yangchris11/samurai#41

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
    syntax::{
        Ranged, TextRange,
        ast::{self, Expr},
        text_literal,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK408",
    name: "materialised-loader",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for call in ["list", "tuple"].into_iter().flat_map(|it| context.calls_to_builtin(it)) {
        if let [loader] = &*call.expr.arguments.args
            && context.loader(call.at.function, loader).is_some()
        {
            found.push(report(context, call.expr.range(), loader, Severity::Info));
        }
    }
    for assignment in &context.facts.assignments {
        let Expr::ListComp(ast::ExprListComp { elt, generators, range, .. }) = assignment.expr else {
            continue;
        };
        let [generator] = generators.as_slice() else { continue };
        if !generator.ifs.is_empty() {
            continue;
        }
        let Some(severity) = severity_of(elt, &generator.target) else { continue };
        if context.loader_iterated(assignment.at.function, &generator.iter).is_some() {
            found.push(report(context, *range, &generator.iter, severity));
        }
    }
}

fn report(context: &Context<'_>, range: TextRange, loader: &Expr, severity: Severity) -> Diagnostic {
    let place = if severity == Severity::Warning { "on the device" } else { "in memory" };
    Diagnostic::new(
        &RULE,
        severity,
        range,
        format!("keeps all batches of `{}` {place} at once", context.text(loader)),
    )
    .advise("go over the loader where the batches are needed")
}

/// How bad it is to keep `element` of every batch, if that is the batch itself or parts of it, moved at most.
fn severity_of(element: &Expr, target: &Expr) -> Option<Severity> {
    match element {
        Expr::Name(it) => names(target).contains(&it.id.as_str()).then_some(Severity::Info),
        Expr::Tuple(it) => {
            it.elts.iter().map(|it| severity_of(it, target)).try_fold(Severity::Info, |worst, it| Some(worst.max(it?)))
        }
        Expr::Call(call) => {
            let Expr::Attribute(method) = &*call.func else { return None };
            let own = severity_of(&method.value, target)?;
            match method.attr.as_str() {
                "cuda" => Some(Severity::Warning),
                "to" => {
                    let is_host = call.arguments.args.first().and_then(text_literal) == Some("cpu");
                    Some(if is_host { own } else { Severity::Warning })
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn names(target: &Expr) -> Vec<&str> {
    match target {
        Expr::Name(it) => vec![it.id.as_str()],
        Expr::Tuple(ast::ExprTuple { elts, .. }) => elts.iter().flat_map(names).collect(),
        _ => Vec::new(),
    }
}
