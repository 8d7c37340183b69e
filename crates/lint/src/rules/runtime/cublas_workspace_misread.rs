//! Expects that no memory is left on the GPU, though multiplying matrices leaves a workspace.
//!
//! ## Why it matters
//! For the first product of matrices on a thread and stream torch takes a workspace for cuBLAS from its allocator, and keeps it for
//! the next ones: about 8 MB, on Hopper 32 MiB (measured on an H200 with torch 2.11: 33.6 MB after the first `@`, 68.2 MB after a
//! `Linear` with its backward pass, the same after five more). So `torch.cuda.memory_allocated()` does not come back to what it was
//! before, though nothing leaks: it happens once for each stream, and does not grow. A check that expects 0 fails, or is given
//! a tolerance in which small leaks hide.
//!
//! ## Example
//! ```python
//! import torch
//!
//!
//! def check_release():
//!     model = torch.nn.Linear(10, 10).cuda()
//!     out = model(torch.randn(8, 10, device="cuda"))
//!     del model, out
//!     assert torch.cuda.memory_allocated() == 0
//! ```
//! Use instead:
//! ```python
//! import torch
//!
//!
//! def run_once():
//!     model = torch.nn.Linear(10, 10).cuda()
//!     model(torch.randn(8, 10, device="cuda"))
//!
//!
//! def check_release():
//!     run_once()
//!     before = torch.cuda.memory_allocated()
//!     run_once()
//!     assert torch.cuda.memory_allocated() == before
//! ```
//! `torch._C._cuda_clearCublasWorkspaces()`, which torch's own tests call, gives the workspaces back (to 0 in that measurement).
//!
//! ## When it is silent
//! Nothing in the file multiplies matrices, or only before the first measurement of two that are compared; the file frees the
//! workspaces, or sets `CUBLAS_WORKSPACE_CONFIG`. It says nothing of memory that grows, so it does not run unless it is selected.
//!
//! ## Fix
//! Only advice: what the check is to find is not to be seen.
//!
//! ## References
//! - pytorch/pytorch#83461, pytorch/pytorch#113994, discuss.pytorch.org/t/48879, discuss.pytorch.org/t/178671

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::{Call, Callee},
    flow::value::{Class, Value},
    names::{Definition, FunctionId},
    rule::{Framework, Rule},
    syntax::{
        Ranged, TextSize,
        ast::{self, CmpOp, Expr, Stmt},
        int_literal,
        visitor::{self, Visitor},
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK615",
    name: "cublas-workspace-misread",
    frameworks: &[Framework::Torch],
    severity: Severity::Info,
    default: false,
    fix: None,
    check,
};

const MEASURES: &[&str] = &["torch.cuda.memory_allocated", "torch.cuda.memory.memory_allocated"];
const FREES: &[&str] = &["_cuda_clearCublasWorkspaces", "CUBLAS_WORKSPACE_CONFIG"];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let text = context.source.text();
    if !text.contains("memory_allocated") || FREES.iter().any(|it| text.contains(it)) {
        return;
    }
    let products: Vec<TextSize> = products(context);
    let Some(first) = products.first() else { return };
    let mut search = Search { found: Vec::new() };
    search.visit_body(context.body_of(FunctionId::MODULE));
    let measured: Vec<&Call<'_>> = context.calls_to(MEASURES).collect();
    for (left, right) in search.found {
        let is_misread = match (measured_by(context, &measured, left), measured_by(context, &measured, right))
        {
            (Some(_), None) => int_literal(right) == Some(0),
            (None, Some(_)) => int_literal(left) == Some(0),
            (Some(a), Some(b)) => {
                let (from, to) = (a.expr.start().min(b.expr.start()), a.expr.start().max(b.expr.start()));
                a.at.function == b.at.function
                    && multiplies_first_between(context, &products, a.at.function, from, to)
            }
            (None, None) => false,
        };
        if is_misread {
            let place =
                crate::syntax::TextRange::new(left.start().min(right.start()), left.end().max(right.end()));
            found.push(
                Diagnostic::new(
                    &RULE,
                    Severity::Info,
                    place,
                    "after the first product of matrices 8 MB or more stay allocated as a workspace of cuBLAS, which is no leak",
                )
                .because_of(crate::syntax::TextRange::empty(*first), "matrices are multiplied here")
                .advise("compare with what is allocated after a first round"),
            );
        }
    }
}

/// Whether the first product of a function lies between two places.
fn multiplies_first_between(
    context: &Context<'_>,
    products: &[TextSize],
    function: FunctionId,
    from: TextSize,
    to: TextSize,
) -> bool {
    let whole = context.range_of(function);
    let first = products.iter().find(|it| whole.contains(**it));
    first.is_some_and(|it| from < *it && *it < to)
}

/// Where matrices are multiplied, in the order of the source.
fn products(context: &Context<'_>) -> Vec<TextSize> {
    let mut all: Vec<TextSize> =
        context.facts.calls.iter().filter(|it| multiplies(context, it)).map(|it| it.expr.start()).collect();
    all.sort_unstable();
    all
}

fn multiplies(context: &Context<'_>, call: &Call<'_>) -> bool {
    match &call.callee {
        Callee::External(path) => {
            path.first() == "torch"
                && matches!(
                    path.last(),
                    "matmul" | "mm" | "bmm" | "addmm" | "baddbmm" | "einsum" | "linear" | "mv" | "dot"
                )
        }
        Callee::Object(Value::Object(class @ Class::External(path))) => {
            let last = path.rsplit('.').next().unwrap_or("");
            context.is_module_class(class)
                && !["Conv", "Norm", "Loss", "Pool", "ReLU", "Dropout", "Embedding"]
                    .iter()
                    .any(|it| last.contains(it))
        }
        Callee::Object(value) => context.is_module(value),
        _ => false,
    }
}

/// The call that an expression is, or that gave a name its only value.
fn measured_by<'a, 'm>(
    context: &Context<'a>,
    measured: &'m [&'m Call<'a>],
    expr: &'a Expr,
) -> Option<&'m Call<'a>> {
    let is_that =
        |expr: &Expr, call: &Call<'a>| matches!(expr, Expr::Call(it) if std::ptr::eq(it, call.expr));
    if let Some(call) = measured.iter().find(|it| is_that(expr, it)) {
        return Some(call);
    }
    let Expr::Name(name) = expr else { return None };
    measured.iter().copied().find(|call| {
        let entry = context.names.scope(context.scope(call.at.function)).names.get(name.id.as_str());
        let is_there = context.range_of(call.at.function).contains_range(expr.range());
        is_there && matches!(entry.map(|it| it.definitions.as_slice()), Some([Definition::Value(value, _)]) if is_that(value, call))
    })
}

/// What asserts, and conditions of `if`, compare.
struct Search<'a> {
    found: Vec<(&'a Expr, &'a Expr)>,
}

impl<'a> Search<'a> {
    fn compared(&mut self, test: &'a Expr) {
        match test {
            Expr::Compare(it) => {
                let is_meant = |op: &CmpOp| {
                    matches!(op, CmpOp::Eq | CmpOp::NotEq | CmpOp::Gt | CmpOp::Lt | CmpOp::LtE | CmpOp::GtE)
                };
                if let ([op], [right]) = (&*it.ops, &*it.comparators)
                    && is_meant(op)
                {
                    self.found.push((&it.left, right));
                }
            }
            Expr::BoolOp(it) => it.values.iter().for_each(|it| self.compared(it)),
            Expr::UnaryOp(it) => self.compared(&it.operand),
            _ => {}
        }
    }

    /// `self.assertEqual(a, b)`
    fn asserted(&mut self, call: &'a ast::ExprCall) {
        let Expr::Attribute(method) = &*call.func else { return };
        let is_assert = matches!(
            method.attr.as_str(),
            "assertEqual" | "assertEquals" | "assertLessEqual" | "assertGreaterEqual" | "assert_equal"
        );
        if let (true, [left, right, ..]) = (is_assert, &*call.arguments.args) {
            self.found.push((left, right));
        }
    }
}

impl<'a> Visitor<'a> for Search<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assert(it) => self.compared(&it.test),
            Stmt::If(it) => {
                self.compared(&it.test);
                it.elif_else_clauses
                    .iter()
                    .filter_map(|it| it.test.as_ref())
                    .for_each(|it| self.compared(it));
            }
            Stmt::Expr(it) => {
                if let Expr::Call(call) = &*it.value {
                    self.asserted(call);
                }
            }
            _ => {}
        }
        visitor::walk_stmt(self, statement);
    }

    // No statement is part of an expression.
    fn visit_expr(&mut self, _: &'a Expr) {}
}
