//! Empties the cache of the allocator in every step.
//!
//! ## Why it matters
//! `empty_cache` frees nothing that is in use: it gives unused blocks back to the driver, and the next step asks for them again,
//! which waits for the GPU each time. Where memory grows, it hides for a while that something keeps references, and the growth
//! goes on.
//!
//! ## Example
//! ```python
//! import torch
//!
//! for images in loader:
//!     model(images).mean().backward()
//!     optimizer.step()
//!     torch.cuda.empty_cache()
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! for images in loader:
//!     model(images).mean().backward()
//!     optimizer.step()
//! ```
//!
//! ## When it is silent
//! Between phases: once an epoch, after a loop, under a condition (every 100 steps, after an out-of-memory error). In loops that
//! neither train nor go over a loader.
//!
//! ## Fix
//! Takes the call out: unsafe, because another process on the same GPU may count on the memory.
//!
//! ## References
//! - [PyTorch: memory management](https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management)
//! - pytorch/pytorch#27600

use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::Call,
    fix::{Applicability, Fix},
    names::LoopId,
    rule::{Framework, Rule},
    syntax::{Ranged, TextRange},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK514",
    name: "empty-cache-each-step",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for call in context.calls_to(&[
        "torch.cuda.empty_cache",
        "torch.cuda.memory.empty_cache",
        "torch.xpu.empty_cache",
        "torch.mps.empty_cache",
    ]) {
        if call.at.branch.is_some() || !call.is_statement() {
            continue;
        }
        let (place, reason) = if let Some(id) = context.loop_around(call.at.in_loop) {
            let Some(place) = steps(context, id) else { continue };
            (Some(place), "this loop runs for each step".to_owned())
        } else {
            let function = context.names.function(call.at.function).name;
            let is_step = matches!(function, "training_step" | "validation_step" | "on_train_batch_end");
            let repetition = context.repetition_of_function(call.at.function);
            if !is_step || repetition != Some(Repetition::Framework) {
                continue;
            }
            (None, format!("`{function}` runs at every step"))
        };
        let diagnostic = Diagnostic::new(
            &RULE,
            Severity::Info,
            call.expr,
            "frees nothing that is in use, and makes every step ask the driver for its memory again",
        );
        let diagnostic = match place {
            Some(place) => diagnostic.because_of(place, reason),
            None => diagnostic.because(reason),
        };
        found.push(
            diagnostic
                .advise("take it out; if memory grows without it, something keeps references")
                .fixed_by(take_out(context, call)),
        );
    }
}

/// The head of a loop that runs for each step.
fn steps(context: &Context<'_>, id: LoopId) -> Option<TextRange> {
    let the_loop = context.names.the_loop(id);
    let goes_over_loader = the_loop
        .node
        .iterable()
        .is_some_and(|it| context.loader_iterated(the_loop.function, it).is_some());
    let is_over_steps = context.is_over_steps(id) && (the_loop.trains || goes_over_loader);
    is_over_steps.then(|| the_loop.node.iterable().map_or(the_loop.node.range(), Ranged::range))
}

fn take_out<'a>(context: &Context<'a>, call: &Call<'a>) -> Option<Fix> {
    let block = Context::block_of(call.at.statement, context.body_of(call.at.function))?;
    let edit = context.delete_statement(call.at.statement, block)?;
    Some(Fix::new(Applicability::Unsafe, "take the call out", vec![edit]))
}
