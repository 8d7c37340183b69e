//! Keeps a checkpoint in a variable while training runs.
//!
//! ## Why it matters
//! After `load_state_dict` the model has its own copy, but the variable still holds the checkpoint: all parameters a second time,
//! and the state of the optimizer. The variables of a function live until it returns, that is through the whole training. On
//! the GPU this is memory that no step can use; on the host it is taken once for each process.
//!
//! ## Example
//! ```python
//! import torch
//!
//! def main(model, optimizer, loader):
//!     checkpoint = torch.load("last.pt")
//!     model.load_state_dict(checkpoint["model"])
//!     for x in loader:
//!         model(x).mean().backward()
//!         optimizer.step()
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! def main(model, optimizer, loader):
//!     checkpoint = torch.load("last.pt")
//!     model.load_state_dict(checkpoint["model"])
//!     del checkpoint
//!     for x in loader:
//!         model(x).mean().backward()
//!         optimizer.step()
//! ```
//!
//! ## When it is silent
//! The variable is used in or after the loop, deleted, or given something else; what is loaded is not seen to go into
//! `load_state_dict`; no loop that trains follows in the function. Loaded to the host it is only an info.
//!
//! ## Fix
//! Deletes the variable after its last use: safe in a function; unsafe for a variable of the module, which others may import.
//!
//! ## References
//! - [PyTorch FAQ: Don't hold onto tensors and variables you don't need](https://docs.pytorch.org/docs/stable/notes/faq.html)

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::Call,
    fix::{Applicability, Fix},
    names::{FunctionId, LoopId, Usage},
    rule::{Framework, Rule},
    syntax::{Ranged, TextSize, ast::Stmt, bool_literal, text_literal},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK505",
    name: "checkpoint-kept",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Safe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    for call in context.calls_to(&["torch.load"]) {
        let Some(last_use) = last_use_of(context, call) else { continue };
        let Some(training) = training_after(context, call, last_use) else { continue };
        let Some(name) = call.name_of_result() else { continue };
        let is_on_host = call.argument("map_location", 1).and_then(text_literal) == Some("cpu")
            || call.keyword("mmap").is_some_and(|it| bool_literal(&it.value) == Some(true));
        let (severity, place) =
            if is_on_host { (Severity::Info, "host memory") } else { (Severity::Warning, "memory") };
        let node = context.names.the_loop(training).node;
        let name = name.id.as_str();
        found.push(
            Diagnostic::new(
                &RULE,
                severity,
                call.expr,
                format!("`{name}` stays in {place} while training runs, beside what was loaded from it"),
            )
            .because_of(
                node.iterable().map_or(node.range(), Ranged::range),
                format!("this loop trains, and `{name}` is not used any more"),
            )
            .advise(format!("`del {name}` after loading, or load in a function of its own"))
            .fixed_by(delete_after(context, call, name, last_use)),
        );
    }
}

/// Where the variable that holds the checkpoint is last used, if all uses come after each other in its own function, and one
/// of them loads its state.
fn last_use_of<'a>(context: &Context<'a>, call: &Call<'a>) -> Option<TextSize> {
    let name = call.name_of_result()?;
    let entry = context.names.name(context.scope(call.at.function), name.id.as_str())?;
    if entry.definitions.len() != 1 || call.at.in_loop.is_some() {
        return None;
    }
    let mut last = None;
    let mut is_loaded = false;
    for one_use in &entry.uses {
        match one_use.usage {
            Usage::Stored => continue,
            Usage::Deleted | Usage::Returned | Usage::Assigned => return None,
            _ if one_use.function != call.at.function => return None,
            _ => {}
        }
        let range = one_use.expr.range();
        is_loaded |= context.calls_named("load_state_dict").any(|it| {
            it.expr.arguments.args.first().is_some_and(|it| it.range().contains_range(range))
        });
        last = last.max(Some(range.end()));
    }
    last.filter(|_| is_loaded)
}

/// A loop in the same function that trains and begins after a place.
fn training_after(context: &Context<'_>, call: &Call<'_>, place: TextSize) -> Option<LoopId> {
    (0..context.names.loops.len()).map(LoopId::at).find(|id| {
        let it = context.names.the_loop(*id);
        let trains = it.trains
            || context.is_over_data(*id)
                && context.calls_within(it.node.range()).any(|it| it.last_name().starts_with("train"));
        it.function == call.at.function && it.parent.is_none() && it.node.range().start() > place && trains
    })
}

/// `del name` behind the statement of the last use, in the block in which the variable is set.
fn delete_after<'a>(context: &Context<'a>, call: &Call<'a>, name: &str, last_use: TextSize) -> Option<Fix> {
    let block = Context::block_of(call.at.statement, context.body_of(call.at.function))?;
    let last: &Stmt = block.iter().find(|it| it.range().contains_inclusive(last_use))?;
    let looks_at_all = context.calls_any_within(context.range_of(call.at.function), &["locals", "vars", "exec", "eval"]);
    if looks_at_all || !context.is_alone_on_its_lines(last) {
        return None;
    }
    let scope = context.names.scope(context.scope(call.at.function));
    // What other files can see may be read there.
    let is_global = call.at.function == FunctionId::MODULE || scope.names.get(name).is_some_and(|it| it.elsewhere.is_some());
    let applicability = if is_global { Applicability::Unsafe } else { Applicability::Safe };
    Some(Fix::new(
        applicability,
        format!("delete `{name}` after its last use"),
        vec![context.line_below(last, last, &format!("del {name}"))],
    ))
}
