//! Names that stand for parameters of a model in a loop over them.

use crate::{
    context::Context,
    names::LoopId,
    syntax::ast::{Expr, ExprCall},
};

/// The names of a loop that stand for parameters: `p` of `for e, p in zip(ema, net.parameters())`.
pub(super) fn parameter_names<'a>(context: &Context<'a>, id: LoopId) -> Vec<&'a str> {
    let node = context.names.the_loop(id).node;
    let mut names = Vec::new();
    if let (Some(target), Some(iterable)) = (node.target(), node.iterable()) {
        collect(target, iterable, &mut names);
    }
    names
}

fn collect<'a>(target: &'a Expr, iterable: &'a Expr, names: &mut Vec<&'a str>) {
    let Expr::Call(call) = iterable else { return };
    let parts = match target {
        Expr::Tuple(it) => it.elts.as_slice(),
        _ => &[],
    };
    match (name_of(call), target, parts) {
        ("parameters", Expr::Name(it), _) | ("named_parameters", _, [_, Expr::Name(it)]) => {
            names.push(it.id.as_str());
        }
        ("zip", _, parts) => {
            for (part, argument) in parts.iter().zip(&call.arguments.args) {
                collect(part, argument, names);
            }
        }
        ("enumerate", _, [_, part]) => {
            if let Some(first) = call.arguments.args.first() {
                collect(part, first, names);
            }
        }
        ("list" | "tuple" | "tqdm", ..) => {
            if let Some(first) = call.arguments.args.first() {
                collect(target, first, names);
            }
        }
        _ => {}
    }
}

fn name_of(call: &ExprCall) -> &str {
    match &*call.func {
        Expr::Name(it) => it.id.as_str(),
        Expr::Attribute(it) => it.attr.as_str(),
        _ => "",
    }
}

/// The mention of `name` by which its graph gets into an expression; nothing if only `name.data`, `name.detach()` and the like
/// are in it.
pub(super) fn attached_mention<'e>(expr: &'e Expr, name: &str) -> Option<&'e Expr> {
    match expr {
        Expr::Name(it) => (it.id.as_str() == name).then_some(expr),
        Expr::BinOp(it) => attached_mention(&it.left, name).or_else(|| attached_mention(&it.right, name)),
        Expr::UnaryOp(it) => attached_mention(&it.operand, name),
        Expr::Call(call) => {
            let of_object = match &*call.func {
                Expr::Attribute(it)
                    if matches!(
                        it.attr.as_str(),
                        "clone"
                            | "to"
                            | "float"
                            | "half"
                            | "cpu"
                            | "cuda"
                            | "mul"
                            | "add"
                            | "lerp"
                            | "view"
                            | "contiguous"
                    ) =>
                {
                    attached_mention(&it.value, name)
                }
                _ => None,
            };
            of_object.or_else(|| call.arguments.args.iter().find_map(|it| attached_mention(it, name)))
        }
        _ => None,
    }
}
