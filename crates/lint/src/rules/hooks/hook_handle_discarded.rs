//! Registers a hook again and again, and throws away the handle that could remove it.
//!
//! ## Why it matters
//! Every registration adds one more hook to the module, and each keeps what its function refers to: 4.2 MB a round for a
//! hook that holds one activation, and nothing when the handle is removed. After a thousand rounds each forward pass
//! also runs a thousand hooks.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! for batch in loader:
//!     model.register_forward_hook(lambda module, inputs, output: print(output.mean()))
//!     model(batch)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! handle = model.register_forward_hook(lambda module, inputs, output: print(output.mean()))
//! for batch in loader:
//!     model(batch)
//! handle.remove()
//! ```
//!
//! ## When it is silent
//! The hook is registered once; its module is made in the same round or function; a condition lets it happen once; a loop
//! goes over the layers of a model; callers pass the hook. A module may hook itself and its own parts.
//!
//! ## Fix
//! Only advice: where the hook should be removed depends on who needs it.
//!
//! ## References
//! - frgfm/torch-cam#197, fffasttime/MRFI#5, NeuroBench/neurobench#184, Lightning-AI/pytorch-lightning#2298

use crate::{
    context::{Context, HOOK_METHODS, Repetition, first_name, is_done_once},
    diagnostic::{Diagnostic, Severity},
    facts::Call,
    names::Definition,
    rule::{Framework, Rule},
    syntax::{Ranged, ast::Expr, mentions},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK302",
    name: "hook-handle-discarded",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in HOOK_METHODS.iter().flat_map(|it| context.calls_named(it)) {
        let Some((object, ..)) = call.method() else { continue };
        if !call.is_statement() || is_done_once(&call.at) {
            continue;
        }
        let message = format!("one more hook on `{}` each time, and no handle to remove it", context.text(object));
        let diagnostic = Diagnostic::new(&RULE, Severity::Warning, call.expr, message);
        let diagnostic = match context.repetition_at(&call.at) {
            Some(Repetition::Data(id)) if !context.is_made_within(call.at.function, id, object) => {
                let node = context.names.the_loop(id).node;
                let head = node.iterable().map_or(node.range(), Ranged::range);
                diagnostic.because_of(head, "this loop runs for each batch or step")
            }
            Some(Repetition::Called | Repetition::Framework) if outlives_call(context, call, object) && !is_of_caller(context, call) => {
                let name = context.names.function(call.at.function).name;
                diagnostic.because(format!("`{name}` runs again and again"))
            }
            _ => continue,
        };
        found.push(diagnostic.advise("register it once, or keep the handle and call `.remove()`"));
    }
}

/// Whether the module is the same in every call: of the file, or of the object whose method it is.
fn outlives_call<'a>(context: &Context<'a>, call: &Call<'a>, object: &'a Expr) -> bool {
    let Some(name) = first_name(object) else { return false };
    let own = context.names.function(call.at.function);
    if own.receiver() == Some(name) {
        return true;
    }
    match context.names.scope(own.scope).names.get(name) {
        // Something local: new, a parameter, or a part of something, which is followed to where it comes from.
        Some(entry) => entry.definitions.iter().all(|it| match it {
            Definition::Loop(id) => {
                context.names.the_loop(*id).node.iterable().and_then(first_name).is_some_and(|from| {
                    own.receiver() == Some(from) || !context.names.scope(own.scope).names.contains_key(from)
                })
            }
            _ => false,
        }),
        None => true,
    }
}

/// Whether each call registers a hook of its own, made from what it is given.
fn is_of_caller<'a>(context: &Context<'a>, call: &Call<'a>) -> bool {
    let own = context.names.function(call.at.function);
    let scope = context.names.scope(own.scope);
    call.expr.arguments.args.first().is_some_and(|hook| {
        mentions(hook, &|it| match it {
            Expr::Name(it) => {
                let name = it.id.as_str();
                own.receiver() != Some(name)
                    && scope
                        .names
                        .get(name)
                        .is_some_and(|it| it.definitions.iter().any(|it| matches!(it, Definition::Parameter(_))))
            }
            _ => false,
        })
    })
}
