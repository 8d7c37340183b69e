//! Tensors that the forward of a `torch.autograd.Function` stores as attributes of its context.

use crate::{
    context::{Context, holds_name},
    facts::Assignment,
    flow::value::{Class, Size, Value},
    names::{ClassId, Definition, FunctionId, Usage, method_name},
    syntax::{
        Ranged,
        ast::{self, Expr},
    },
};

/// What is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A parameter of forward.
    Input,
    /// What forward returns.
    Output,
    /// Something computed on the way.
    Intermediate,
}

/// `ctx.attribute = name`
pub(super) struct Stored<'a> {
    pub(super) assignment: &'a Assignment<'a>,
    pub(super) class: ClassId,
    pub(super) attribute: &'a str,
    pub(super) name: &'a str,
    pub(super) role: Role,
}

/// Every tensor stored as an attribute in the file, with its class, in the order of the source.
pub(super) fn stored<'a>(context: &Context<'a>) -> Vec<Stored<'a>> {
    let classes = (0..context.names.classes.len() as u32).map(ClassId);
    classes.filter(|it| is_function(context, *it)).flat_map(|it| stored_by(context, it)).collect()
}

/// Whether a class is a `torch.autograd.Function`.
pub(super) fn is_function(context: &Context<'_>, class: ClassId) -> bool {
    context.project.foreign_bases(&Class::Project(context.file, class)).iter().any(|it| {
        matches!(it.as_str(), "torch.autograd.Function" | "torch.autograd.function.Function")
            || it.as_str() == "torch.autograd.function.InplaceFunction"
    })
}

fn stored_by<'a>(context: &Context<'a>, class: ClassId) -> Vec<Stored<'a>> {
    let Some((forward, ctx)) = method(context, class, "forward") else { return Vec::new() };
    let assignments = context.facts.assignments.iter().filter(|it| it.at.function == forward);
    assignments
        .filter_map(|assignment| {
            let Expr::Attribute(target) = assignment.target else { return None };
            let is_of_ctx = matches!(&*target.value, Expr::Name(it) if it.id.as_str() == ctx);
            let Expr::Name(kept) = assignment.expr else { return None };
            let (attribute, name) = (target.attr.as_str(), kept.id.as_str());
            if !is_of_ctx || is_given_up(context, class, forward, attribute) {
                return None;
            }
            let role = role(context, forward, name, &assignment.value)?;
            Some(Stored { assignment, class, attribute, name, role })
        })
        .collect()
}

/// A static method and what it calls its context.
pub(super) fn method<'a>(context: &Context<'a>, class: ClassId, name: &str) -> Option<(FunctionId, &'a str)> {
    let id = *context.names.class(class).methods.get(name)?;
    let ctx = context.names.function(id).parameters().next()?.parameter.name.as_str();
    (ctx != "self").then_some((id, ctx))
}

/// Whether anything else in the class takes the attribute away from the context.
fn is_given_up(context: &Context<'_>, class: ClassId, forward: FunctionId, attribute: &str) -> bool {
    context.names.attributes.get(attribute).into_iter().flatten().any(|it| {
        it.function != forward
            && context.class_around(it.function) == Some(class)
            && matches!(it.usage, Usage::Stored | Usage::Deleted)
    })
}

/// What part a name plays in forward, if it is surely a tensor.
fn role(context: &Context<'_>, forward: FunctionId, name: &str, value: &Value) -> Option<Role> {
    let function = context.names.function(forward);
    let own = context.names.scope(function.scope).names.get(name)?;
    let is_marked = own
        .uses
        .iter()
        .any(|it| matches!(it.usage, Usage::Argument(call) if call_name(call) == "mark_non_differentiable"));
    if is_marked {
        return None;
    }
    // `weight = weight.contiguous()` may well be the same tensor.
    let is_parameter = own.definitions.iter().any(|it| matches!(it, Definition::Parameter(_)));
    let is_returned = context.returned_by(forward).iter().any(|it| holds_name(it.expr, name).is_some());
    let is_tensor = match value {
        Value::Tensor(it) => matches!(it.size, Size::Array | Size::Unknown),
        // What a function returns that is not a parameter is made to be differentiated.
        Value::Unknown if own.definitions.iter().any(|it| may_be_annotated_tensor(context, forward, it)) => {
            true
        }
        Value::Unknown => {
            (is_returned && !is_parameter)
                || own.uses.iter().any(|it| is_used_as_tensor(context, forward, it.expr, it.usage))
        }
        _ => false,
    };
    is_tensor.then_some(match (is_returned, is_parameter) {
        (true, false) => Role::Output,
        (_, true) => Role::Input,
        (false, false) => Role::Intermediate,
    })
}

/// `Optional[torch.Tensor]`, `torch.Tensor | None`
fn may_be_annotated_tensor<'a>(context: &Context<'a>, forward: FunctionId, it: &Definition<'a>) -> bool {
    let Definition::Parameter(parameter) = it else { return false };
    let is_tensor = |it: &'a Expr| context.path(forward, it).is_some_and(|it| it.is("torch.Tensor"));
    match parameter.annotation.as_deref() {
        Some(Expr::BinOp(it)) => is_tensor(&it.left) && it.right.is_none_literal_expr(),
        Some(Expr::Subscript(it)) => {
            is_tensor(&it.slice)
                && context.path(forward, &it.value).is_some_and(|it| it.is("typing.Optional"))
        }
        _ => false,
    }
}

/// Whether only a tensor can be used like this.
fn is_used_as_tensor<'a>(
    context: &Context<'a>,
    forward: FunctionId,
    expr: &'a Expr,
    usage: Usage<'a>,
) -> bool {
    match usage {
        Usage::Method(call) => TENSOR_METHODS.contains(&method_name(call)),
        Usage::Attribute(it) => matches!(it.attr.as_str(), "is_cuda" | "requires_grad" | "is_sparse"),
        Usage::Argument(call) => {
            let is_first = call.arguments.args.first().is_some_and(|it| it.range() == expr.range());
            is_first && context.path(forward, &call.func).is_some_and(|it| takes_tensor(it.parts()))
        }
        _ => false,
    }
}

/// Methods that tensors have and what else may be passed to a forward has not.
const TENSOR_METHODS: &[&str] = &[
    "contiguous",
    "is_contiguous",
    "detach",
    "new_zeros",
    "new_empty",
    "new_ones",
    "new_full",
    "view",
    "view_as",
    "unsqueeze",
    "permute",
    "expand",
    "expand_as",
    "numel",
    "element_size",
    "data_ptr",
    "clamp",
    "exp",
    "sigmoid",
    "tanh",
    "matmul",
    "mm",
    "bmm",
    "mul",
    "mul_",
    "add_",
    "masked_fill",
    "index_select",
    "gather",
    "scatter",
    "is_floating_point",
];

/// Functions of torch whose first argument is a tensor: those that compute, not those that make, move or ask.
fn takes_tensor(path: &[&str]) -> bool {
    match path {
        ["torch", "nn", "functional", _] | ["torch", "linalg" | "fft" | "special", _] => true,
        ["torch", name] => matches!(
            *name,
            "exp"
                | "log"
                | "sqrt"
                | "rsqrt"
                | "abs"
                | "sum"
                | "mean"
                | "matmul"
                | "mm"
                | "bmm"
                | "mul"
                | "add"
                | "sub"
                | "div"
                | "sigmoid"
                | "tanh"
                | "relu"
                | "softmax"
                | "log_softmax"
                | "clamp"
                | "sign"
                | "round"
                | "floor"
                | "pow"
                | "zeros_like"
                | "ones_like"
                | "empty_like"
                | "full_like"
                | "rand_like"
                | "randn_like"
                | "where"
                | "argmax"
                | "argsort"
                | "sort"
                | "topk"
                | "max"
                | "min"
                | "transpose"
                | "permute"
                | "reshape"
                | "flatten"
                | "squeeze"
                | "unsqueeze"
                | "norm"
                | "cumsum"
                | "cumprod"
                | "sin"
                | "cos"
                | "erf"
                | "gather"
                | "index_select"
                | "logsumexp"
                | "square"
                | "inverse"
                | "cholesky"
                | "svd"
                | "eigh"
                | "det"
                | "diag"
                | "roll"
                | "flip"
        ),
        _ => false,
    }
}

fn call_name(call: &ast::ExprCall) -> &str {
    match &*call.func {
        Expr::Attribute(it) => it.attr.as_str(),
        _ => "",
    }
}
