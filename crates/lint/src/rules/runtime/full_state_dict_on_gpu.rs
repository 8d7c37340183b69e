//! Gathers the whole state of a sharded model on every GPU to save it.
//!
//! ## Why it matters
//! FSDP holds a part of each parameter on each GPU. A full state dict puts the parts together, on every GPU by default: at each
//! save, memory rises by the size of the whole model, which is what sharding was to avoid.
//!
//! ## Example
//! ```python
//! from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel as FSDP, StateDictType
//!
//! config = FullStateDictConfig()
//! with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):
//!     state = model.state_dict()
//! ```
//! Use instead:
//! ```python
//! from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel as FSDP, StateDictType
//!
//! config = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
//! with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):
//!     state = model.state_dict()
//! ```
//! With `torch.distributed.checkpoint.state_dict` it is `StateDictOptions(full_state_dict=True, cpu_offload=True)`.
//!
//! ## When it is silent
//! Whether the state goes to the host is decided somewhere else (`offload_to_cpu=args.offload`, `**options`), or the file never
//! asks for a state dict, only loads one.
//!
//! ## Fix
//! Unsafe: adds the arguments; the state is then on the host, and with `rank0_only=True` empty on all processes but the first.
//!
//! ## References
//! - facebookresearch/fairscale#885, Lightning-AI/pytorch-lightning#11207, axolotl-ai-cloud/axolotl#3635, pytorch/pytorch#110479

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::Call,
    fix::{Applicability, Fix},
    rule::{Framework, Rule},
    syntax::{ast::Expr, bool_literal},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK610",
    name: "full-state-dict-on-gpu",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

const FSDP: &str = "torch.distributed.fsdp";

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let saves = ["state_dict", "get_model_state_dict", "get_state_dict", "save_pretrained", "save_model"];
    if !saves.iter().any(|it| context.calls_named(it).next().is_some()) {
        return;
    }
    for call in context.calls_named("FullStateDictConfig").filter(|it| is_of(it, FSDP)) {
        // Any argument by position is the first: whether the state goes to the host.
        if call.has_unpacking() || !call.expr.arguments.args.is_empty() || call.keyword("offload_to_cpu").is_some() {
            continue;
        }
        let arguments = if call.keyword("rank0_only").is_some() {
            "offload_to_cpu=True"
        } else {
            "offload_to_cpu=True, rank0_only=True"
        };
        found.push(report(context, call, arguments));
    }
    let options = ["torch.distributed.checkpoint.state_dict.StateDictOptions"];
    for call in context.calls_to(&options).filter(|it| !it.has_unpacking()) {
        let is_full =
            call.keyword("full_state_dict").is_some_and(|it| bool_literal(&it.value) == Some(true));
        // To hand it on to others is how a state is loaded.
        if is_full && call.keyword("cpu_offload").is_none() && call.keyword("broadcast_from_rank0").is_none() {
            found.push(report(context, call, "cpu_offload=True"));
        }
    }
    for name in ["state_dict_type", "set_state_dict_type"] {
        for call in context.calls_named(name) {
            let has_config = call.argument("state_dict_config", 2).is_some() || call.has_unpacking();
            let is_full = call.argument("state_dict_type", 1).is_some_and(|it| {
                matches!(it, Expr::Attribute(it) if it.attr.as_str() == "FULL_STATE_DICT")
                    && context.path(call.at.function, it).is_some_and(|it| it.is_within(FSDP))
            });
            if is_full && !has_config {
                found.push(diagnostic(call).advise(
                    "pass `FullStateDictConfig(offload_to_cpu=True, rank0_only=True)` as third argument",
                ));
            }
        }
    }
}

fn is_of(call: &Call<'_>, module: &str) -> bool {
    match &call.callee {
        crate::facts::Callee::External(path) => path.is_within(module),
        _ => false,
    }
}

fn diagnostic(call: &Call<'_>) -> Diagnostic {
    Diagnostic::new(
        &RULE,
        Severity::Info,
        call.expr,
        "a full state dict is put together on the GPU: each save takes memory for the whole model there",
    )
}

fn report(context: &Context<'_>, call: &Call<'_>, arguments: &str) -> Diagnostic {
    let fix = context
        .add_keyword(call.expr, arguments)
        .map(|it| Fix::new(Applicability::Unsafe, format!("add `{arguments}`"), vec![it]));
    diagnostic(call).advise(format!("add `{arguments}`")).fixed_by(fix)
}
