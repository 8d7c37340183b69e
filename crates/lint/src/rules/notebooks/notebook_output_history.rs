//! Ends a notebook cell with a tensor, which `IPython` then keeps as output.
//!
//! ## Why it matters
//! What the last expression of a cell gives is kept in `Out[n]`, in `_` and `_n`, for as long as the kernel runs. A tensor with a graph keeps
//! the activations of its whole computation, and `del` of the variable frees nothing.
//!
//! ## Example
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(4096, 4096).cuda()
//! out = model(x)
//! out
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//! model = torch.nn.Linear(4096, 4096).cuda()
//! out = model(x)
//! out.shape
//! ```
//! A semicolon at the end of the cell keeps the output from being stored. `%reset out` lets go of what is already there.
//!
//! ## When it is silent
//! The file is no notebook, or the expression is a number, a tensor without a graph that is not known to lie on the GPU, or ends with a
//! semicolon.
//!
//! ## Fix
//! Puts a semicolon behind the expression: unsafe, since the cell no longer shows it.
//!
//! ## References
//! - [`IPython`: output caching](https://ipython.readthedocs.io/en/stable/interactive/reference.html#output-caching-system), ipython/ipython#11572, pytorch/pytorch#27600

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    fix::{Applicability, Edit, Fix},
    flow::value::{Graph, Place, Size, Value},
    names::FunctionId,
    rule::{Framework, Rule},
    syntax::{
        Ranged,
        ast::{Expr, Stmt},
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK971",
    name: "notebook-output-history",
    frameworks: &[Framework::Notebook, Framework::Torch],
    severity: Severity::Info,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if !context.is_notebook() {
        return;
    }
    for statement in context.last_of_cells() {
        let Stmt::Expr(it) = statement else { continue };
        let Some(value) = value_of(context, &it.value) else { continue };
        let Some(tensor) = value.as_tensor() else { continue };
        let has_graph = tensor.graph >= Graph::Likely;
        let is_large = !matches!(tensor.size, Size::Scalar | Size::Indices);
        // A number that drags a graph along keeps the whole of it.
        if !(has_graph || tensor.place == Place::Device && is_large) || is_silenced(context, statement) {
            continue;
        }
        let text = context.text(&*it.value);
        let what = if has_graph { "with the graph that computed it" } else { "on the device" };
        let fix = Fix::new(Applicability::Unsafe, "do not store the output", vec![Edit::insert(statement.end(), ";")]);
        found.push(
            Diagnostic::new(&RULE, Severity::Info, statement, format!("IPython keeps `{text}` in its output history, {what}"))
                .advise("end the cell with `;`, or show its shape or `.item()`")
                .fixed_by(fix),
        );
    }
}

/// What the last expression of a cell gives.
fn value_of<'a>(context: &Context<'a>, expr: &'a Expr) -> Option<&'a Value> {
    match expr {
        Expr::Name(_) => context.value_of_name(FunctionId::MODULE, expr),
        Expr::Call(call) => {
            context.call_of(call).map(|it| &it.result)
        }
        _ => None,
    }
}

/// Whether a semicolon stands behind a statement.
fn is_silenced(context: &Context<'_>, statement: &Stmt) -> bool {
    let rest = context.source.text().get(usize::from(statement.end())..).unwrap_or("");
    rest.trim_start_matches([' ', '\t']).starts_with(';')
}
