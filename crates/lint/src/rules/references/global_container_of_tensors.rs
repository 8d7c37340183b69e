//! A function puts tensors into a list of the module, where they stay for as long as the program runs.
//!
//! ## Why it matters
//! No end of a function, epoch or request frees what a global list holds: each call adds the size of its tensor, until
//! the device is full.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! results = []
//!
//! def handle(batch):
//!     with torch.no_grad():
//!         results.append(model(batch))
//!
//! for batch in loader:
//!     handle(batch)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//!
//! def handle(batch):
//!     with torch.no_grad():
//!         return model(batch)
//!
//! for batch in loader:
//!     save(handle(batch))
//! ```
//!
//! ## When it is silent
//! Something empties, bounds or replaces the list; nothing in sight calls the function again and again; what is put in is not
//! known to be a tensor, is on the host, or is a single number. Results with a graph are reported by the rules about graphs.
//!
//! ## Fix
//! Appends `.cpu()`, which at least frees the device; unsafe, because what reads the list then finds tensors on another device.
//!
//! ## References
//! - generative-computing/mellea#544, oxwhirl/pymarl#73

use super::to_host::{because_repeated, to_host};
use crate::{
    context::{Context, Kind, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::{Keep, Root},
    fix::Applicability,
    names::FunctionId,
    rule::{Framework, Rule},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK206",
    name: "global-container-of-tensors",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

/// Whether a function fills a list of its module.
pub(super) fn is_global(keep: &Keep<'_>) -> bool {
    keep.at.function != FunctionId::MODULE && matches!(keep.root, Root::Name(FunctionId::MODULE, _))
}

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for case in context.cases(Kind::DeviceData) {
        let keep = case.keep;
        let is_repeated =
            matches!(case.repetition, Repetition::Data(_) | Repetition::Called | Repetition::Framework);
        if !is_repeated || !is_global(keep) {
            continue;
        }
        let (list, kept) = (context.text(keep.target), context.text(keep.kept));
        let message = format!("the global `{list}` keeps `{kept}` of every call, and nothing empties it");
        let diagnostic = Diagnostic::new(&RULE, Severity::Warning, keep.range, message);
        found.push(
            because_repeated(context, diagnostic, keep, case.repetition)
                .advise("return the result instead, or empty the list")
                .fixed_by(to_host(keep)),
        );
    }
}
