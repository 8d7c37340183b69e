//! Evaluates a language or segmentation model in a Trainer that gathers all logits on the GPU.
//!
//! ## Why it matters
//! With `compute_metrics`, the Trainer of transformers puts the logits of the whole evaluation set together before it calls it, on
//! the GPU unless `eval_accumulation_steps` is set. For a vocabulary of 50000 that is 100 MB for each text of 512 tokens,
//! and from all processes at once.
//!
//! ## Example
//! ```python
//! from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
//!
//! model = AutoModelForCausalLM.from_pretrained("gpt2")
//! args = TrainingArguments("out", eval_strategy="epoch")
//! trainer = Trainer(model=model, args=args, eval_dataset=texts, compute_metrics=accuracy)
//! ```
//! Use instead:
//! ```python
//! from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
//!
//! model = AutoModelForCausalLM.from_pretrained("gpt2")
//! args = TrainingArguments("out", eval_strategy="epoch")
//! trainer = Trainer(
//!     model=model,
//!     args=args,
//!     eval_dataset=texts,
//!     compute_metrics=accuracy,
//!     preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
//! )
//! ```
//! `batch_eval_metrics=True` computes metrics batch by batch; `eval_accumulation_steps` moves the logits to host memory.
//!
//! ## When it is silent
//! The file mentions `preprocess_logits_for_metrics`, `eval_accumulation_steps`, `batch_eval_metrics`, `prediction_loss_only` or
//! `predict_with_generate`; it does not make its `TrainingArguments` itself; or no model whose logits are large is loaded in it.
//!
//! ## Fix
//! Only shown: `eval_accumulation_steps`. Which of the logits the metrics need is a question to you.
//!
//! ## References
//! - huggingface/transformers#12878, huggingface/transformers#15466, huggingface/transformers#27458, hiyouga/LlamaFactory#1595

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::{Call, Callee},
    fix::{Applicability, Fix},
    flow::value::Class,
    rule::{Framework, Rule},
    syntax::ast::Expr,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK701",
    name: "trainer-metrics-accumulate-logits",
    frameworks: &[Framework::HuggingFace],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Display),
    check,
};

const TRAINERS: &[&str] = &[
    "transformers.Trainer",
    "transformers.trainer.Trainer",
    "transformers.Seq2SeqTrainer",
    "trl.SFTTrainer",
];
const ARGUMENTS: &[&str] = &[
    "transformers.TrainingArguments",
    "transformers.training_args.TrainingArguments",
    "transformers.Seq2SeqTrainingArguments",
    "trl.SFTConfig",
];
const REMEDIES: &[&str] = &[
    "preprocess_logits_for_metrics",
    "eval_accumulation_steps",
    "batch_eval_metrics",
    "prediction_loss_only",
    "predict_with_generate",
];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let Some(model) = context.calls_named("from_pretrained").find(|it| has_large_logits(it)) else { return };
    let mut settings = context.calls_to(ARGUMENTS);
    let Some(arguments) = settings.next().filter(|it| !it.has_unpacking()) else { return };
    if settings.any(Call::has_unpacking) || REMEDIES.iter().any(|it| context.source.text().contains(it)) {
        return;
    }
    let trainers = context.facts.calls.iter().filter(|it| it.is_to(TRAINERS) || is_own_trainer(context, it));
    for call in trainers {
        let metrics = call.keyword("compute_metrics").filter(|it| !matches!(it.value, Expr::NoneLiteral(_)));
        let Some(metrics) = metrics.filter(|_| !call.has_unpacking()) else { continue };
        let fix = context.add_keyword(arguments.expr, "eval_accumulation_steps=8").map(|it| {
            Fix::new(Applicability::Display, "move the logits to host memory now and then", vec![it])
        });
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                metrics,
                "the logits of the whole evaluation set are gathered on the GPU for `compute_metrics`",
            )
            .because_of(model.expr, "each token or pixel of this model has logits for all words or classes")
            .because_of(arguments.expr, "`eval_accumulation_steps` is not set")
            .advise("reduce them in `preprocess_logits_for_metrics`, for example by `argmax(-1)`")
            .fixed_by(fix),
        );
    }
}

/// Whether a call makes a trainer of the project's own, derived from one of the library's.
fn is_own_trainer(context: &Context<'_>, call: &Call<'_>) -> bool {
    let Callee::Class(class @ Class::Project(..)) = &call.callee else { return false };
    context.project.foreign_bases(class).iter().any(|it| TRAINERS.contains(&it.as_str()))
}

/// Whether a call loads a model whose logits are large.
fn has_large_logits(call: &Call<'_>) -> bool {
    let Callee::External(path) = &call.callee else { return false };
    let [first, .., class, _] = path.parts() else { return false };
    *first == "transformers"
        && ["ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForConditionalGeneration", "ForSeq2SeqLM", "SemanticSegmentation"]
            .iter()
            .any(|it| class.ends_with(it))
}
