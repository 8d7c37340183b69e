//! Makes a second vLLM engine in a process whose first has not been taken down.
//!
//! ## Why it matters
//! An engine takes most of the GPU for itself (`gpu_memory_utilization` is 0.9 by default), and `del llm` does not give that back:
//! the groups of processes, the compiled graphs and the workers still hold it. The second engine then does not fit, or is given
//! a cache that is far too small.
//!
//! ## Example
//! ```python
//! from vllm import LLM
//!
//! for name in ["a", "b"]:
//!     llm = LLM(model=name)
//!     print(llm.generate(prompts))
//! ```
//! Use instead:
//! ```python
//! from vllm import LLM
//! from vllm.distributed import cleanup_dist_env_and_memory
//!
//! for name in ["a", "b"]:
//!     llm = LLM(model=name)
//!     print(llm.generate(prompts))
//!     del llm
//!     cleanup_dist_env_and_memory()
//! ```
//! A process for each engine gives everything back for certain.
//!
//! ## When it is silent
//! The loop or function calls `cleanup_dist_env_and_memory` or the like, or starts processes; the engines are made under
//! conditions, or are told their share of the memory (`gpu_memory_utilization`).
//!
//! ## Fix
//! Only advice: everything that refers to the first engine has to go.
//!
//! ## References
//! - vllm-project/vllm#1908, vllm-project/vllm#3281, vllm-project/vllm#18806, vllm-project/vllm#23793

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    rule::{Framework, Rule},
    syntax::Ranged,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK513",
    name: "vllm-recreated",
    frameworks: &[Framework::Serving],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

const ENDS: &[&str] = &[
    "cleanup_dist_env_and_memory",
    "destroy_model_parallel",
    "destroy_distributed_environment",
    "shutdown",
    "sleep",
    "Process",
];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    let engines: Vec<_> = context.calls_to(&["vllm.LLM", "vllm.entrypoints.llm.LLM"]).collect();
    for (index, call) in engines.iter().enumerate() {
        if call.at.branch.is_some() || call.has_unpacking() {
            continue;
        }
        let advice = "run each engine in a process of its own, or delete it and call `cleanup_dist_env_and_memory()`";
        let message = "the engine before this one still holds most of the GPU";
        if let Some(id) = context.loop_around(call.at.in_loop) {
            let node = context.names.the_loop(id).node;
            if !context.calls_any_within(node.range(), ENDS) {
                found.push(
                    Diagnostic::new(&RULE, Severity::Warning, call.expr, message)
                        .because_of(
                            node.iterable().map_or(node.range(), Ranged::range),
                            "each round of this loop makes an engine, and none takes it down",
                        )
                        .advise(advice),
                );
            }
            continue;
        }
        let before = engines.iter().take(index).find(|it| {
            it.at.function == call.at.function && it.at.branch.is_none() && it.at.in_loop.is_none()
        });
        let shares = call.keyword("gpu_memory_utilization").is_some();
        if let Some(before) = before
            && !shares
            && !context.calls_any_within(context.range_of(call.at.function), ENDS)
        {
            found.push(
                Diagnostic::new(&RULE, Severity::Warning, call.expr, message)
                    .because_of(before.expr, "that engine is made here, in the same process")
                    .advise(advice),
            );
        }
    }
}
