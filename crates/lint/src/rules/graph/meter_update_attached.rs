//! Passes a tensor that is still part of its graph to a method that adds it to something of its object.
//!
//! ## Why it matters
//! `meter.update(loss)` looks like reporting a number, but `self.sum += value` in the meter makes the sum a part of one graph over
//! all steps. After `backward()` that graph has lost its activations, and a step costs about 10 KB of nodes on the host; without a
//! backward pass, as in validation, the activations of every step stay: 16.8 MB a step in a small MLP (batch 1024, width 1024).
//!
//! ## Example
//! ```python
//! import torch
//!
//!
//! class AverageMeter:
//!     def __init__(self):
//!         self.reset()
//!
//!     def reset(self):
//!         self.sum, self.count = 0, 0
//!
//!     def update(self, value, n=1):
//!         self.sum += value * n
//!         self.count += n
//!
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! criterion = torch.nn.CrossEntropyLoss()
//! accuracies, losses = AverageMeter(), AverageMeter()
//! for images, labels in val_loader:
//!     out = model(images)
//!     accuracies.update((out.argmax(-1) == labels).float().mean().item(), len(images))
//!     losses.update(criterion(out, labels), len(images))
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//!
//! class AverageMeter:
//!     def __init__(self):
//!         self.reset()
//!
//!     def reset(self):
//!         self.sum, self.count = 0, 0
//!
//!     def update(self, value, n=1):
//!         self.sum += value * n
//!         self.count += n
//!
//!
//! model = torch.nn.Linear(10, 10).cuda()
//! criterion = torch.nn.CrossEntropyLoss()
//! accuracies, losses = AverageMeter(), AverageMeter()
//! for images, labels in val_loader:
//!     out = model(images)
//!     accuracies.update((out.argmax(-1) == labels).float().mean().item(), len(images))
//!     losses.update(criterion(out, labels).detach(), len(images))
//! ```
//! `loss.item()` gives a plain number, but waits for the GPU at every step. To mend all callers at once, let the meter detach what
//! it is given.
//!
//! ## When it is silent
//! The code of the meter is not in sight (timm's `AverageMeter` is known), or it detaches, takes numbers out or asks for the type; its class derives from one that
//! is not in sight (metrics of torchmetrics and ignite detach by themselves). The meter is made or reset in each round, or what it
//! gathered goes into a backward pass. Where all that is known to reach the meter is such tensors and its class is in the same file,
//! LK101 or LK102 report the line in the meter; as mending it helps every caller, that line is the better one, and the callers are
//! not reported. This rule is for meters of other files, and for those that some callers give numbers.
//!
//! ## Fix
//! Appends `.detach()` to what is passed: safe where that is proven to be a tensor with a graph that a backward pass has freed, so
//! that nothing can go backward through it again, else unsafe.
//!
//! ## References
//! - [PyTorch FAQ: Don't accumulate history across your training loop](https://docs.pytorch.org/docs/stable/notes/faq.html)
//! - visionml/pytracking#313, pytorch/pytorch#6925, facebookresearch/mmf#560, rabbityl/lepard#12

use crate::{
    context::{Context, Release, Repetition, first_name, needs_parentheses},
    diagnostic::{Diagnostic, Severity},
    facts::{Call, Root},
    fix::{Applicability, Edit, Fix},
    flow::value::{Class, FileId, Graph, Size, Value},
    names::{Definition, FunctionId, LoopId, Usage},
    rule::{Framework, Rule},
    syntax::{Ranged, ast::Expr, is_same_place, mentions},
};

pub(crate) static RULE: Rule = Rule {
    code: "LK104",
    name: "meter-update-attached",
    frameworks: &[Framework::Torch],
    severity: Severity::Error,
    default: true,
    fix: Some(Applicability::Safe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for call in &context.facts.calls {
        let Some((meter, value, name)) = call.method() else { continue };
        if name == "update"
            && let Some(passed) = call.argument("val", 0)
            && is_known_meter(context, call.at.function, meter)
        {
            found.extend(passes(context, call, meter, None, ("val", "sum"), passed));
        }
        let Value::Object(class) = value else { continue };
        let Some((file, method)) = context.project.method(class, name) else { continue };
        let kept = context.project.kept_parameters(file, method);
        if kept.is_empty() || call.has_unpacking() || !is_all_in_sight(context, class) {
            continue;
        }
        for parameter in kept {
            let Some(passed) = call.argument(&parameter.name, parameter.position) else { continue };
            let names = (parameter.name.as_str(), parameter.attribute.as_str());
            found.extend(passes(context, call, meter, Some((file, method)), names, passed));
        }
    }
}

/// What to say of one argument, if it carries a graph into a meter that outlives the step.
fn passes<'a>(
    context: &Context<'a>,
    call: &Call<'a>,
    meter: &'a Expr,
    method: Option<(FileId, FunctionId)>,
    (parameter, attribute): (&'a str, &'a str),
    passed: &'a Expr,
) -> Option<Diagnostic> {
    let value = call.value_of(passed);
    let tensor = value.tensor_within()?;
    let graph = context.graph(value, &call.at);
    let is_parameter = tensor.nodes.is_empty() && tensor.graph == Graph::Attached;
    if graph < Graph::Likely || is_parameter {
        return None;
    }
    let repetition = context.repetition_at(&call.at)?;
    let is_reported_there = method.is_some_and(|(file, id)| file == context.file && context.has_case_in(id));
    if is_reported_there
        || !outlives(context, call, meter, repetition)
        || goes_backward(context, call.at.function, meter, attribute)
    {
        return None;
    }
    let release = context.release(value, &call.at);
    let is_sure = graph == Graph::Attached && !matches!(repetition, Repetition::Loop(_));
    let severity = match release {
        Release::Kept if is_sure => Severity::Error,
        Release::Kept => Severity::Warning,
        _ => Severity::Info,
    };
    let (meter, what) = (context.text(meter), context.text(passed));
    let message = format!("`{meter}` adds up the graph of every `{what}` that it is given");
    let diagnostic = Diagnostic::new(&RULE, severity, passed, message).kept_in(meter);
    let diagnostic = match repetition {
        Repetition::Data(id) | Repetition::Loop(id) => {
            diagnostic.because_of(context.head(id), format!("`{meter}` outlives every round of this loop"))
        }
        _ => diagnostic
            .because(format!("`{}` runs again and again", context.names.function(call.at.function).name)),
    };
    let name = call.last_name();
    let diagnostic =
        diagnostic.because(format!("`{name}` adds `{parameter}` to `self.{attribute}` as it is"));
    let diagnostic = match release {
        Release::Kept => diagnostic.because(
            "no backward pass is seen to free the graph behind it, so all activations of the step stay",
        ),
        Release::Released => diagnostic.because(
            "its backward pass frees the activations; what stays is the tensor and graph nodes on the host",
        ),
        Release::Unknown => diagnostic.because(
            "a backward pass happens here or where this leads to; whether it frees the graph is not seen",
        ),
    };
    let advice = match tensor.size {
        Size::Array => "pass `.detach()` of it",
        _ => "pass `.detach()` of it, or `.item()`",
    };
    Some(diagnostic.advise(advice).fixed_by(detach(context, call, passed, value, release)))
}

/// Meters of libraries whose `update(val, n)` adds `val` to a sum as it is.
const METERS: &[&str] = &["timm.utils.AverageMeter", "timm.utils.metrics.AverageMeter"];

/// Whether a name or an attribute of `self` is such a meter.
fn is_known_meter<'a>(context: &Context<'a>, function: FunctionId, meter: &'a Expr) -> bool {
    let Some(Expr::Call(made)) = context.only_value(function, meter) else { return false };
    context.path(function, &made.func).is_some_and(|path| METERS.iter().any(|it| path.is(it)))
}

/// Whether all code of a class is in sight: what a base that is not does around its methods is not known.
fn is_all_in_sight(context: &Context<'_>, class: &Class) -> bool {
    let is_plain = |it: &String| it == "abc.ABC" || it.starts_with("typing.");
    context.project.foreign_bases(class).iter().all(is_plain)
}

/// Whether the meter is the same one in every round or call, and is not reset in it.
fn outlives<'a>(context: &Context<'a>, call: &Call<'a>, meter: &'a Expr, repetition: Repetition) -> bool {
    let function = call.at.function;
    match repetition {
        Repetition::Data(id) | Repetition::Loop(id) => {
            !context.is_made_within(function, id, meter) && !is_reset_in(context, id, meter)
        }
        Repetition::Hook(_) => false,
        Repetition::Called | Repetition::Framework => {
            let Some(name) = first_name(meter) else { return false };
            let own = context.names.function(function);
            let is_given = |it: &Definition<'_>| matches!(it, Definition::Parameter(_));
            let entry = context.names.scope(own.scope).names.get(name);
            entry.is_none_or(|it| it.definitions.iter().all(is_given))
        }
    }
}

fn is_reset_in<'a>(context: &Context<'a>, id: LoopId, meter: &'a Expr) -> bool {
    let whole = context.names.the_loop(id).node.range();
    ["reset", "clear", "zero", "reset_all"].into_iter().flat_map(|it| context.calls_named(it)).any(|it| {
        whole.contains_range(it.expr.range()) && it.method().is_some_and(|(of, ..)| is_same_place(of, meter))
    })
}

/// Whether what the meter gathered goes into a backward pass: then its graph is wanted.
fn goes_backward<'a>(
    context: &Context<'a>,
    function: FunctionId,
    meter: &'a Expr,
    attribute: &'a str,
) -> bool {
    let is_read = |expr: &Expr| {
        mentions(expr, &|it| match it {
            Expr::Attribute(it) => is_same_place(&it.value, meter),
            _ => false,
        })
    };
    let backward = ["backward", "manual_backward", "grad"].into_iter().flat_map(|it| context.calls_named(it));
    let is_direct = backward.into_iter().any(|it| {
        let receiver = it.method().map(|(of, ..)| of);
        receiver.into_iter().chain(&it.expr.arguments.args).any(is_read)
    });
    let is_by_name = context.facts.assignments.iter().any(|it| {
        it.at.function == function
            && is_read(it.expr)
            && matches!(it.target, Expr::Name(name) if context.reaches_backward(Root::Name(function, name.id.as_str())))
    });
    let is_in_class = context.uses(Root::Attribute(attribute)).iter().any(|it| {
        matches!(it.usage, Usage::Operand | Usage::Assigned | Usage::Argument(_) | Usage::Method(_))
            && context.calls_named("backward").any(|call| call.expr.range().contains_range(it.expr.range()))
    });
    is_direct || is_by_name || is_in_class
}

/// `.detach()` behind what is passed.
fn detach<'a>(
    context: &Context<'a>,
    call: &Call<'a>,
    passed: &'a Expr,
    value: &Value,
    release: Release,
) -> Option<Fix> {
    if !matches!(value, Value::Tensor(_))
        || matches!(passed, Expr::Starred(_) | Expr::Await(_) | Expr::Named(_) | Expr::If(_) | Expr::BoolOp(_))
    {
        return None;
    }
    let is_proven = context.graph(value, &call.at) == Graph::Attached
        && release == Release::Released
        && context.is_surely_tensor(call.at.function, passed);
    let applicability = if is_proven { Applicability::Safe } else { Applicability::Unsafe };
    let edits = if needs_parentheses(passed) {
        vec![Edit::insert(passed.start(), "("), Edit::insert(passed.end(), ").detach()")]
    } else {
        vec![Edit::insert(passed.end(), ".detach()")]
    };
    Some(Fix::new(applicability, "add `.detach()`, which lets go of the graph", edits).of_the_graph_only())
}
