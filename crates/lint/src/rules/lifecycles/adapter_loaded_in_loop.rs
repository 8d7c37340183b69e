//! Loads `LoRA` weights into the same pipeline in every round of a loop, and never unloads them.
//!
//! ## Why it matters
//! `load_lora_weights` adds an adapter to the model, beside those that are there. Each stays on the GPU and takes part in every
//! forward pass until it is unloaded: memory and time grow with each, and the images mix all styles.
//!
//! ## Example
//! ```python
//! from diffusers import DiffusionPipeline
//!
//! pipe = DiffusionPipeline.from_pretrained("base").to("cuda")
//! for path in paths:
//!     pipe.load_lora_weights(path)
//!     save(pipe(prompt))
//! ```
//! Use instead:
//! ```python
//! from diffusers import DiffusionPipeline
//!
//! pipe = DiffusionPipeline.from_pretrained("base").to("cuda")
//! for path in paths:
//!     pipe.load_lora_weights(path)
//!     save(pipe(prompt))
//!     pipe.unload_lora_weights()
//! ```
//!
//! ## When it is silent
//! The loop unloads, deletes or fuses adapters, or makes the pipeline anew; the adapter gets a name, as adapters do that are to
//! be used together; a condition guards the call; nothing but loading happens in the loop.
//!
//! ## Fix
//! Calls `unload_lora_weights()` at the end of each round: unsafe, because the adapters may be meant to add up.
//!
//! ## References
//! - huggingface/diffusers#8532, huggingface/diffusers#4027, huggingface/diffusers#9325, huggingface/peft#1639

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Fix},
    names::LoopId,
    rule::{Framework, Rule},
    syntax::{Ranged, is_same_place},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK510",
    name: "adapter-loaded-in-loop",
    frameworks: &[Framework::HuggingFace],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

const ENDS: &[&str] = &[
    "unload_lora_weights",
    "unload_lora",
    "delete_adapters",
    "unfuse_lora",
    "fuse_lora",
    "set_adapters",
    "unload",
];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for call in context.calls_named("load_lora_weights") {
        let Some((pipeline, ..)) = call.method() else { continue };
        let Some(id) = context.loop_around(call.at.in_loop) else { continue };
        let node = context.names.the_loop(id).node;
        let is_used = context.calls_within(node.range()).any(|it| is_same_place(&it.expr.func, pipeline));
        if !is_used
            || call.at.branch.is_some()
            || call.keyword("adapter_name").is_some()
            || call.has_unpacking()
            || context.may_be_another_in(id, pipeline)
            || context.calls_any_within(node.range(), ENDS)
        {
            continue;
        }
        let name = context.text(pipeline);
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                call.expr,
                format!("`{name}` keeps the adapters of all rounds before"),
            )
            .because_of(
                node.iterable().map_or(node.range(), Ranged::range),
                format!("no round of this loop unloads them, and `{name}` outlives it"),
            )
            .advise(format!("call `{name}.unload_lora_weights()` at the end of each round"))
            .fixed_by(unload_last(context, id, name)),
        );
    }
}

fn unload_last(context: &Context<'_>, id: LoopId, pipeline: &str) -> Option<Fix> {
    let last = context.names.the_loop(id).node.body().last()?;
    if !context.is_alone_on_its_lines(last) {
        return None;
    }
    let edit = context.line_below(last, last, &format!("{pipeline}.unload_lora_weights()"));
    Some(Fix::new(Applicability::Unsafe, format!("call `{pipeline}.unload_lora_weights()` last"), vec![edit]))
}
