//! Checkpoints a closure over the variable that its output is put into.
//!
//! ## Why it matters
//! The output holds its graph, the graph of a checkpoint holds the function to run it again, and that function holds the variable:
//! a circle. With `use_reentrant=True` it is only freed when Python's cyclic collector runs, which does not see how full a
//! GPU is, even after a backward pass; with `use_reentrant=False` and no backward pass not even the collector frees it
//! (measured with PyTorch 2.11: all of 10 outputs were still alive after `gc.collect()`).
//!
//! ## Example
//! ```python
//! from torch.utils.checkpoint import checkpoint
//!
//! def forward(block, data, x):
//!     data.h = checkpoint(lambda y: block(y, data.mask), x, use_reentrant=False)
//!     return data
//! ```
//! Use instead:
//! ```python
//! from torch.utils.checkpoint import checkpoint
//!
//! def forward(block, data, x):
//!     data.h = checkpoint(block, x, data.mask, use_reentrant=False)
//!     return data
//! ```
//!
//! ## When it is silent
//! The closure does not mention what the output is put into; that is `self`, which lives on with only its last output; or the
//! code is at the top of a module.
//!
//! ## Fix
//! Only advice: what the closure uses should be passed as arguments. `use_reentrant=False` alone is not enough.
//!
//! ## References
//! - pytorch/pytorch#84413, pytorch/pytorch#80151, pytorch/pytorch#77284, pytorch/pytorch#115255

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    flow::value::Value,
    names::FunctionId,
    rule::{Framework, Rule},
    syntax::ast::{Expr, Stmt},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK611",
    name: "checkpoint-closure-captures-output",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in context.calls_to(&["torch.utils.checkpoint.checkpoint"]) {
        let function = call.at.function;
        let (Some(run), Stmt::Assign(assignment)) = (call.argument("function", 0), call.at.statement) else {
            continue;
        };
        let Value::Function(file, closure) = call.value_of(run) else { continue };
        let is_within = context.names.functions.get(closure.0 as usize).is_some_and(|it| it.parent == Some(function));
        let is_output = matches!(&*assignment.value, Expr::Call(it) if std::ptr::eq(it, call.expr));
        if *file != context.file || function == FunctionId::MODULE || !is_within || !is_output {
            continue;
        }
        for target in &assignment.targets {
            let Some(name) = root(target).filter(|it| !is_receiver(context, function, it)) else { continue };
            let scope = context.scope(function);
            let Some(captured) = context.names.name(scope, name).and_then(|it| {
                it.uses.iter().find(|it| {
                    context.names.functions_from(it.function).take_while(|it| *it != function).any(|it| it == *closure)
                })
            }) else {
                continue;
            };
            found.push(
                Diagnostic::new(
                    &RULE,
                    Severity::Warning,
                    call.expr,
                    format!(
                        "the output, put into `{}`, and the checkpointed function hold each other, so that neither is freed in time",
                        context.text(target)
                    ),
                )
                .because_of(captured.expr, format!("the function that is checkpointed captures `{name}`"))
                .advise("pass what the function needs as arguments of `checkpoint`"),
            );
        }
    }
}

/// The variable by which a target is reached.
fn root(target: &Expr) -> Option<&str> {
    match target {
        Expr::Name(it) => Some(it.id.as_str()),
        Expr::Attribute(it) => root(&it.value),
        Expr::Subscript(it) => root(&it.value),
        _ => None,
    }
}

fn is_receiver(context: &Context<'_>, function: FunctionId, name: &str) -> bool {
    context.names.functions_from(function).any(|it| context.names.function(it).receiver() == Some(name))
}
