//! Goes on with a metric that keeps all predictions, epoch after epoch, without a reset.
//!
//! ## Why it matters
//! Metrics over curves and rankings of torchmetrics (`AUROC`, `AveragePrecision`, `PrecisionRecallCurve`, …) keep every
//! prediction and target in lists until `reset()`. Without it each epoch adds its data to that of all before it, on the GPU, and
//! the value is that of all epochs together.
//!
//! ## Example
//! ```python
//! from torchmetrics import AUROC
//!
//! auroc = AUROC(task="binary")
//! for epoch in range(epochs):
//!     for x, y in val_loader:
//!         auroc.update(model(x), y)
//!     print(auroc.compute())
//! ```
//! Use instead:
//! ```python
//! from torchmetrics import AUROC
//!
//! auroc = AUROC(task="binary")
//! for epoch in range(epochs):
//!     for x, y in val_loader:
//!         auroc.update(model(x), y)
//!     print(auroc.compute())
//!     auroc.reset()
//! ```
//! With `thresholds=100` the curve metrics count in bins instead and keep nothing.
//!
//! ## When it is silent
//! The metric is made anew, reset anywhere in the file, has `thresholds`, keeps only sums (`Accuracy`, `F1Score`), or belongs to
//! a module of Lightning, which resets what it logs. So it is where only one loop over data is in sight.
//!
//! ## Fix
//! Unsafe: adds `.reset()` behind the statement that computes the value; later values are then those of one epoch.
//!
//! ## References
//! - [torchmetrics: metrics and memory management](https://lightning.ai/docs/torchmetrics/stable/pages/overview.html#metrics-and-memory-management)
//! - Lightning-AI/torchmetrics#1949, Lightning-AI/torchmetrics#2492, Lightning-AI/torchmetrics#3294

use crate::{
    context::Context,
    diagnostic::{Diagnostic, Severity},
    facts::Root,
    fix::{Applicability, Fix},
    names::{method_name, Use, Definition, FunctionId, LoopId, Path, Usage},
    rule::{Framework, Rule},
    syntax::{
        ast::{self, Expr, Stmt},
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK709",
    name: "metric-not-reset",
    frameworks: &[Framework::Lightning],
    severity: Severity::Warning,
    default: true,
    fix: Some(Applicability::Unsafe),
    check,
};

/// Metrics whose state is a list, unless `thresholds` makes it bins.
const BY_CURVE: &[&str] = &["AUROC", "ROC", "AveragePrecision", "PrecisionRecallCurve"];
const BY_LIST: &[&str] = &[
    "CatMetric",
    "MeanAveragePrecision",
    "SpearmanCorrCoef",
    "KendallRankCorrCoef",
    "CosineSimilarity",
    "CalibrationError",
    "BERTScore",
    "KernelInceptionDistance",
    "InceptionScore",
    "RetrievalMAP",
    "RetrievalMRR",
    "RetrievalPrecision",
    "RetrievalRecall",
    "RetrievalNormalizedDCG",
];

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let scopes = &context.names.scopes;
    for (name, definitions) in scopes.iter().flat_map(|scope| {
        scope.names.iter().filter(|_| !scope.names.is_empty()).map(move |(name, it)| ((scope.function, *name), it))
    }) {
        let [Definition::Value(made, None)] = definitions.definitions.as_slice() else { continue };
        let root = Root::Name(name.0, name.1);
        let is_reset = || {
            context.uses(root).iter().any(|it| match it.usage {
                Usage::Method(call) => method_name(call) == "reset",
                // Handed on: to a function that may reset it, into a collection.
                Usage::Argument(_) | Usage::Gathered | Usage::Returned | Usage::Assigned | Usage::Iterated => true,
                _ => false,
            })
        };
        let Some(kind) = kept_predictions(context, name.0, made) else { continue };
        if is_reset() {
            continue;
        }
        let fed_by = |it: &Use<'_>, call| Some((call, outer_loop(context, it.function, it.in_loop, name.0)?));
        let fed = context.uses(root).iter().find_map(|it| match it.usage {
            Usage::Method(call) if matches!(method_name(call), "update" | "forward") => fed_by(it, call),
            Usage::Called(call) => fed_by(it, call),
            _ => None,
        });
        let Some((call, outer)) = fed else { continue };
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                call,
                format!("`{}` keeps the predictions and targets of all epochs: nothing resets it", name.1),
            )
            .because_of(made, format!("`{kind}` keeps them in lists"))
            .because_of(context.head(outer), "this loop goes through the data again and again")
            .advise(format!("call `{}.reset()` after `compute()`", name.1))
            .fixed_by(reset(context, root, name.1)),
        );
    }
}

/// The name of the class, if an expression makes a metric that keeps predictions.
fn kept_predictions<'a>(context: &Context<'a>, function: FunctionId, made: &'a Expr) -> Option<&'a str> {
    let mut call = made.as_call_expr()?;
    // `AUROC(task="binary").to(device)`
    while let Expr::Attribute(it) = &*call.func
        && matches!(it.attr.as_str(), "to" | "cuda" | "cpu")
    {
        call = it.value.as_call_expr()?;
    }
    let path: Path<'a> = context.path(function, &call.func)?;
    let name = path.last();
    let plain = ["Binary", "Multiclass", "Multilabel"].iter().find_map(|it| name.strip_prefix(it)).unwrap_or(name);
    let keeps = BY_LIST.contains(&plain) || BY_CURVE.contains(&plain) && !has_bins(call);
    (path.first() == "torchmetrics" && keeps).then_some(name)
}

fn has_bins(call: &ast::ExprCall) -> bool {
    call.arguments.keywords.iter().any(|it| match it.arg.as_deref() {
        None => true,
        Some(name) => name == "thresholds" && !it.value.is_none_literal_expr(),
    })
}

/// The second loop over data around a place: the metric outlives its rounds.
fn outer_loop(
    context: &Context<'_>,
    function: FunctionId,
    innermost: Option<LoopId>,
    owner: FunctionId,
) -> Option<LoopId> {
    let inner = context.data_loop(innermost)?;
    let outer = context.names.the_loop(inner).parent;
    (function == owner).then(|| context.data_loop(outer)).flatten()
}

/// `.reset()` behind the statement that computes.
fn reset(context: &Context<'_>, root: Root<'_>, name: &str) -> Option<Fix> {
    let mut computed = context.facts.calls.iter().filter(|it| {
        it.method().is_some_and(|(object, _, method)| {
            method == "compute"
                && matches!(object, Expr::Name(it) if it.id.as_str() == name)
                && matches!(root, Root::Name(owner, _) if owner == it.at.function)
        })
    });
    let statement = computed.next()?.at.statement;
    let is_simple = matches!(statement, Stmt::Expr(_) | Stmt::Assign(_));
    if computed.next().is_some() || !is_simple || !context.is_alone_on_its_lines(statement) {
        return None;
    }
    let edit = context.line_below(statement, statement, &format!("{name}.reset()"));
    Some(Fix::new(Applicability::Unsafe, format!("add `{name}.reset()`"), vec![edit]))
}
