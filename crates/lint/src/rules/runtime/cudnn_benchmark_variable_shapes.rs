//! Lets cuDNN try out algorithms for shapes that change from batch to batch.
//!
//! ## Why it matters
//! `torch.backends.cudnn.benchmark = True` runs several algorithms for every new shape, and their workspaces raise the peak of
//! device memory each time. What was found is kept on the host in caches of each thread, up to 10000 plans or about 2 GiB. With
//! shapes that never come again this only costs.
//!
//! ## Example
//! ```python
//! import torch
//! from torch.nn.utils.rnn import pad_sequence
//!
//! torch.backends.cudnn.benchmark = True
//! for clips in loader:
//!     model(pad_sequence(clips, batch_first=True))
//! ```
//! Use instead:
//! ```python
//! import torch
//! from torch.nn.utils.rnn import pad_sequence
//!
//! torch.backends.cudnn.benchmark = False
//! for clips in loader:
//!     model(pad_sequence(clips, batch_first=True))
//! ```
//! Or pad to a few fixed lengths, or lower `TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT`.
//!
//! ## When it is silent
//! Nothing in the file pads batches to their longest item. Off by default: whether what is padded goes through a convolution
//! is not looked at.
//!
//! ## Fix
//! Only advice: with few shapes the setting is worth its memory.
//!
//! ## References
//! - pytorch/pytorch#15872, pytorch/pytorch#104701, pytorch/pytorch#104369
//! - [CUDA environment variables](https://docs.pytorch.org/docs/stable/cuda_environment_variables.html)

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
    syntax::bool_literal,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK605",
    name: "cudnn-benchmark-variable-shapes",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: false,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for assignment in &context.facts.assignments {
        let is_benchmark = context
            .path(assignment.at.function, assignment.target)
            .is_some_and(|it| it.is("torch.backends.cudnn.benchmark"));
        if !is_benchmark || bool_literal(assignment.expr) != Some(true) {
            continue;
        }
        let Some(padding) = context.pads_to_longest() else { continue };
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Info,
                assignment.target,
                "workspaces for trying algorithms are taken anew for every shape, and what was found stays in host memory",
            )
            .because_of(padding, "batches are padded to their longest item here, so that shapes change")
            .advise("set it to `False`, or pad to a few fixed lengths"),
        );
    }
}
