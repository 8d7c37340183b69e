//! Makes a new `Trainer` in every round of a loop.
//!
//! ## Why it matters
//! A trainer, its callbacks and its model refer to each other, and so do the model card and the accelerator. When the name is
//! given the next trainer, the old one is garbage in a cycle: its model, gradients and optimizer stay on the GPU until Python's
//! cyclic collector happens to run, which knows nothing of the GPU. The second run then needs the memory of two.
//!
//! ## Example
//! ```python
//! from transformers import Trainer
//!
//! for seed in range(5):
//!     trainer = Trainer(model=make_model(seed), args=args, train_dataset=dataset)
//!     trainer.train()
//! ```
//! Use instead:
//! ```python
//! import gc
//! from transformers import Trainer
//!
//! for seed in range(5):
//!     trainer = Trainer(model=make_model(seed), args=args, train_dataset=dataset)
//!     trainer.train()
//!     del trainer
//!     gc.collect()
//! ```
//! A process for each run gives everything back for certain.
//!
//! ## When it is silent
//! The loop collects garbage or deletes the trainer; the class is not known to be one of these trainers.
//!
//! ## Fix
//! Only advice: other variables may refer to the trainer, too.
//!
//! ## References
//! - huggingface/transformers#13019, huggingface/transformers#10885, huggingface/transformers#35440
//! - huggingface/sentence-transformers#3136, huggingface/setfit#567

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::{Call, Callee},
    flow::value::Class,
    names::Usage,
    rule::{Framework, Rule},
    syntax::Ranged,
};

const TRAINERS: &[&str] = &[
    "transformers.Trainer",
    "transformers.Seq2SeqTrainer",
    "transformers.trainer.Trainer",
    "setfit.Trainer",
    "setfit.SetFitTrainer",
    "sentence_transformers.SentenceTransformerTrainer",
    "sentence_transformers.trainer.SentenceTransformerTrainer",
    "trl.SFTTrainer",
    "trl.DPOTrainer",
    "trl.GRPOTrainer",
    "trl.RewardTrainer",
];

pub(crate) static RULE: Rule = Rule {
    code: "LK507",
    name: "trainer-in-loop",
    frameworks: &[Framework::HuggingFace],
    severity: Severity::Info,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for call in &context.facts.calls {
        if !makes_trainer(context, call) || call.at.branch.is_some() {
            continue;
        }
        let Some(id) = context.loop_around(call.at.in_loop) else { continue };
        let node = context.names.the_loop(id).node;
        let is_given_up = call.name_of_result().is_some_and(|name| {
            let scope = context.scope(call.at.function);
            context.names.name(scope, name.id.as_str()).is_some_and(|it| {
                it.uses.iter().any(|it| {
                    matches!(it.usage, Usage::Deleted) && node.range().contains_range(it.expr.range())
                })
            })
        });
        if is_given_up || context.calls_any_within(node.range(), &["collect", "free_memory", "Process"]) {
            continue;
        }
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Info,
                call.expr,
                "the trainer of the round before, and its model, stay on the GPU until Python collects cycles",
            )
            .because_of(
                node.iterable().map_or(node.range(), Ranged::range),
                "each round of this loop makes a trainer",
            )
            .advise("delete it and call `gc.collect()` at the end of each round, or run each in a process of its own"),
        );
    }
}

fn makes_trainer(context: &Context<'_>, call: &Call<'_>) -> bool {
    if call.is_to(TRAINERS) {
        return true;
    }
    match &call.callee {
        Callee::Class(class @ Class::Project(..)) => {
            context.project.foreign_bases(class).iter().any(|it| TRAINERS.contains(&it.as_str()))
        }
        _ => false,
    }
}
