//! Loads a checkpoint to wherever its tensors were saved from, usually the first GPU.
//!
//! ## Why it matters
//! `torch.load` puts every tensor back on the device that it was on. A checkpoint of a model on `cuda:0` is then a second model
//! on `cuda:0` until nothing refers to it any more, and its optimizer state makes that three. When several processes load it,
//! one for each GPU, all of them put it on the first GPU, each with a CUDA context there.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! model.load_state_dict(torch.load("model.pt"))
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! model.load_state_dict(torch.load("model.pt", map_location="cpu"))
//! ```
//!
//! ## When it is silent
//! It is only an info unless the file shows a GPU that is filled: what the checkpoint goes into is moved to one, or the program runs
//! as several processes. A checkpoint that was saved from the host does no harm. Nothing is said where `map_location` is given, or may be among `**kwargs`; what is loaded goes into a scheduler or scaler, which is small. If it is not
//! seen to go into `load_state_dict` at all, it is only an info where the names speak of models or checkpoints, and nothing
//! elsewhere: it may be no tensors. Tests.
//!
//! ## Fix
//! Adds `map_location="cpu"`: safe where all that is loaded goes into `load_state_dict` of a module or optimizer, which copies
//! it to its own device; unsafe where it is used otherwise, too, since it is then on the host.
//!
//! ## References
//! - [torch.load](https://docs.pytorch.org/docs/stable/generated/torch.load.html)
//! - pytorch/pytorch#17364, lucidrains/imagen-pytorch#132, HorizonRobotics/alf#1532, NVIDIA/apex#458

use super::{
    deepcopy_on_device::is_small,
    on_gpu::{is_moved_to_gpu, is_one_of_several_processes},
};
use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::Call,
    fix::{Applicability, Fix},
    flow::value::{Class, Value},
    names::Usage,
    rule::{Framework, Rule},
    syntax::{
        Ranged, TextRange,
        ast::{self, Expr, Stmt},
        mentions,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK504",
    name: "load-without-map-location",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Safe),
    check,
};

/// What becomes of a checkpoint.
enum Goal<'a> {
    /// All of it goes into these calls of `load_state_dict`.
    OnlyStates(Vec<&'a Call<'a>>),
    /// Some of it does.
    States,
    /// It goes into a scheduler or scaler, whose state is a few numbers.
    Small,
    Unknown,
}

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut loads = context.calls_to(&["torch.load"]).peekable();
    // What was saved from a TPU goes back there.
    if loads.peek().is_none() || context.is_test() || context.source.text().contains("torch_xla") {
        return;
    }
    for call in loads {
        if call.argument("map_location", 1).is_some() || call.has_unpacking() || call.argument("f", 0).is_none() {
            continue;
        }
        let goal = goal_of(context, call);
        if matches!(goal, Goal::Small) || matches!(goal, Goal::Unknown) && !sounds_like_model(context, call) {
            continue;
        }
        let severity = match goal {
            Goal::OnlyStates(_) | Goal::States if is_on_gpu(context, call) => Severity::Warning,
            _ => Severity::Info,
        };
        let applicability = match goal {
            Goal::OnlyStates(loads) if loads.iter().all(|it| copies(context, it)) => Applicability::Safe,
            _ => Applicability::Unsafe,
        };
        let fix = context
            .add_keyword(call.expr, "map_location=\"cpu\"")
            .map(|edit| Fix::new(applicability, "load to the host: `map_location=\"cpu\"`", vec![edit]));
        found.push(
            Diagnostic::new(
                &RULE,
                severity,
                call.expr,
                "what was saved from a GPU is loaded to that GPU, beside what is there already",
            )
            .advise("load to the host; `load_state_dict` copies to the device of the model")
            .fixed_by(fix),
        );
    }
}

/// Whether the file shows that there is a GPU which the checkpoint could fill: what it goes into is there, or it is one of several
/// processes.
fn is_on_gpu(context: &Context<'_>, call: &Call<'_>) -> bool {
    is_one_of_several_processes(context)
        || context.calls_named("load_state_dict").any(|it| {
            it.at.function == call.at.function
                && it.method().is_some_and(|(object, ..)| is_moved_to_gpu(context, it.at.function, object))
        })
}

fn goal_of<'a>(context: &Context<'a>, call: &Call<'a>) -> Goal<'a> {
    let loads: Vec<&'a Call<'a>> = context
        .calls_named("load_state_dict")
        .filter(|it| it.at.function == call.at.function && it.method().is_some())
        .collect();
    let load_with = |range: TextRange| {
        loads.iter().copied().find(|it| {
            it.expr.arguments.args.first().is_some_and(|it| it.range().contains_range(range))
        })
    };
    let is_small = |load: &&Call<'a>| load.method().is_some_and(|(object, ..)| is_small(object));
    if let Some(load) = load_with(call.expr.range()) {
        return if is_small(&load) { Goal::Small } else { Goal::OnlyStates(vec![load]) };
    }
    let Some(name) = call.name_of_result() else {
        return match part_of_result(call) {
            // `weights = torch.load(path)["model"]`
            Some(name) if loads.iter().any(|it| !is_small(it) && is_given(it, name)) => Goal::States,
            _ => Goal::Unknown,
        };
    };
    let scope = context.scope(call.at.function);
    let Some(entry) = context.names.name(scope, name.id.as_str()) else { return Goal::Unknown };
    let mut goals = Vec::new();
    let mut is_only = entry.definitions.len() == 1;
    for one_use in &entry.uses {
        match (one_use.usage, load_with(one_use.expr.range())) {
            (Usage::Stored | Usage::Deleted, _) => {}
            (_, Some(load)) => goals.push(load),
            (_, None) => is_only = false,
        }
    }
    match (goals.is_empty(), is_only) {
        (true, _) => Goal::Unknown,
        (false, _) if goals.iter().all(is_small) => Goal::Small,
        (false, true) => Goal::OnlyStates(goals),
        (false, false) => Goal::States,
    }
}

/// The name that is given a part of what a call loads.
fn part_of_result<'a>(call: &Call<'a>) -> Option<&'a ast::ExprName> {
    let Stmt::Assign(it) = call.at.statement else { return None };
    let mut value = &*it.value;
    while let Expr::Subscript(item) = value {
        value = &item.value;
    }
    match (value, it.targets.as_slice()) {
        (Expr::Call(it), [Expr::Name(name)]) if std::ptr::eq(it, call.expr) => Some(name),
        _ => None,
    }
}

fn is_given(load: &Call<'_>, name: &ast::ExprName) -> bool {
    let is_name = |it: &Expr| matches!(it, Expr::Name(it) if it.id == name.id);
    load.expr.arguments.args.first().is_some_and(|it| mentions(it, &is_name))
}

/// Whether the file, or what is made of it, has a name as checkpoints have; not those of random numbers.
fn sounds_like_model(context: &Context<'_>, call: &Call<'_>) -> bool {
    let statement = match call.at.statement {
        Stmt::Assign(it) => context.text(it),
        Stmt::AnnAssign(it) => context.text(it),
        _ => context.text(call.expr),
    };
    let text = format!("{statement} {}", context.names.function(call.at.function).name).to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|it| text.contains(it));
    has(&["ckpt", "checkpoint", "state_dict", "model", "weights_path", "weight_file", "pretrain", "optim", "net."])
        && !has(&["rng", "bytesio", "metadata", "buffer"])
}

/// Whether a `load_state_dict` is that of a module or optimizer, which copies what it is given.
fn copies(context: &Context<'_>, load: &Call<'_>) -> bool {
    let Some((_, value, _)) = load.method() else { return false };
    let is_known = match value {
        Value::Object(class @ Class::External(path)) => {
            context.is_module_class(class) || path.starts_with("torch.optim.") && !path.contains("lr_scheduler")
        }
        Value::Object(class @ Class::Project(..)) => {
            context.is_module_class(class) && context.project.method(class, "load_state_dict").is_none()
        }
        _ => false,
    };
    let strict_only = load.expr.arguments.args.len() == 1
        && load.expr.arguments.keywords.iter().all(|it| it.arg.as_ref().is_some_and(|it| it.as_str() == "strict"));
    // An argument that is computed with may meet tensors of the device.
    let is_plain = load.expr.arguments.args.first().is_some_and(is_part);
    is_known && strict_only && is_plain
}

/// `checkpoint`, `checkpoint["model"]`, `torch.load(…)`, `torch.load(…)["model"]`
fn is_part(expr: &Expr) -> bool {
    match expr {
        Expr::Name(_) | Expr::Call(_) => true,
        Expr::Subscript(it) => is_part(&it.value),
        _ => false,
    }
}
