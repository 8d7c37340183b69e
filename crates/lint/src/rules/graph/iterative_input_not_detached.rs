//! Samples step by step through a network while autograd records.
//!
//! ## Why it matters
//! Each step's input is the step before's output, so the last sample keeps the activations of all steps: a sampler of 50 steps
//! needs the memory of a network 50 times as deep, where one pass would do.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(64, 64)
//! x = torch.randn(16, 64)
//! for step in range(num_steps):
//!     x = x + 0.1 * model(x)
//! torch.save(x.detach(), "sample.pt")
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(64, 64)
//! x = torch.randn(16, 64)
//! with torch.no_grad():
//!     for step in range(num_steps):
//!         x = x + 0.1 * model(x)
//! torch.save(x, "sample.pt")
//! ```
//!
//! ## When it is silent
//! Recording is off, here or in whoever calls the function; the input is detached in each step; anything in the function (for a
//! script: in the file) works with gradients; a function that returns the sample is not named for sampling, so that its
//! result may be trained on.
//!
//! ## Fix
//! Puts `@torch.no_grad()` above a sampling function. Unsafe: nothing can be trained through the steps any more.
//!
//! ## References
//! - BorealisAI/advertorch#68, #73, `LostOxygen/poison_froggo#1`, TorchSim/torch-sim#491

use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    facts::{Grad, How, Keep, Root},
    fix::{Applicability, Fix},
    flow::value::Graph,
    names::{FunctionId, LoopId, LoopNode},
    rule::{Framework, Rule},
    syntax::{Ranged, ast::Expr, is_same_place, mentions},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK120",
    name: "iterative-input-not-detached",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    let mut seen: Vec<LoopId> = Vec::new();
    for keep in &context.facts.keeps {
        let Some((the_loop, network)) = steps_through(context, keep) else { continue };
        let function = keep.at.function;
        let is_sampler = function == FunctionId::MODULE || is_named_for_sampling(context.names.function(function).name);
        if seen.contains(&the_loop) || !is_sampler || wants_gradients(context, function) || !context.seems_to_record(&keep.at) {
            continue;
        }
        seen.push(the_loop);
        let node = context.names.the_loop(the_loop).node;
        let head = node.iterable().map_or(node.range(), Ranged::range);
        let edit = if keep.at.grad == Grad::AsCaller { context.decorate_with_no_grad(function) } else { None };
        let fix = edit.map(|it| Fix::new(Applicability::Unsafe, "turn recording off for the whole function", vec![it]));
        let name = context.text(keep.target);
        found.push(
            Diagnostic::new(&RULE, Severity::Warning, keep.range, format!("`{name}` keeps the activations of `{network}` in all steps"))
                .because_of(head, format!("each round of this loop computes `{name}` from the `{name}` before"))
                .because("nothing here works with gradients, but autograd records")
                .advise("sample under `torch.no_grad()`")
                .fixed_by(fix),
        );
    }
}

/// The loop in which a name goes from step to step through a network, and the network.
fn steps_through<'a>(context: &Context<'a>, keep: &'a Keep<'a>) -> Option<(LoopId, &'a str)> {
    let (Repetition::Data(the_loop) | Repetition::Loop(the_loop)) = context.repetition(keep)? else {
        return None;
    };
    let is_step = matches!(keep.how, How::Chain | How::Accumulate) && matches!(keep.root, Root::Name(..));
    if !is_step || keep.key.is_some() || context.graph(&keep.value, &keep.at) < Graph::Likely {
        return None;
    }
    // The network gets what it made before, directly: in the very expression, or in one that this goes on from.
    let node = context.names.the_loop(the_loop).node;
    let range = node.range();
    if keep.at.function == FunctionId::MODULE && !counts_steps(node) {
        return None;
    }
    // One layer after another, `layer(x)` or `layers[i](x)`, is one pass through a network.
    let is_layer = |func: &Expr| {
        node.target().is_some_and(|target| {
            mentions(func, &|part| part.is_name_expr() && mentions(target, &|it| is_same_place(it, part)))
        })
    };
    let mut calls = context.facts.calls.iter().filter(|it| {
        it.at.function == keep.at.function
            && range.contains_range(it.expr.range())
            && !is_layer(&it.expr.func)
            && context.runs_network(it)
    });
    let call = calls.find(|it| it.expr.arguments.args.iter().any(|it| mentions(it, &|it| is_same_place(it, keep.target))))?;
    let is_of_it = keep.kept.range().contains_range(call.expr.range()) || keep.carried.is_some();
    is_of_it.then(|| (the_loop, context.text(&*call.expr.func)))
}

/// Whether a loop of a script goes over steps: a number of them, or what is named so.
fn counts_steps(node: LoopNode<'_>) -> bool {
    node.iterable().is_none_or(|iterable| {
        mentions(iterable, &|it| {
            let name = match it {
                Expr::NumberLiteral(_) => return true,
                Expr::Name(it) => it.id.as_str(),
                Expr::Attribute(it) => it.attr.as_str(),
                _ => return false,
            };
            let name = name.to_ascii_lowercase();
            ["step", "iter", "time"].iter().any(|it| name.contains(it))
        })
    })
}

/// Whether the function works with gradients; of a script, anything in the file, which may get what it made.
fn wants_gradients(context: &Context<'_>, function: FunctionId) -> bool {
    if function == FunctionId::MODULE {
        let mut all = (0..context.names.functions.len() as u32).map(FunctionId);
        return all.any(|it| context.wants_gradients(it, None));
    }
    context.wants_gradients(function, None)
}

fn is_named_for_sampling(name: &str) -> bool {
    name.to_ascii_lowercase().split('_').any(|it| {
        matches!(it, "sample" | "sampling" | "sampler" | "denoise" | "denoising" | "langevin" | "ddim" | "ddpm" | "generate")
    })
}
