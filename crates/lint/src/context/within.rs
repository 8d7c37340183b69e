//! What happens within a part of the code, and what stays the same there.

use super::{Context, Repetition, Rounds};
use crate::{
    facts::Call,
    names::{Definition, FunctionId, LoopId, Usage},
    syntax::{
        Ranged, TextRange, TextSize,
        ast::{self, Expr, Stmt},
        mentions,
    },
};

impl<'a> Context<'a> {
    /// The calls in a part of the source.
    pub(crate) fn calls_within(&self, range: TextRange) -> impl Iterator<Item = &'a Call<'a>> {
        self.facts.calls_within(range)
    }

    /// What is known of a call.
    pub(crate) fn call_of(&self, expr: &ast::ExprCall) -> Option<&'a Call<'a>> {
        self.calls_within(expr.range()).find(|it| std::ptr::eq(it.expr, expr))
    }

    /// The last call before a place whose result is given to a name, in the same function.
    pub(crate) fn last_call_given_to(
        &self,
        function: FunctionId,
        name: &ast::ExprName,
        before: TextSize,
    ) -> Option<&'a ast::ExprCall> {
        let definitions = &self.names.scope(self.scope(function)).names.get(name.id.as_str())?.definitions;
        let calls = definitions.iter().filter_map(|it| match it {
            Definition::Value(Expr::Call(call), _) if call.end() <= before => Some(call),
            _ => None,
        });
        calls.max_by_key(Ranged::start)
    }

    /// Whether something with one of these names at its end is called in a part of the source.
    pub(crate) fn calls_any_within(&self, range: TextRange, names: &[&str]) -> bool {
        names.iter().flat_map(|it| self.calls_named(it)).any(|it| range.contains_range(it.expr.range()))
    }

    /// The innermost `for` or `while` around a place, in its function, however few its rounds are.
    pub(crate) fn loop_around(&self, innermost: Option<LoopId>) -> Option<LoopId> {
        self.names.loops_from(innermost).find(|it| !self.names.the_loop(*it).node.body().is_empty())
    }

    /// Whether a loop goes round often enough to matter: over data, or nobody knows over what.
    pub(crate) fn repetition_in(&self, id: LoopId) -> Option<Repetition> {
        match self.rounds(id) {
            Rounds::Data => Some(Repetition::Data(id)),
            Rounds::Unknown => Some(Repetition::Loop(id)),
            Rounds::Few | Rounds::Parts => None,
        }
    }

    /// Whether a loop runs for each step: over data, but not over epochs, whose rounds are long.
    pub(crate) fn is_over_steps(&self, id: LoopId) -> bool {
        let node = self.names.the_loop(id).node;
        let mut heads = [node.iterable(), node.target()].into_iter().flatten();
        let is_over_epochs = heads.any(|it| self.text(it).to_ascii_lowercase().contains("epoch"));
        let has_inner_loop = self.names.loops.iter().enumerate().any(|(inner, it)| {
            it.parent == Some(id)
                && !it.node.body().is_empty()
                && self.repetition_in(LoopId::at(inner)).is_some()
        });
        self.repetition_in(id).is_some() && !is_over_epochs && !has_inner_loop
    }

    /// Whether a variable or attribute is given a value in a loop, so that it is another in each round.
    pub(crate) fn may_be_another_in(&self, id: LoopId, expr: &Expr) -> bool {
        match expr {
            Expr::Name(it) => self.is_changed_in(id, it.id.as_str()),
            Expr::Attribute(it) => {
                let whole = self.names.the_loop(id).node.range();
                let is_stored = self.names.attributes.get(it.attr.as_str()).is_some_and(|uses| {
                    uses.iter()
                        .any(|it| matches!(it.usage, Usage::Stored) && whole.contains_range(it.expr.range()))
                });
                is_stored || self.may_be_another_in(id, &it.value)
            }
            _ => true,
        }
    }

    /// Whether a name, as seen from the function of a loop, is given a value in the loop.
    pub(crate) fn is_changed_in(&self, id: LoopId, name: &str) -> bool {
        let the_loop = self.names.the_loop(id);
        let whole = the_loop.node.range();
        self.names.name(self.scope(the_loop.function), name).is_some_and(|it| {
            it.definitions.iter().any(|it| match it {
                Definition::Value(expr, _) => whole.contains_range(expr.range()),
                Definition::Other(range) => whole.contains_range(*range),
                Definition::Loop(id) => whole.contains_range(self.names.the_loop(*id).node.range()),
                _ => false,
            })
        })
    }

    /// Whether an expression may be another in the next round of a loop: a part of it is assigned there, has a method
    /// called on it, or comes from a call of something that is no class.
    pub(crate) fn may_vary_in(&self, id: LoopId, expr: &Expr) -> bool {
        let the_loop = self.names.the_loop(id);
        let whole = the_loop.node.range();
        mentions(expr, &|it| match it {
            Expr::Name(name) => {
                let name = name.id.as_str();
                self.is_changed_in(id, name)
                    || self.names.name(self.scope(the_loop.function), name).is_some_and(|it| {
                        it.uses.iter().any(|it| {
                            is_change(&it.usage)
                                && whole.contains_range(it.expr.range())
                                && !expr.range().contains_range(it.expr.range())
                        })
                    })
            }
            Expr::Attribute(attribute) => {
                self.names.attributes.get(attribute.attr.as_str()).is_some_and(|uses| {
                    uses.iter().any(|it| {
                        matches!(it.usage, Usage::Stored | Usage::Augmented | Usage::Method(_))
                            && whole.contains_range(it.expr.range())
                    })
                })
            }
            Expr::Call(call) => {
                let name = match &*call.func {
                    Expr::Name(it) => it.id.as_str(),
                    Expr::Attribute(it) => it.attr.as_str(),
                    _ => "",
                };
                !name.starts_with(char::is_uppercase)
            }
            Expr::Await(_) | Expr::Yield(_) | Expr::YieldFrom(_) | Expr::Named(_) | Expr::Subscript(_) => {
                true
            }
            _ => false,
        })
    }

    /// What a name or an attribute of `self` is given, if it is given something only once.
    pub(crate) fn only_value(&self, function: FunctionId, expr: &Expr) -> Option<&'a Expr> {
        match expr {
            Expr::Name(it) => {
                match self.names.name(self.scope(function), it.id.as_str())?.definitions.as_slice() {
                    [Definition::Value(expr, _)] => Some(*expr),
                    _ => None,
                }
            }
            Expr::Attribute(it) => {
                let class = self.class_around(function)?;
                let mut given = self.facts.assignments.iter().filter(|assignment| {
                    crate::syntax::is_same_place(assignment.target, expr)
                        && self.class_around(assignment.at.function) == Some(class)
                });
                let only = given.next()?;
                (given.next().is_none() && matches!(&*it.value, Expr::Name(_))).then_some(only.expr)
            }
            _ => None,
        }
    }

    /// The body of the function that a place is in.
    pub(crate) fn body_of(&self, function: FunctionId) -> &'a [Stmt] {
        self.names.function(function).node.body()
    }

    /// The part of the source that a function is; of the module: all.
    pub(crate) fn range_of(&self, function: FunctionId) -> TextRange {
        match function {
            FunctionId::MODULE => TextRange::up_to(TextSize::of(self.source.text())),
            other => self.names.function(other).range(),
        }
    }
}

/// Whether an object may be another after this: a method of it is called, or an attribute of it set.
fn is_change(usage: &Usage<'_>) -> bool {
    match usage {
        Usage::Method(_) => true,
        Usage::Attribute(it) => it.ctx == ast::ExprContext::Store,
        _ => false,
    }
}
