//! A forward hook appends what goes through its module to a list that nothing empties.
//!
//! ## Why it matters
//! The hook runs at every forward pass, so the list grows by the module's whole output each time: 4.2 MB a pass for one
//! layer of width 1024 and batch 1024. Outside `torch.no_grad()` each output also drags the graph of its pass along.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Sequential(torch.nn.Linear(10, 10), torch.nn.ReLU()).cuda()
//! activations = []
//!
//! def hook(module, inputs, output):
//!     activations.append(output)
//!
//! model[0].register_forward_hook(hook)
//! for batch in loader:
//!     model(batch)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Sequential(torch.nn.Linear(10, 10), torch.nn.ReLU()).cuda()
//! activations = {}
//!
//! def hook(module, inputs, output):
//!     activations["first"] = output.detach()
//!
//! model[0].register_forward_hook(hook)
//! for batch in loader:
//!     model(batch)
//! ```
//! Or empty the list after each step, or move what is kept to the host with `.detach().cpu()`.
//!
//! ## When it is silent
//! The hook overwrites a slot; the list is emptied or given up somewhere, is bounded, or belongs to a function that runs
//! one forward pass; what is kept was moved to the host without its graph, or is a number. It is only an information where
//! no loop runs the model in the same file.
//!
//! ## Fix
//! Appends `.detach().cpu()` to what is kept; unsafe, because the device changes and a module may give more than a tensor.
//!
//! ## References
//! - KamitaniLab/bdpy#72, KamitaniLab/bdpy#91, meta-pytorch/opacus#176, jmschrei/tangermeme#84,
//!   fangwei123456/spikingjelly#676

use crate::{
    context::{Context, Kind, Repetition, Rounds},
    diagnostic::{Diagnostic, Severity},
    facts::{How, Keep, Root},
    fix::Applicability,
    flow::value::{Graph, Place, Size},
    names::{Definition, FunctionId},
    rule::{Framework, Rule},
    rules::references::to_host::to_host,
    syntax::Ranged,
};

pub(crate) static RULE: Rule = Rule {
    code: "LK301",
    name: "hook-appends-activations",
    frameworks: &[Framework::Torch],
    severity: Severity::Error,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for case in context.cases(Kind::HookOutput) {
        let keep = case.keep;
        let Some(tensor) = keep.value.tensor_within() else { continue };
        let has_graph = case.graph >= Graph::Likely;
        let is_small = matches!(tensor.size, Size::Scalar | Size::Indices) || tensor.place == Place::Host;
        if !matches!(keep.how, How::Append | How::Extend | How::Concatenate) || (is_small && !has_graph) {
            continue;
        }
        let severity = match repeats(context, keep) {
            Repeats::Yes => case.severity().max(Severity::Warning),
            Repeats::Perhaps => Severity::Info,
            Repeats::No => continue,
        };
        let (list, kept) = (context.text(keep.target), context.text(keep.kept));
        let message = format!("`{list}` keeps `{kept}` of every forward pass");
        let mut diagnostic = Diagnostic::new(&RULE, severity, keep.range, message)
            .because("it is a hook, which runs at every forward pass, and nothing empties what it fills");
        if has_graph {
            diagnostic = diagnostic.because("unless gradients are off, each output keeps the graph of its forward pass alive");
        }
        found.push(
            diagnostic
                .advise("overwrite a slot with `.detach()` of it, or empty the list after each step")
                .fixed_by(to_host(keep)),
        );
    }
}

/// Whether the hook runs more often than its list is made.
enum Repeats {
    Yes,
    Perhaps,
    No,
}

fn repeats<'a>(context: &Context<'a>, keep: &Keep<'a>) -> Repeats {
    let Root::Name(owner, _) = keep.root else { return Repeats::Yes };
    let definitions = context.definitions(keep.root);
    if definitions.iter().any(|it| matches!(it, Definition::Parameter(_))) {
        return Repeats::No;
    }
    let made_in = |range: crate::syntax::TextRange| {
        definitions.iter().any(|it| matches!(it, Definition::Value(value, _) if range.contains_range(value.range())))
    };
    let mut forwards = context.facts.calls.iter().filter(|it| context.is_forward(it));
    if owner == FunctionId::MODULE {
        let is_run = forwards.any(|it| match context.repetition_at(&it.at) {
            Some(Repetition::Data(id) | Repetition::Loop(id)) => {
                it.at.function != FunctionId::MODULE || !made_in(context.names.the_loop(id).node.range())
            }
            Some(Repetition::Called) => true,
            _ => false,
        });
        return if is_run { Repeats::Yes } else { Repeats::Perhaps };
    }
    let is_run = forwards.filter(|it| it.at.function == owner).any(|it| {
        context.names.loops_from(it.at.in_loop).any(|id| {
            matches!(context.rounds(id), Rounds::Data | Rounds::Unknown)
                && !made_in(context.names.the_loop(id).node.range())
        })
    });
    // What a function hooks in and takes away again gathers on purpose, and no more than the function asks for.
    let is_taken_away = context.calls_named("remove").any(|it| it.at.function == owner);
    match (is_run, is_taken_away) {
        (true, false) => Repeats::Yes,
        (true, true) => Repeats::Perhaps,
        (false, _) => Repeats::No,
    }
}
