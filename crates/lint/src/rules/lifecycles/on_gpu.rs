//! Whether a file shows that an object lies on a GPU.

use crate::{
    context::Context,
    facts::Call,
    names::FunctionId,
    syntax::{ast::Expr, is_same_place, mentions, text_literal},
};

/// Whether the file moves an object to a device other than the host: `model.cuda()`, `model = Net().to(device)`.
///
/// A variable is looked for in its own function, an attribute everywhere.
pub(super) fn is_moved_to_gpu(context: &Context<'_>, function: FunctionId, holder: &Expr) -> bool {
    let mut moves = ["cuda", "to"].into_iter().flat_map(|it| context.calls_named(it));
    moves.any(|it| {
        let is_in_sight = it.at.function == function || matches!(holder, Expr::Attribute(_));
        is_in_sight
            && is_to_gpu(it)
            && match it.method() {
                Some((object, ..)) if is_same_place(object, holder) => true,
                Some(_) => context.facts.assignments.iter().any(|assignment| {
                    is_same_place(assignment.target, holder)
                        && mentions(
                            assignment.expr,
                            &|part| matches!(part, Expr::Call(call) if std::ptr::eq(call, it.expr)),
                        )
                }),
                None => false,
            }
    })
}

/// Whether several processes run this file, each with a GPU of its own.
pub(super) fn is_one_of_several_processes(context: &Context<'_>) -> bool {
    context
        .calls_to(&["torch.distributed.init_process_group", "torch.multiprocessing.spawn"])
        .next()
        .is_some()
}

fn is_to_gpu(call: &Call<'_>) -> bool {
    !call.expr.arguments.args.iter().chain(call.expr.arguments.keywords.iter().map(|it| &it.value)).any(
        |it| {
            mentions(it, &|it| {
                text_literal(it) == Some("cpu")
                    || matches!(it, Expr::Attribute(it) if it.attr.as_str() == "dtype")
            })
        },
    )
}
