//! What several rules ask about modules of Lightning.

use crate::{
    context::Context,
    facts::Position,
    flow::value::Class,
    names::{ClassId, FunctionId},
    syntax::{
        Ranged, TextRange,
        ast::{Expr, Stmt, StmtReturn},
        text_literal,
        visitor::{self, Visitor},
    },
};

/// The classes of this file that are modules of Lightning.
pub(super) fn modules<'a>(context: &Context<'a>) -> impl Iterator<Item = ClassId> + use<'a> {
    let is_module: Vec<ClassId> = (0..context.names.classes.len() as u32)
        .map(ClassId)
        .filter(|it| is_lightning_module(context, *it))
        .collect();
    is_module.into_iter()
}

/// Whether a class is a module of Lightning.
pub(super) fn is_lightning_module(context: &Context<'_>, class: ClassId) -> bool {
    let bases = context.project.foreign_bases(&Class::Project(context.file, class));
    bases.iter().any(|it| is_of_lightning(it, "LightningModule"))
}

/// Whether a dotted name is that of this thing of Lightning, by any of the names of the package.
pub(super) fn is_of_lightning(path: &str, name: &str) -> bool {
    let first = path.split('.').next().unwrap_or("");
    matches!(first, "lightning" | "pytorch_lightning" | "lightning_fabric")
        && path.rsplit('.').next() == Some(name)
}

/// Whether code stands in one of these methods of a module of Lightning.
pub(super) fn is_in_method(context: &Context<'_>, at: &Position<'_>, methods: &[&str]) -> bool {
    let function = context.names.function(at.function);
    methods.contains(&function.name) && function.class.is_some_and(|it| is_lightning_module(context, it))
}

/// What a step returns beside its loss that is as large as a batch, by the names that such things have, and where.
pub(super) fn returned_tensors<'a>(context: &Context<'a>, step: FunctionId) -> Option<(&'a str, TextRange)> {
    let mut returns = Returns(Vec::new());
    for statement in context.names.function(step).node.body() {
        returns.visit_stmt(statement);
    }
    returns.0.into_iter().filter_map(|it| it.value.as_deref()).find_map(|value| match value {
        Expr::Dict(dict) => dict.items.iter().find_map(|item| {
            let key = text_literal(item.key.as_ref()?)?;
            let is_small = is_number(&item.value) || context.text(&item.value).contains("loss");
            (is_large(key) && !is_small).then_some((key, item.range()))
        }),
        _ => None,
    })
}

/// Whether things of this name have a row for each item of a batch.
fn is_large(key: &str) -> bool {
    matches!(
        key,
        "logits"
            | "logit"
            | "pred"
            | "preds"
            | "prediction"
            | "predictions"
            | "output"
            | "outputs"
            | "y_hat"
            | "y_pred"
            | "probs"
            | "probabilities"
            | "embedding"
            | "embeddings"
            | "features"
            | "images"
            | "x_hat"
            | "reconstruction"
            | "masks"
            | "hidden_states"
            | "scores"
    )
}

/// Whether an expression is a number or text, not a tensor.
fn is_number(value: &Expr) -> bool {
    match value {
        Expr::Call(call) => match &*call.func {
            Expr::Attribute(it) => {
                matches!(it.attr.as_str(), "item" | "tolist" | "mean" | "sum" | "cpu" | "numpy")
            }
            Expr::Name(it) => matches!(it.id.as_str(), "len" | "float" | "int" | "str"),
            _ => false,
        },
        it => it.is_literal_expr(),
    }
}

/// The returns of a function, not of those within it.
struct Returns<'a>(Vec<&'a StmtReturn>);

impl<'a> Visitor<'a> for Returns<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Return(it) => self.0.push(it),
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => {}
            other => visitor::walk_stmt(self, other),
        }
    }
}
