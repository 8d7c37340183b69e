//! Sends tensors on the GPU to another process again and again.
//!
//! ## Why it matters
//! A tensor on the GPU is not copied when it goes through a queue of `torch.multiprocessing`: the receiver opens the memory of
//! the sender. The sender keeps the whole block until the receiver has let go of the tensor, collects it only when it sends
//! or frees something later, and each receiving process has a CUDA context of its own. What is gathered on the other side stays
//! allocated on this one, where no tensor is to be seen that holds it.
//!
//! ## Example
//! ```python
//! import torch.multiprocessing as mp
//!
//! queue = mp.Queue()
//!
//! def produce(loader):
//!     for batch in loader:
//!         queue.put(batch.cuda())
//! ```
//! Use instead:
//! ```python
//! import torch.multiprocessing as mp
//!
//! queue = mp.Queue()
//!
//! def produce(loader):
//!     for batch in loader:
//!         queue.put(batch)
//! ```
//! The receiver moves what it gets to its device.
//!
//! ## When it is silent
//! The file does not use `torch.multiprocessing`; the queue is one of threads; it is not seen that the tensor is on a GPU;
//! nothing repeats it, as when the parameters of a model are shared once.
//!
//! ## Fix
//! Only advice: both sides have to change.
//!
//! ## References
//! - [Multiprocessing best practices: sharing CUDA tensors](https://docs.pytorch.org/docs/stable/multiprocessing.html#sharing-cuda-tensors)
//! - pytorch/pytorch#27975, pytorch/pytorch#16141, pytorch/pytorch#145703, pytorch/pytorch#149187, Lucaslab-Berkeley/Leopard-EM#72

use crate::{
    context::{Context, Repetition},
    diagnostic::{Diagnostic, Severity},
    flow::value::{Class, Place, Value},
    names::FunctionId,
    rule::{Framework, Rule},
    syntax::{
        ast::{self, Expr},
        text_literal,
    },
};

pub(crate) static RULE: Rule = Rule {
    code: "LK409",
    name: "cuda-tensor-through-queue",
    frameworks: &[Framework::Torch],
    severity: Severity::Warning,
    default: true,
    fix: None,
    check,
};

fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut puts = ["put", "put_nowait"].into_iter().flat_map(|it| context.calls_named(it)).peekable();
    let uses_processes =
        || context.imports("torch.multiprocessing") || context.source.text().contains("torch.multiprocessing");
    if puts.peek().is_none() || context.is_test() || !uses_processes() {
        return;
    }
    for call in puts {
        let Some((queue, value, _)) = call.method() else { continue };
        let is_of_threads = match value {
            Value::Object(Class::External(path)) => !path.starts_with("torch.multiprocessing"),
            Value::Unknown => context.imports("queue"),
            _ => true,
        };
        let Some(sent) = call.argument("obj", 0).filter(|_| !is_of_threads) else { continue };
        let is_on_gpu = call.value_of(sent).tensor_within().is_some_and(|it| it.place == Place::Device)
            || is_moved_to_gpu(context, call.at.function, sent, 2);
        let Some(Repetition::Data(_) | Repetition::Loop(_) | Repetition::Called) =
            context.repetition_at(&call.at).filter(|_| is_on_gpu)
        else {
            continue;
        };
        let (sent, queue) = (context.text(sent), context.text(queue));
        found.push(
            Diagnostic::new(
                &RULE,
                Severity::Warning,
                call.expr,
                format!("this process keeps the device memory of `{sent}` until the reader of `{queue}` lets go of it"),
            )
            .advise("send it from host memory, or let the receiver copy it and delete what it got at once"),
        );
    }
}

/// `x.cuda()`, `x.to("cuda")`, a name for it, or a tuple with it.
fn is_moved_to_gpu<'a>(context: &Context<'a>, function: FunctionId, expr: &'a Expr, hops: u32) -> bool {
    match expr {
        Expr::Call(call) => {
            let Expr::Attribute(method) = &*call.func else { return false };
            match method.attr.as_str() {
                "cuda" => true,
                "to" => {
                    let device = call.arguments.args.first().and_then(text_literal);
                    device.is_some_and(|it| it.starts_with("cuda"))
                }
                _ => false,
            }
        }
        Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
            elts.iter().any(|it| is_moved_to_gpu(context, function, it, hops))
        }
        Expr::Dict(it) => it.items.iter().any(|it| is_moved_to_gpu(context, function, &it.value, hops)),
        Expr::Name(_) => hops
            .checked_sub(1)
            .zip(context.only_value(function, expr))
            .is_some_and(|(hops, value)| is_moved_to_gpu(context, function, value, hops)),
        _ => false,
    }
}
