//! Puts tensors into a replay buffer together with the graph that computed them.
//!
//! ## Why it matters
//! A replay buffer keeps thousands of steps, and each tensor in it that has a graph keeps the activations of its step. No
//! backward pass ever goes there: what is replayed is computed anew. Kept outputs cost 16.8 MB a step with their graph where
//! the outputs alone are 4.2 MB, measured with three layers.
//!
//! ## Example
//! ```python
//! import torch
//!
//! policy = torch.nn.Linear(4, 2)
//! for step in range(num_steps):
//!     action = policy(state)
//!     state, reward = environment.step(action)
//!     replay_buffer.push(state, action, reward)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! policy = torch.nn.Linear(4, 2)
//! for step in range(num_steps):
//!     action = policy(state)
//!     state, reward = environment.step(action)
//!     replay_buffer.push(state, action.detach(), reward)
//! ```
//!
//! ## When it is silent
//! The buffer is not named after a replay (on-policy rollouts want the graph); it is emptied in the file; recording is off; what
//! is put there has no graph for sure, or nobody knows.
//!
//! ## Fix
//! Appends `.detach()`. Unsafe: what takes it from the buffer may want the graph after all.
//!
//! ## References
//! - oxwhirl/pymarl#73, recursionpharma/gflownet#130, Kaixhin/Rainbow#33, ray-project/ray#6962

use crate::{
    context::{Context, Release, needs_parentheses},
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Edit, Fix},
    flow::value::{Graph, Value},
    rule::{Framework, Rule},
    syntax::{Ranged, ast::Expr, is_same_place},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK117",
    name: "replay-buffer-attached",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

const PUTTING: &[&str] =
    &["push", "add", "store", "remember", "put", "store_transition", "add_experience", "add_transition", "insert", "append"];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in PUTTING.iter().flat_map(|it| context.calls_named(it)) {
        let Some((buffer, value, _)) = call.method() else { continue };
        // A list that grows without bound is another rule's.
        let is_plain_list = value.as_group().is_some_and(|it| !it.is_bounded);
        if is_plain_list || !is_replay(buffer) || is_emptied(context, buffer) || context.repetition_at(&call.at).is_none() {
            continue;
        }
        let parts: Vec<(&Expr, &Value)> = match &*call.expr.arguments.args {
            [whole @ Expr::Tuple(tuple)] => match call.value_of(whole).as_group() {
                Some(group) if group.parts.len() == tuple.elts.len() => tuple.elts.iter().zip(&group.parts).collect(),
                _ => continue,
            },
            arguments => arguments.iter().map(|it| (it, call.value_of(it))).collect(),
        };
        let attached: Vec<&Expr> = parts
            .into_iter()
            .filter(|(expr, value)| {
                matches!(value, Value::Tensor(_))
                    && context.graph(value, &call.at) == Graph::Attached
                    && context.release(value, &call.at) == Release::Kept
                    && !matches!(expr, Expr::Starred(_) | Expr::Await(_) | Expr::Named(_) | Expr::If(_) | Expr::BoolOp(_))
            })
            .map(|it| it.0)
            .collect();
        if attached.is_empty() {
            continue;
        }
        let names: Vec<String> = attached.iter().map(|it| format!("`{}`", context.text(*it))).collect();
        let edits = attached.iter().flat_map(|it| {
            if needs_parentheses(it) {
                vec![Edit::insert(it.start(), "("), Edit::insert(it.end(), ").detach()")]
            } else {
                vec![Edit::insert(it.end(), ".detach()")]
            }
        });
        let fix = Fix::new(Applicability::Unsafe, "append `.detach()`, which lets go of the graph", edits.collect());
        let severity = if context.is_test() { Severity::Info } else { Severity::Warning };
        found.push(
            Diagnostic::new(
                &RULE,
                severity,
                call.expr,
                format!("`{}` keeps {} together with the graph of its step", context.text(buffer), names.join(", ")),
            )
            .because("nothing in the file empties the buffer, and no backward pass frees the graph")
            .advise("keep `.detach()` of it")
            .fixed_by(fix),
        );
    }
}

/// Whether the name says that what is in it is used again and again, apart from the step that made it.
fn is_replay(buffer: &Expr) -> bool {
    let name = match buffer {
        Expr::Name(it) => it.id.as_str(),
        Expr::Attribute(it) => it.attr.as_str(),
        _ => return false,
    };
    name.to_ascii_lowercase().contains("replay")
}

fn is_emptied(context: &Context<'_>, buffer: &Expr) -> bool {
    ["clear", "reset", "empty", "flush"].into_iter().flat_map(|it| context.calls_named(it)).any(|it| {
        it.method().is_some_and(|(object, ..)| is_same_place(object, buffer))
    })
}
