//! Leaves what the last round of a loop computed in its variables while a network runs after the loop.
//!
//! ## Why it matters
//! The names of a loop's body do not end with the loop: until the function returns, they hold the last batch's outputs, and the
//! graph that computed them if no backward pass freed it (16.8 MB in a small MLP, batch 1024, width 1024; of a large model,
//! gigabytes). What runs next, an evaluation for instance, must fit beside that. It raises the peak only, and most often by little,
//! which is why the rule does not run unless it is selected.
//!
//! ## Example
//! ```python
//! import torch
//!
//!
//! def fit(train_loader, held_out):
//!     model = torch.nn.Linear(10, 10).cuda()
//!     total = 0.0
//!     for images in train_loader:
//!         scores = model(images)
//!         total += scores.sum().item()
//!     return total, model(held_out)
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//!
//! def fit(train_loader, held_out):
//!     model = torch.nn.Linear(10, 10).cuda()
//!     total = 0.0
//!     for images in train_loader:
//!         scores = model(images)
//!         total += scores.sum().item()
//!     scores = None
//!     return total, model(held_out)
//! ```
//! A function for the body of the loop lets go of everything that it computes.
//!
//! ## When it is silent
//! The name is read, given a value or deleted outside the loop, or captured by a function; it holds a single number, or nothing of
//! which it is known that it is a tensor on the device or has a graph; nothing that follows runs a network.
//!
//! ## Fix
//! Sets the names to `None` behind the loop. (`del` would fail if the loop made no round.) Safe in a function, behind a loop that
//! stands in no other: nothing reads the names from there on. Unsafe elsewhere.
//!
//! ## References
//! - [PyTorch FAQ: Don't hold onto tensors and variables you don't need](https://docs.pytorch.org/docs/stable/notes/faq.html)
//! - lucidrains/denoising-diffusion-pytorch#75, huggingface/transformers#30536

use std::collections::BTreeMap;

use crate::{
    context::{Context, Release},
    diagnostic::{Diagnostic, Severity},
    facts::{Assignment, Call, Callee, Root},
    fix::{Applicability, Fix},
    flow::value::{Graph, Place, Size, Value},
    names::{Definition, FunctionId, LoopId, LoopNode, Usage},
    rule::{Framework, Rule},
    syntax::{
        Ranged, TextRange,
        ast::{Expr, Stmt},
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK203",
    name: "loop-variable-outlives-loop",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: false,
    fix: Some(Applicability::Safe),
    check,
};

/// What a variable still holds after its loop.
struct Left<'a> {
    assignment: &'a Assignment<'a>,
    name: &'a str,
    has_graph: bool,
}

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.is_test() {
        return;
    }
    let mut left: BTreeMap<LoopId, Vec<Left<'_>>> = BTreeMap::new();
    for assignment in &context.facts.assignments {
        if let Some((id, it)) = left_behind(context, assignment) {
            let all = left.entry(id).or_default();
            match all.iter_mut().find(|known| known.name == it.name) {
                Some(known) => known.has_graph |= it.has_graph,
                None => all.push(it),
            }
        }
    }
    if left.is_empty() {
        return;
    }
    let mut heavy: Vec<&Call<'_>> = context.facts.calls.iter().filter(|it| is_heavy(context, it)).collect();
    heavy.sort_by_key(|it| it.expr.start());
    for (id, mut left) in left {
        let Some(heavy) = first_after(context, id, &heavy) else { continue };
        left.sort_by_key(|it| it.assignment.target.start());
        found.extend(report(context, id, &left, heavy));
    }
}

/// How many calls are looked at that stand behind a loop, but may stand on another way than it.
const NEAR: usize = 32;

/// The first of these calls, in their order, that may run once a loop has ended.
fn first_after<'m, 'a>(context: &Context<'a>, id: LoopId, calls: &[&'m Call<'a>]) -> Option<&'m Call<'a>> {
    let the_loop = context.names.the_loop(id);
    let whole = the_loop.node.range();
    let behind = calls.get(calls.partition_point(|it| it.expr.start() < whole.end())..)?;
    let candidates: Vec<&Call<'a>> =
        behind.iter().copied().filter(|it| it.at.function == the_loop.function).take(NEAR).collect();
    if candidates.is_empty() {
        return None;
    }
    let after = context.statements_after(the_loop.function, whole);
    candidates.into_iter().find(|call| after.iter().any(|it| it.range().contains_range(call.expr.range())))
}

fn report(context: &Context<'_>, id: LoopId, left: &[Left<'_>], heavy: &Call<'_>) -> Option<Diagnostic> {
    let (first, others) = left.split_first()?;
    let names = match others {
        [] => format!("`{}`", first.name),
        [second] => format!("`{}` and `{}`", first.name, second.name),
        more => format!("`{}` and {} others", first.name, more.len()),
    };
    let (holds, its) = if others.is_empty() { ("holds", "its") } else { ("hold", "their") };
    let graph =
        if left.iter().any(|it| it.has_graph) { format!(", with {its} graph,") } else { String::new() };
    let message = format!(
        "{names} still {holds} what the last round computed{graph} while `{}` runs",
        context.text(&*heavy.expr.func)
    );
    let reset: Vec<&str> = left.iter().map(|it| it.name).collect();
    Some(
        Diagnostic::new(&RULE, Severity::Info, first.assignment.target, message)
            .kept_in(first.name)
            .because_of(context.head(id), "nothing reads it after this loop")
            .because_of(heavy.expr, "this runs after the loop, and must fit beside it")
            .advise("set the names to `None` behind the loop, or put the body of the loop into a function")
            .fixed_by(reset_behind(context, id, &reset)),
    )
}

/// The loop after which a variable still holds something large that nothing reads.
fn left_behind<'a>(context: &Context<'a>, assignment: &'a Assignment<'a>) -> Option<(LoopId, Left<'a>)> {
    let Expr::Name(target) = assignment.target else { return None };
    let at = &assignment.at;
    let innermost = context.loop_around(at.in_loop)?;
    let tensor = assignment.value.tensor_within()?;
    let graph = context.graph(&assignment.value, at);
    let has_graph = graph >= Graph::Likely
        && !tensor.nodes.is_empty()
        && context.release(&assignment.value, at) == Release::Kept;
    let is_of_network =
        || context.is_result_of(at.function, assignment.expr, &|it| runs_network(context, it));
    // What goes backward is a number; an item may be one; the base of a view is held by others.
    let is_item = matches!(assignment.expr, Expr::Subscript(it) if !it.value.is_call_expr());
    let is_small =
        is_item || tensor.is_view || context.reaches_backward(Root::Name(at.function, target.id.as_str()));
    let is_large_on_device = !is_small
        && match (tensor.place, tensor.size) {
            (Place::Host, _) | (_, Size::Scalar | Size::Indices) => false,
            (Place::Device, Size::Array) => true,
            _ => is_of_network(),
        };
    if !has_graph && !is_large_on_device || context.is_part_of_model(at.function) {
        return None;
    }
    let name = target.id.as_str();
    let entry = context.names.scope(context.scope(at.function)).names.get(name)?;
    let id = context.names.loops_from(Some(innermost)).find(|it| {
        let whole = context.names.the_loop(*it).node.range();
        entry.uses.iter().all(|it| whole.contains_range(it.expr.range()))
    })?;
    let whole = context.names.the_loop(id).node.range();
    let is_of_loop = entry.elsewhere.is_none()
        && entry.definitions.iter().all(|it| match it {
            Definition::Value(value, _) => whole.contains_range(value.range()),
            Definition::Other(range) => whole.contains_range(*range),
            Definition::Loop(id) => whole.contains_range(context.names.the_loop(*id).node.range()),
            _ => false,
        });
    // What is deleted or given another value at the end of a round is gone; what is put elsewhere stays there anyway.
    let is_let_go = entry.uses.iter().any(|it| {
        it.function != at.function
            || match it.usage {
                Usage::Deleted | Usage::Gathered | Usage::Returned => true,
                Usage::Argument(call) => matches!(
                    &*call.func,
                    Expr::Attribute(it) if matches!(it.attr.as_str(), "append" | "extend" | "add" | "insert" | "put" | "update")
                ),
                _ => false,
            }
    });
    let last = entry.definitions.iter().filter_map(|it| match it {
        Definition::Value(value, _) => Some(value.start()),
        Definition::Other(range) => Some(range.start()),
        _ => None,
    });
    let is_last = last.max() == Some(assignment.expr.start());
    (is_of_loop && is_last && !is_let_go && context.repetition_in(id).is_some())
        .then_some((id, Left { assignment, name, has_graph }))
}

/// Whether a call runs a network, or is given one to run.
fn is_heavy<'a>(context: &Context<'a>, call: &Call<'a>) -> bool {
    let is_named_so = || {
        let name = call.last_name().to_ascii_lowercase();
        ["eval", "valid", "test", "predict", "infer", "generate", "sample"].iter().any(|it| name.contains(it))
            && name != "eval"
    };
    let is_given_network = || call.arguments.iter().any(|it| context.is_module(it));
    let is_of_project = match &call.callee {
        Callee::Function(..) => true,
        Callee::Method { value: Value::Object(class), name, .. } => {
            context.project.method(class, name).is_some()
        }
        _ => false,
    };
    runs_network(context, call) || is_of_project && is_named_so() && is_given_network()
}

/// Whether a call runs a network, by its type or its name.
fn runs_network<'a>(context: &Context<'a>, call: &Call<'a>) -> bool {
    context.runs_network(call) || context.is_forward(call)
}

/// `name = None` behind a loop.
fn reset_behind(context: &Context<'_>, id: LoopId, names: &[&str]) -> Option<Fix> {
    let the_loop = context.names.the_loop(id);
    let body = context.body_of(the_loop.function);
    let (LoopNode::For(_) | LoopNode::While(_)) = the_loop.node else { return None };
    let statement = statement_at(body, the_loop.node.range())?;
    if !context.is_alone_on_its_lines(statement) {
        return None;
    }
    // `locals()`, `pandas.eval("out + 1")`, `sys._getframe().f_locals`
    let looks_at_names =
        ["locals", "vars", "dir", "exec", "eval", "evaluate", "query", "breakpoint", "set_trace", "_getframe", "currentframe"]
            .into_iter()
            .any(|it| context.calls_named(it).any(|it| it.at.function == the_loop.function));
    let is_safe = the_loop.function != FunctionId::MODULE && the_loop.parent.is_none() && !looks_at_names;
    let applicability = if is_safe { Applicability::Safe } else { Applicability::Unsafe };
    let edit = context.line_below(statement, statement, &format!("{} = None", names.join(" = ")));
    Some(Fix::new(applicability, "let go of what the last round computed", vec![edit]))
}

/// The statement at a place, however deep.
fn statement_at(block: &[Stmt], place: TextRange) -> Option<&Stmt> {
    let around = block.iter().find(|it| it.range().contains_range(place))?;
    if around.range() == place {
        return Some(around);
    }
    crate::context::blocks_of(around).into_iter().find_map(|it| statement_at(it, place))
}
