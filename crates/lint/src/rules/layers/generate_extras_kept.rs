//! Keeps all that `generate` returns beside the tokens.
//!
//! ## Why it matters
//! `return_dict_in_generate=True` gives an object that holds the key-value cache, and on request scores, hidden states and
//! attentions of every token. The sequences are a few KB; the cache of a model of 7 billion parameters is half a MB for each
//! token. A list of such objects keeps all of it on the GPU.
//!
//! ## Example
//! ```python
//! outputs = []
//! for prompt in prompts:
//!     outputs.append(model.generate(prompt, return_dict_in_generate=True))
//! ```
//! Use instead:
//! ```python
//! outputs = []
//! for prompt in prompts:
//!     outputs.append(model.generate(prompt, return_dict_in_generate=True).sequences)
//! ```
//!
//! ## When it is silent
//! Only a part of the object is kept, it is kept once or in a list that is emptied again, or `use_cache=False` is passed and
//! nothing else is asked for.
//!
//! ## Fix
//! Unsafe: appends `.sequences`, where nothing beside the cache was asked for; else it is only shown, for scores that were
//! asked for are perhaps read.
//!
//! ## References
//! - generative-computing/mellea#544

use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::Keep,
    fix::{Applicability, Edit, Fix},
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{self, Expr},
        bool_literal,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK702",
    name: "generate-extras-kept",
    frameworks: &[Framework::HuggingFace],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

const EXTRAS: &[&str] = &["output_scores", "output_logits", "output_hidden_states", "output_attentions"];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for keep in &context.facts.keeps {
        let Some(call) = generated(context, keep).filter(|_| Context::adds_each_time(keep)) else { continue };
        let has = |name: &str, value| {
            call.arguments.find_keyword(name).is_some_and(|it| bool_literal(&it.value) == Some(value))
        };
        let asked: Vec<&str> = EXTRAS.iter().copied().filter(|it| has(it, true)).collect();
        if !has("return_dict_in_generate", true) || asked.is_empty() && has("use_cache", false) {
            continue;
        }
        let Some(repetition) = context.repetition(keep) else { continue };
        if context.is_bounded(keep) {
            continue;
        }
        let mut what = if has("use_cache", false) { Vec::new() } else { vec!["its key-value cache".to_owned()] };
        what.extend(asked.iter().map(|it| it.trim_start_matches("output_").replace('_', " ")));
        let message =
            format!("`{}` keeps {} with every generated text", context.text(keep.target), what.join(", "));
        let mut diagnostic = Diagnostic::new(&RULE, Severity::Warning, keep.range, message)
            .because_of(call, "with `return_dict_in_generate=True` this returns more than tokens");
        if let Repetition::Data(id) | Repetition::Loop(id) = repetition {
            diagnostic = diagnostic.because_of(
                context.head(id),
                format!("`{}` outlives every round of this loop", context.text(keep.target)),
            );
        }
        let grade = if asked.is_empty() { Applicability::Unsafe } else { Applicability::Display };
        let fix = Fix::new(grade, "append `.sequences`", vec![Edit::insert(keep.kept.end(), ".sequences")]);
        found.push(diagnostic.advise("keep `.sequences` of it, and of the rest what is needed").fixed_by(fix));
    }
}

/// The call of `generate` whose result is kept, directly or by way of a name.
fn generated<'a>(context: &Context<'a>, keep: &Keep<'a>) -> Option<&'a ast::ExprCall> {
    let call = match keep.kept {
        Expr::Call(call) => call,
        Expr::Name(name) => context.last_call_given_to(keep.at.function, name, keep.range.start())?,
        _ => return None,
    };
    matches!(&*call.func, Expr::Attribute(it) if it.attr.as_str() == "generate").then_some(call)
}
