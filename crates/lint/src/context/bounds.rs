//! What keeps a list, dict or attribute from growing.

use super::Context;
use crate::{
    facts::{How, Keep, Root},
    flow::value::Graph,
    names::{Definition, FunctionId, Usage, method_name},
    syntax::{
        Ranged,
        ast::{self, Expr},
    },
};

impl<'a> Context<'a> {
    /// Whether something is added each time: to a list, or under a key of its own.
    pub(crate) fn adds_each_time(keep: &Keep<'a>) -> bool {
        match keep.how {
            How::Append => true,
            How::SetItem => !Self::has_constant_key(keep),
            _ => false,
        }
    }

    /// Whether something takes out again what is put into the target, or gives the target up, while it grows.
    pub(crate) fn is_bounded(&self, keep: &Keep<'a>) -> bool {
        if keep.before.as_group().is_some_and(|it| it.is_bounded) {
            return true;
        }
        if self.is_given_up(keep) {
            return true;
        }
        self.uses(keep.root).iter().any(|it| match it.usage {
            Usage::Method(call) | Usage::ItemMethod(call) => {
                matches!(
                    method_name(call),
                    "clear" | "pop" | "popleft" | "popitem" | "remove" | "discard" | "get_nowait" | "reset"
                )
            }
            // `del xs[0]`, `xs[:] = …`
            Usage::ItemDeleted => true,
            Usage::ItemStored(item) => matches!(&*item.slice, Expr::Slice(_)),
            // `del xs` after the loop that fills it says nothing about the loop.
            Usage::Deleted => keep.outlives_call,
            _ => false,
        }) || self.is_reset(keep)
    }

    /// Whether the name is given a new value where its filling is repeated.
    fn is_reset(&self, keep: &Keep<'a>) -> bool {
        let Root::Name(owner, _) = keep.root else { return false };
        let own = self.definitions(keep.root);
        // A global that a function empties: `global xs; xs = []`
        if keep.outlives_call && owner == FunctionId::MODULE {
            return own.iter().any(|it| match it {
                Definition::Value(expr, in_loop) => {
                    let at = expr.range();
                    let in_function =
                        self.names.functions.iter().skip(1).any(|it| it.range().contains_range(at));
                    (in_function || in_loop.is_some()) && !keep.range.contains_range(at)
                }
                _ => false,
            });
        }
        false
    }

    /// Whether an attribute of this name is emptied or given a new value somewhere in the project: if it is another object's, this is
    /// silence about one that leaks, which is better than a false accusation.
    fn is_given_up(&self, keep: &Keep<'a>) -> bool {
        let (Root::SelfAttribute(_, name) | Root::Attribute(name)) = keep.root else { return false };
        if !matches!(keep.how, How::Accumulate | How::Concatenate | How::Chain) {
            return self.project.emptied.contains(name);
        }
        // What goes on from itself is assigned, too: only other assignments give it up.
        // `self.hidden = self.hidden.detach()` gives up the graph, which is what a chain keeps.
        let keeps_graph = |it: &Keep<'a>| {
            it.how != How::Chain || it.value.tensor_within().is_none_or(|it| it.graph != Graph::Detached)
        };
        let goes_on = self
            .facts
            .keeps
            .iter()
            .filter(|it| it.root == keep.root && it.how == keep.how && keeps_graph(it))
            .count();
        let assigned = self.uses(keep.root).iter().filter(|it| {
            matches!(it.usage, Usage::Stored) && self.names.function(it.function).name != "__init__"
        });
        assigned.count() > goes_on
    }

    /// Whether only one key is ever written: `slot["last"] = x`.
    pub(crate) fn has_constant_key(keep: &Keep<'a>) -> bool {
        keep.key.is_some_and(|it| match it {
            Expr::StringLiteral(_)
            | Expr::NumberLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::NoneLiteral(_) => true,
            Expr::UnaryOp(it) => matches!(&*it.operand, Expr::NumberLiteral(_)),
            Expr::Tuple(ast::ExprTuple { elts, .. }) => elts.iter().all(Expr::is_literal_expr),
            _ => false,
        })
    }
}
