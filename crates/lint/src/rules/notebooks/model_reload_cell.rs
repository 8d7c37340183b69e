//! Builds a model on the GPU in a notebook cell that, run again, has two of them for a moment.
//!
//! ## Why it matters
//! When the cell runs a second time, the new model is built while its name still holds the old one: the peak is two models, and with
//! large ones the second run fails though the first did not.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(4096, 4096).cuda()
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = None
//! model = torch.nn.Linear(4096, 4096).cuda()
//! ```
//!
//! ## When it is silent
//! The file is no notebook, or the name is deleted or set to `None` somewhere. Nearly every notebook has such a cell, so the rule is off
//! by default.
//!
//! ## Fix
//! Puts `name = None` in front: only shown, since whether the cell is meant to be run again is not in the file.
//!
//! ## References
//! - microsoft/computervision-recipes#444

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::Root,
    fix::{Applicability, Edit, Fix},
    names::{Definition, FunctionId, Usage},
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{Expr, Stmt},
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK972",
    name: "model-reload-cell",
    frameworks: &[Framework::Notebook, Framework::Torch],
    severity: Severity::Info,
    default: false,
    fix: Some(Applicability::Display),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if !context.is_notebook() {
        return;
    }
    for it in &context.facts.assignments {
        let Expr::Name(name) = it.target else { continue };
        let is_top = it.at.function == FunctionId::MODULE && it.at.in_loop.is_none() && it.at.branch.is_none();
        if !is_top || !context.is_module(&it.value) || !is_placed(it.expr) {
            continue;
        }
        let root = Root::Name(FunctionId::MODULE, name.id.as_str());
        let is_let_go = context.uses(root).iter().any(|it| matches!(it.usage, Usage::Deleted))
            || context
                .definitions(root)
                .iter()
                .any(|it| matches!(it, Definition::Value(Expr::NoneLiteral(_), _)));
        if is_let_go {
            continue;
        }
        let statement = it.at.statement;
        let fix = matches!(statement, Stmt::Assign(_)).then(|| {
            let indentation = context.indentation(statement);
            let text = format!("{} = None{}{indentation}", name.id, context.end_of_line());
            Fix::new(Applicability::Display, "let go of the old model first", vec![Edit::insert(statement.start(), text)])
        });
        found.push(
            Diagnostic::new(&RULE, Severity::Info, statement.range(), format!("run again, this cell has the old and the new `{}` on the GPU at once", name.id))
                .advise(format!("set `{} = None` before the new one is built", name.id))
                .fixed_by(fix),
        );
    }
}

/// Whether the model is put on a device as it is made: `Net().cuda()`, `from_pretrained(…, device_map="auto")`.
fn is_placed(expr: &Expr) -> bool {
    let Expr::Call(call) = expr else { return false };
    if call.arguments.find_keyword("device_map").is_some() {
        return true;
    }
    match &*call.func {
        Expr::Attribute(it) => match it.attr.as_str() {
            "cuda" | "to" => it.value.is_call_expr(),
            "eval" | "half" | "train" | "bfloat16" => is_placed(&it.value),
            _ => false,
        },
        _ => false,
    }
}
