//! Data loaders: what is one, how it was made, whether it has worker processes.

use super::{Context, objects::first_name, repetition::words_of};
use crate::{
    facts::Call,
    flow::value::{Class, Value},
    names::{FunctionId, LoopId},
    syntax::{
        ast::{self, Expr},
        int_literal, mentions,
    },
};

/// The classes of loaders, by the names under which they are imported.
pub(crate) const LOADERS: &[&str] = &[
    "torch.utils.data.DataLoader",
    "torch.utils.data.dataloader.DataLoader",
    "torchdata.stateful_dataloader.StatefulDataLoader",
    "torch_geometric.loader.DataLoader",
    "monai.data.DataLoader",
];

/// How it is known that something is a data loader.
#[derive(Clone, Copy)]
pub(crate) enum Loader<'a> {
    /// This call made it.
    Made(&'a Call<'a>),
    /// It is an instance of the class; who made it is not known.
    Instance,
    /// Its name says so, and nothing else is known of it.
    Named,
}

/// Whether a loader reads its batches in processes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workers {
    None,
    Some,
    Unknown,
}

impl<'a> Context<'a> {
    /// Whether an expression is a data loader, as seen from a function.
    pub(crate) fn loader(&self, function: FunctionId, expr: &'a Expr) -> Option<Loader<'a>> {
        let made_by = match expr {
            Expr::Call(_) => Some(expr),
            _ => self.only_value(function, expr),
        };
        if let Some(Expr::Call(made_by)) = made_by
            && let Some(call) = self.calls_to(LOADERS).find(|it| std::ptr::eq(it.expr, made_by))
        {
            return Some(Loader::Made(call));
        }
        match self.value_of_name(function, expr) {
            Some(Value::Object(Class::External(path))) if path.ends_with("DataLoader") => {
                Some(Loader::Instance)
            }
            None | Some(Value::Unknown) if is_named_loader(expr) && self.imports("torch") => {
                Some(Loader::Named)
            }
            _ => None,
        }
    }

    /// Whether the loader that a call makes has workers.
    pub(crate) fn workers(&self, call: &Call<'a>) -> Workers {
        let Some(number) = call.argument("num_workers", 5) else {
            return if call.has_unpacking() { Workers::Unknown } else { Workers::None };
        };
        let number = self.only_value(call.at.function, number).unwrap_or(number);
        match int_literal(number) {
            Some(0) => Workers::None,
            Some(_) => Workers::Some,
            None => Workers::Unknown,
        }
    }

    /// Whether an expression begins with what a loop around takes out of a data loader: `batch`, `batch["images"]`, `x.cuda()`.
    pub(crate) fn is_batch_of_loop(
        &self,
        function: FunctionId,
        innermost: Option<LoopId>,
        expr: &'a Expr,
    ) -> bool {
        let Some(name) = first_name(expr) else { return false };
        self.names.loops_from(innermost).any(|id| {
            let node = self.names.the_loop(id).node;
            let (Some(target), Some(iterable)) = (node.target(), node.iterable()) else { return false };
            let target = match (iterable, target) {
                // `for step, batch in enumerate(loader)`
                (Expr::Call(call), Expr::Tuple(pair)) if is_enumerate(call) => pair.elts.last(),
                _ => Some(target),
            };
            let is_target = target.is_some_and(|target| {
                mentions(target, &|it| matches!(it, Expr::Name(it) if it.id.as_str() == name))
            });
            let is_loader = || {
                let is_list = matches!(iterable, Expr::Name(it) if it.id.as_str().contains("batches"));
                self.loader_iterated(function, iterable).is_some()
                    || name == "batch" && !is_list && self.is_over_data(id) && self.imports("torch")
            };
            is_target && is_loader()
        })
    }

    /// The loader that a `for` goes over: that in `enumerate(tqdm(loader))`, too.
    pub(crate) fn loader_iterated(&self, function: FunctionId, iterable: &'a Expr) -> Option<Loader<'a>> {
        if let Expr::Call(call) = iterable {
            let name = match &*call.func {
                Expr::Name(it) => it.id.as_str(),
                Expr::Attribute(it) => it.attr.as_str(),
                _ => "",
            };
            if let ("enumerate" | "tqdm" | "track", Some(first)) = (name, call.arguments.args.first()) {
                return self.loader_iterated(function, first);
            }
        }
        self.loader(function, iterable)
    }
}

fn is_enumerate(call: &ast::ExprCall) -> bool {
    matches!(&*call.func, Expr::Name(it) if it.id.as_str() == "enumerate")
}

/// `train_loader`, `self.dataloader`, `val_dl`; not `loaders`, which are several.
fn is_named_loader(expr: &Expr) -> bool {
    let identifier = match expr {
        Expr::Name(it) => it.id.as_str(),
        Expr::Attribute(it) => it.attr.as_str(),
        _ => return false,
    };
    words_of(identifier).last().is_some_and(|it| matches!(it.as_str(), "loader" | "dataloader" | "dl"))
}
