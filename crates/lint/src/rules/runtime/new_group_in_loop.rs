//! Makes a process group anew at every step.
//!
//! ## Why it matters
//! A group of processes keeps its communicator, with buffers of NCCL on every GPU, until it is destroyed: 544 to 688 MB for each
//! group have been reported. Losing the name of the group does not destroy it.
//!
//! ## Example
//! ```python
//! import torch.distributed as dist
//!
//! for epoch in range(epochs):
//!     group = dist.new_group(ranks)
//!     dist.all_reduce(total, group=group)
//! ```
//! Use instead:
//! ```python
//! import torch.distributed as dist
//!
//! group = dist.new_group(ranks)
//! for epoch in range(epochs):
//!     dist.all_reduce(total, group=group)
//! ```
//!
//! ## When it is silent
//! The loop is one over ranks or groups (what is passed depends on its variable), the file destroys a group by name
//! (`dist.destroy_process_group(group)`), or groups are made under a condition.
//!
//! ## Fix
//! Unsafe: moves the assignment in front of the loop, if nothing in it changes from round to round. Every process must get there.
//!
//! ## References
//! - pytorch/pytorch#40400, pytorch/pytorch#107298, NVIDIA/nccl#964, NVIDIA/Megatron-LM#6897

use crate::{
    context::{Context, EachStep},
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Fix},
    names::{Definition, LoopId},
    rule::{Framework, Rule},
    syntax::{
        ast::{self, Expr},
        mentions,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK608",
    name: "new-group-in-loop",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

const MAKERS: &[&str] = &[
    "torch.distributed.new_group",
    "torch.distributed.distributed_c10d.new_group",
    "torch.distributed.new_subgroups",
    "torch.distributed.init_device_mesh",
    "torch.distributed.device_mesh.init_device_mesh",
];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let destroys = context.calls_named("destroy_process_group").any(|it| !it.expr.arguments.is_empty());
    if destroys {
        return;
    }
    for call in context.calls_to(MAKERS) {
        let Some(each) = context.each_step(&call.at) else { continue };
        let fix = match each {
            EachStep::In(id) if is_over_ranks(context, call.expr, id) => continue,
            EachStep::In(id) => context.hoist(call.at.statement, id),
            _ => None,
        };
        let diagnostic = Diagnostic::new(
            &RULE,
            Severity::Warning,
            call.expr,
            "a new process group at every step; each keeps its communicator and buffers on the GPU until it is destroyed",
        );
        found.push(
            context
                .because_each_step(diagnostic, each, &call.at)
                .advise("make the group once and use it again, or give it to `destroy_process_group` when done")
                .fixed_by(fix.map(|it| Fix::new(Applicability::Unsafe, "make the group before the loop", it))),
        );
    }
}

/// Whether what is passed depends on what a loop goes over.
fn is_over_ranks<'a>(context: &Context<'a>, call: &'a ast::ExprCall, innermost: LoopId) -> bool {
    let names = context.names;
    let the_loop = names.the_loop(innermost);
    let changes = |name: &str| {
        names.name(names.function(the_loop.function).scope, name).is_some_and(|it| {
            it.definitions.iter().any(|it| match it {
                Definition::Loop(id) => names.loops_from(Some(innermost)).any(|it| it == *id),
                Definition::Value(_, in_loop) => in_loop.is_some(),
                Definition::Other(range) => the_loop.node.range().contains_range(*range),
                _ => false,
            })
        })
    };
    let depends = |it: &Expr| mentions(it, &|it| matches!(it, Expr::Name(it) if changes(it.id.as_str())));
    call.arguments.args.iter().any(depends) || call.arguments.keywords.iter().any(|it| depends(&it.value))
}
