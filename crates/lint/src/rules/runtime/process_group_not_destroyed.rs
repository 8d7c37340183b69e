//! Sets up the processes of a distributed run, and never takes them down.
//!
//! ## Why it matters
//! `init_process_group` and the first collective operation take memory of every GPU: a context and the buffers of NCCL,
//! hundreds of MB. They are given back by `destroy_process_group` or when the process ends. A server or notebook that
//! sets up a run again and again in one process keeps them in between.
//!
//! ## Example
//! ```python
//! import torch.distributed as dist
//!
//! def run(rank, world_size):
//!     dist.init_process_group("nccl", rank=rank, world_size=world_size)
//!     train(rank)
//! ```
//! Use instead:
//! ```python
//! import torch.distributed as dist
//!
//! def run(rank, world_size):
//!     dist.init_process_group("nccl", rank=rank, world_size=world_size)
//!     try:
//!         train(rank)
//!     finally:
//!         dist.destroy_process_group()
//! ```
//!
//! ## When it is silent
//! The file mentions `destroy_process_group` anywhere, or sets up with another backend than NCCL, as `gloo`, which has no buffers on GPUs. Off by default: a
//! script whose process ends loses nothing, and others may destroy the group.
//!
//! ## Fix
//! Only advice: where the run ends is not to be seen.
//!
//! ## References
//! - NVIDIA/Megatron-LM#6897, sgl-project/sglang#7465, vllm-project/vllm#19465

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
    syntax::text_literal,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK609",
    name: "process-group-not-destroyed",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: false,
    fix: None,
    check,
};

const SETUPS: &[&str] =
    &["torch.distributed.init_process_group", "torch.distributed.distributed_c10d.init_process_group"];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut setups = context.calls_to(SETUPS).peekable();
    if setups.peek().is_none() || context.is_test() || context.source.text().contains("destroy_process_group") {
        return;
    }
    for call in setups {
        if call.argument("backend", 0).and_then(text_literal).is_some_and(|it| !it.contains("nccl")) {
            continue;
        }
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Info,
                call.expr,
                "nothing in this file destroys the process group; its buffers stay on the GPU until the process ends",
            )
            .advise("call `torch.distributed.destroy_process_group()` in a `finally` at the end of the run"),
        );
    }
}
