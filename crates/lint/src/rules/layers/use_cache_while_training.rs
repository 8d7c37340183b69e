//! Turns the key-value cache on together with gradient checkpointing.
//!
//! ## Why it matters
//! With `use_cache=True` a model hands out the keys and values of all layers at each step. In training nobody uses them, but they
//! are in memory with their graphs, which is what gradient checkpointing was to avoid. Newer models of transformers
//! turn the cache off by themselves and warn.
//!
//! ## Example
//! ```python
//! from transformers import AutoModelForCausalLM
//!
//! model = AutoModelForCausalLM.from_pretrained("gpt2", use_cache=True)
//! model.gradient_checkpointing_enable()
//! ```
//! Use instead:
//! ```python
//! from transformers import AutoModelForCausalLM
//!
//! model = AutoModelForCausalLM.from_pretrained("gpt2", use_cache=False)
//! model.gradient_checkpointing_enable()
//! ```
//!
//! ## When it is silent
//! The function turns the cache off, too, or turns it on only after training (behind a call of `train`), or checkpointing is
//! enabled in another function.
//!
//! ## Fix
//! Unsafe: makes the `True` a `False`; turn the cache on again before you generate.
//!
//! ## References
//! - huggingface/transformers#23808, huggingface/transformers#28056, huggingface/trl#3891

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Edit, Fix},
    names::FunctionId,
    rule::{Framework, Rule},
    syntax::{
        Ranged, TextSize,
        ast::Expr,
        bool_literal,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK704",
    name: "use-cache-while-training",
    frameworks: &[Framework::HuggingFace],
    severity: Severity::Info,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

/// A place where the cache is turned on or off.
struct Setting<'a> {
    value: &'a Expr,
    function: FunctionId,
    at: TextSize,
}

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let enabling: Vec<_> = context.calls_named("gradient_checkpointing_enable").collect();
    if enabling.is_empty() {
        return;
    }
    let settings = settings(context);
    for enable in enabling {
        let function = enable.at.function;
        let here: Vec<_> = settings.iter().filter(|it| it.function == function).collect();
        if here.iter().any(|it| bool_literal(it.value) != Some(true)) {
            continue;
        }
        let trained = context
            .calls_named("train")
            .filter(|it| it.at.function == function && it.at.branch.is_none())
            .map(|it| it.expr.start())
            .min();
        for setting in here.iter().filter(|it| trained.is_none_or(|train| it.at < train)) {
            let fix = Fix::new(
                Applicability::Unsafe,
                "turn the cache off",
                vec![Edit::replace(setting.value, "False")],
            );
            found.push(
                Diagnostic::new(
                    &RULE,
                    Severity::Info,
                    setting.value,
                    "the key-value cache of every layer is handed out at each step of training, where nobody uses it",
                )
                .because_of(enable.expr, "the model is trained with gradient checkpointing")
                .advise("set `use_cache` to `False` while training")
                .fixed_by(fix),
            );
        }
        return;
    }
}

/// `model.config.use_cache = …`, `….from_pretrained(…, use_cache=…)`
fn settings<'a>(context: &Context<'a>) -> Vec<Setting<'a>> {
    let assigned = context.facts.assignments.iter().filter_map(|it| match it.target {
        Expr::Attribute(target) if target.attr.as_str() == "use_cache" && ends_in_config(&target.value) => {
            Some(Setting { value: it.expr, function: it.at.function, at: it.expr.start() })
        }
        _ => None,
    });
    let passed = context.facts.calls.iter().filter_map(|it| {
        let value = &it.keyword("use_cache")?.value;
        let makes = matches!(it.last_name(), "from_pretrained" | "from_config");
        // What is passed anywhere else counts if it turns the cache off.
        (makes || bool_literal(value) != Some(true))
            .then(|| Setting { value, function: it.at.function, at: value.start() })
    });
    assigned.chain(passed).collect()
}

fn ends_in_config(expr: &Expr) -> bool {
    match expr {
        Expr::Attribute(it) => it.attr.as_str() == "config",
        Expr::Name(it) => it.id.as_str() == "config",
        _ => false,
    }
}
