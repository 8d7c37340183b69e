//! Fills a list or dict of Python objects in a dataset whose loader has workers, each of which copies it bit by bit.
//!
//! ## Why it matters
//! Workers are forked and share the memory of their parent until they write to it. Reading a Python object writes to it: its
//! reference count changes, and the page that it lies in is copied. As an epoch goes on, each worker gets a copy of the whole
//! list: with 8 workers, host memory grows to 9 times its size, and looks like a leak.
//!
//! ## Example
//! ```python
//! from torch.utils.data import DataLoader, Dataset
//!
//! class Images(Dataset):
//!     def __init__(self, root):
//!         self.rows = [parse(line) for line in open(root)]
//!
//!     def __getitem__(self, index):
//!         return self.rows[index]
//!
//! loader = DataLoader(Images("train.csv"), num_workers=8)
//! ```
//! Use instead:
//! ```python
//! import numpy as np
//! from torch.utils.data import DataLoader, Dataset
//!
//! class Images(Dataset):
//!     def __init__(self, root):
//!         self.rows = np.array([parse(line) for line in open(root)])
//!
//!     def __getitem__(self, index):
//!         return self.rows[index]
//!
//! loader = DataLoader(Images("train.csv"), num_workers=8)
//! ```
//!
//! ## When it is silent
//! Off by default: a list of some thousand paths is nothing to worry about, and how long it is cannot be seen. Silent if no
//! loader of the dataset in the same file has workers, and about arrays, tensors and what is written out.
//!
//! ## Fix
//! Only advice: what a list should become depends on what is in it.
//!
//! ## References
//! - pytorch/pytorch#13246, pytorch/pytorch#64337, pytorch/pytorch#20433, pytorch/pytorch#5902, referit3d/referit3d#5

use crate::{
    context::{Context, LOADERS, Rounds, Workers},
    diagnostic::{Diagnostic, Severity},
    facts::{Assignment, Call},
    flow::value::{Class, GroupKind, Value},
    names::ClassId,
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{self, Expr},
        is_same_place,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK404",
    name: "containers-in-dataset",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: false,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for assignment in &context.facts.assignments {
        let Some((class, loader)) = dataset_with_workers(context, assignment) else { continue };
        let Expr::Attribute(target) = assignment.target else { continue };
        let is_read = context.names.attributes.get(target.attr.as_str()).is_some_and(|uses| {
            uses.iter().any(|it| {
                context.names.function(it.function).name == "__getitem__"
                    && context.class_around(it.function) == Some(class)
            })
        });
        if is_read && is_filled_with_objects(context, assignment) {
            let name = context.text(assignment.target);
            found.push(
                Diagnostic::new(
                    &RULE,
                    Severity::Info,
                    assignment.target.range(),
                    format!("each worker comes to hold a copy of the objects in `{name}`"),
                )
                .because_of(loader.expr, "this loader reads the dataset in workers")
                .advise("keep arrays instead of Python objects: NumPy, Arrow, a tensor, or one buffer and offsets into it"),
            );
        }
    }
}

/// The dataset in whose `__init__` an attribute is set, and the loader with workers that reads it.
fn dataset_with_workers<'a>(
    context: &Context<'a>,
    assignment: &Assignment<'a>,
) -> Option<(ClassId, &'a Call<'a>)> {
    let function = context.names.function(assignment.at.function);
    let class = function.class.filter(|_| function.name == "__init__")?;
    let own = Value::Object(Class::Project(context.file, class));
    let loader = context.calls_to(LOADERS).find(|it| {
        it.argument("dataset", 0).is_some_and(|dataset| *it.value_of(dataset) == own)
            && context.workers(it) == Workers::Some
    })?;
    Some((class, loader))
}

fn is_filled_with_objects<'a>(context: &Context<'a>, assignment: &Assignment<'a>) -> bool {
    match assignment.expr {
        Expr::ListComp(ast::ExprListComp { generators, .. })
        | Expr::DictComp(ast::ExprDictComp { generators, .. }) => {
            let Some(first) = generators.first() else { return false };
            let is_long = context
                .names
                .loop_at(first.range)
                .is_some_and(|it| matches!(context.rounds(it), Rounds::Data | Rounds::Unknown));
            is_long && holds_objects(&assignment.value)
        }
        // `self.rows = []`, or `self.rows = rows`, filled in a loop
        Expr::List(_) | Expr::Name(_) if holds_objects(&assignment.value) => {
            let is_target = |object: &Expr| {
                is_same_place(object, assignment.target) || is_same_place(object, assignment.expr)
            };
            context.calls_named("append").any(|it| {
                it.at.function == assignment.at.function
                    && it.method().is_some_and(|(object, ..)| is_target(object))
                    && it
                        .at
                        .in_loop
                        .is_some_and(|it| matches!(context.rounds(it), Rounds::Data | Rounds::Unknown))
            })
        }
        _ => false,
    }
}

/// Whether a value is a list or dict whose elements are not tensors.
fn holds_objects(value: &Value) -> bool {
    match value {
        Value::Group(group) => {
            matches!(group.kind, GroupKind::List | GroupKind::Dict)
                && group.parts.is_empty()
                && group.element.tensor_within().is_none()
        }
        _ => false,
    }
}
