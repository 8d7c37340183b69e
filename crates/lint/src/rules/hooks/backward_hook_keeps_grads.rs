//! A backward hook keeps the gradients of every backward pass.
//!
//! ## Why it matters
//! The hook runs at every backward pass, so the list grows by the module's whole gradient each time, as large as its output.
//! With `create_graph=True` each gradient also drags along the graph that computed it; then even one that is only
//! stored in an attribute keeps the graph of a whole step.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! gradients = []
//!
//! def hook(module, grad_input, grad_output):
//!     gradients.append(grad_output[0])
//!
//! model.register_full_backward_hook(hook)
//! for batch in loader:
//!     model(batch).sum().backward()
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! gradients = {}
//!
//! def hook(module, grad_input, grad_output):
//!     gradients["last"] = grad_output[0].detach()
//!
//! model.register_full_backward_hook(hook)
//! for batch in loader:
//!     model(batch).sum().backward()
//! ```
//!
//! ## When it is silent
//! The hook overwrites a slot; the list is emptied or given up somewhere, is bounded, or belongs to a function; what is
//! kept was moved to the host, or is a number.
//!
//! ## Fix
//! Appends `.detach().cpu()` to what a list keeps, `.detach()` to what a slot keeps; unsafe, because a second derivative may be
//! wanted.
//!
//! ## References
//! - jacobgil/pytorch-grad-cam#88, pytorch/pytorch#71068, pytorch/pytorch#82528

use crate::{
    context::{Context, Kind, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::{Hook, How, Keep, Root},
    fix::Applicability,
    flow::value::{Graph, Place, Size, Value},
    names::FunctionId,
    rule::{Framework, Rule},
    rules::references::to_host::{append, to_host},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK313",
    name: "backward-hook-keeps-grads",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for case in context.cases(Kind::HookGradient) {
        let keep = case.keep;
        let is_local = matches!(keep.root, Root::Name(owner, _) if owner != FunctionId::MODULE);
        let gathers = matches!(keep.how, How::Append | How::Extend | How::Concatenate);
        if is_local || !gathers || !is_large(keep) {
            continue;
        }
        let (target, kept) = (context.text(keep.target), context.text(keep.kept));
        let message = format!("`{target}` keeps `{kept}` of every backward pass");
        found.push(
            Diagnostic::new(&RULE, Severity::Warning, keep.range, message)
                .because("it is a hook, which runs at every backward pass, and nothing empties what it fills")
                .advise("overwrite a slot with `.detach()` of it, or empty the list after each step")
                .fixed_by(to_host(keep)),
        );
    }
    for keep in &context.facts.keeps {
        let is_hook = context.repetition(keep) == Some(Repetition::Hook(Hook::Backward));
        let has_graph = matches!(&keep.value, Value::Tensor(it) if it.graph > Graph::Detached);
        let is_recorded = || context.source.text().contains("create_graph=True");
        if keep.how != How::SetAttribute || !is_hook || !has_graph || !is_recorded() {
            continue;
        }
        let (target, kept) = (context.text(keep.target), context.text(keep.kept));
        let message = format!("`{target}` keeps `{kept}` together with the graph that computed it");
        found.push(
            Diagnostic::new(&RULE, Severity::Warning, keep.range, message)
                .because("`create_graph=True` makes gradients that have graphs of their own")
                .advise("keep `.detach()` of it")
                .fixed_by(append(keep, ".detach()", "append `.detach()`, which lets go of the graph")),
        );
    }
}

fn is_large(keep: &Keep<'_>) -> bool {
    keep.value
        .tensor_within()
        .is_some_and(|it| it.place != Place::Host && !matches!(it.size, Size::Scalar | Size::Indices))
}
