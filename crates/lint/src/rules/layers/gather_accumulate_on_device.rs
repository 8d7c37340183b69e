//! Gathers outputs from all processes and keeps them on each GPU.
//!
//! ## Why it matters
//! `accelerator.gather` gives every process the outputs of all. A list of them holds the whole evaluation set on each GPU, as
//! many times as there are processes.
//!
//! ## Example
//! ```python
//! from accelerate import Accelerator
//!
//! accelerator = Accelerator()
//! preds = []
//! for batch in eval_loader:
//!     logits = model(**batch).logits
//!     preds.append(accelerator.gather_for_metrics(logits))
//! ```
//! Use instead:
//! ```python
//! from accelerate import Accelerator
//!
//! accelerator = Accelerator()
//! preds = []
//! for batch in eval_loader:
//!     logits = model(**batch).logits
//!     preds.append(accelerator.gather_for_metrics(logits).cpu())
//! ```
//! A metric that is updated batch by batch keeps nothing at all.
//!
//! ## When it is silent
//! The result is moved to the host, losses, labels, ids or numbers are gathered, or the list is emptied again. Where the
//! size of what is gathered is not known it is information only.
//!
//! ## Fix
//! Unsafe: appends `.cpu()`; what is done with the list later then happens on the host.
//!
//! ## References
//! - huggingface/transformers#12878

use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::{How, Keep},
    fix::{Applicability, Edit, Fix},
    flow::value::{Class, Size, Value},
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{self, Expr},
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK710",
    name: "gather-accumulate-on-device",
    frameworks: &[Framework::HuggingFace],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for keep in &context.facts.keeps {
        let Some(gathered) = gathered(context, keep).filter(|_| keep.how == How::Append) else { continue };
        let Some(first) = gathered.arguments.args.first() else { continue };
        let call = context.call_of(gathered);
        let size = match call.map(|it| it.value_of(first)) {
            Some(Value::Plain) => continue,
            Some(Value::Tensor(tensor)) => tensor.size,
            _ => Size::Unknown,
        };
        if matches!(size, Size::Scalar | Size::Indices) || is_small_by_name(context.text(first)) {
            continue;
        }
        let Some(repetition) = context.repetition(keep) else { continue };
        let is_vague = size != Size::Array && matches!(repetition, Repetition::Loop(_));
        if is_vague || context.is_bounded(keep) {
            continue;
        }
        let severity = if size == Size::Array { Severity::Warning } else { Severity::Info };
        let target = context.text(keep.target);
        let mut diagnostic = Diagnostic::new(
            &RULE,
            severity,
            keep.range,
            format!("`{target}` keeps the outputs of all processes on each GPU"),
        );
        if let Repetition::Data(id) | Repetition::Loop(id) = repetition {
            diagnostic = diagnostic
                .because_of(context.head(id), format!("`{target}` outlives every round of this loop"));
        }
        let is_tensor = !matches!(first, Expr::Tuple(_) | Expr::Dict(_) | Expr::List(_) | Expr::Starred(_));
        let fix = (is_tensor && matches!(keep.kept, Expr::Call(_))).then(|| {
            let edit = Edit::insert(keep.kept.end(), ".cpu()");
            Fix::new(Applicability::Unsafe, "move it to the host with `.cpu()`", vec![edit])
        });
        found.push(diagnostic.advise("move it to the host with `.cpu()`, or update a metric batch by batch").fixed_by(fix));
    }
}

/// The call that gathered what is kept, directly or by way of a name.
fn gathered<'a>(context: &Context<'a>, keep: &Keep<'a>) -> Option<&'a ast::ExprCall> {
    let call = match keep.kept {
        Expr::Call(call) => call,
        Expr::Name(name) => context.last_call_given_to(keep.at.function, name, keep.range.start())?,
        _ => return None,
    };
    let Expr::Attribute(callee) = &*call.func else { return None };
    let is_accelerator = || {
        context.facts.calls_named(callee.attr.as_str()).find(|it| std::ptr::eq(it.expr, call)).is_some_and(|it| {
            it.method().is_some_and(|(_, value, _)| {
                matches!(value, Value::Object(Class::External(path)) if path.ends_with("Accelerator"))
            })
        })
    };
    match callee.attr.as_str() {
        "gather_for_metrics" => Some(call),
        "gather" => is_accelerator().then_some(call),
        _ => None,
    }
}

/// Whether what is gathered has one number for each item, by its name.
fn is_small_by_name(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["loss", "label", "reference", "ids", "index", "indices", "argmax", "target", "count", "len"]
        .iter()
        .any(|it| text.contains(it))
}
