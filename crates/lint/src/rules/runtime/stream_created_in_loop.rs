//! Makes a CUDA stream anew in every round of a loop.
//!
//! ## Why it matters
//! The caching allocator keeps blocks apart by stream: memory freed on one stream is not used again on another. Every new
//! stream begins with empty pools, until after 32 of them PyTorch hands out the first again. One report saw 2.09 GB more
//! reserved memory with each step until the 32nd.
//!
//! ## Example
//! ```python
//! import torch
//!
//! for batch in loader:
//!     stream = torch.cuda.Stream()
//!     with torch.cuda.stream(stream):
//!         out = model(batch.cuda(non_blocking=True))
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! stream = torch.cuda.Stream()
//! for batch in loader:
//!     with torch.cuda.stream(stream):
//!         out = model(batch.cuda(non_blocking=True))
//! ```
//!
//! ## When it is silent
//! The loop makes a fixed set of streams (`streams = [torch.cuda.Stream() for _ in range(4)]`, or appends them to a list).
//!
//! ## Fix
//! Only advice: where the stream should be made depends on who else uses it.
//!
//! ## References
//! - vllm-project/vllm#52951, NVIDIA/Fuser#5767

use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
    syntax::ast::{Expr, Stmt},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK604",
    name: "stream-created-in-loop",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_to(&["torch.cuda.Stream", "torch.cuda.streams.Stream", "torch.xpu.Stream"]) {
        // Only a loop over data in sight convicts: a set of streams is made in a loop, too.
        let Some(Repetition::Data(id)) = context.repetition_at(&call.at) else { continue };
        let is_for_one_round = match call.at.statement {
            Stmt::Assign(it) => it.targets.iter().all(Expr::is_name_expr),
            Stmt::With(_) => true,
            _ => false,
        };
        if is_for_one_round {
            let node = context.names.the_loop(id).node;
            found.push(
                Diagnostic::new(&RULE, Severity::Warning, call.expr, "a new stream in every round, each with memory pools of its own")
                    .because_of(node.range(), "this loop runs for each batch or step")
                    .advise("make the stream once, before the loop"),
            );
        }
    }
}
