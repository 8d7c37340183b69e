//! Whether autograd records, and what a backward pass sets free.

use super::Context;
use crate::{
    facts::{Grad, Position, Root},
    flow::value::{Graph, Value},
    names::{FunctionId, Usage},
    syntax::{Ranged, TextRange, TextSize, ast},
};

/// What becomes of the graph of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// A backward pass frees what it saved.
    Released,
    /// Nothing in sight does.
    Kept,
    /// A backward pass happens there, of something that is not understood.
    Unknown,
}

impl<'a> Context<'a> {
    /// Whether autograd records at a place; if its function does not say, its callers do.
    pub(crate) fn grad(&self, at: &Position<'_>) -> Grad {
        match at.grad {
            Grad::AsCaller => self.calling.grad(self.file, at.function),
            grad => grad,
        }
    }

    /// Whether anything in a function shows that autograd must record in it.
    pub(crate) fn trains(&self, function: FunctionId) -> bool {
        self.facts.functions.get(function.0 as usize).is_some_and(|it| it.has_backward)
    }

    /// Whether a value drags a graph along: what is known of it, and of recording where it was made.
    pub(crate) fn graph(&self, value: &Value, at: &Position<'_>) -> Graph {
        let Some(tensor) = value.tensor_within() else { return Graph::Unknown };
        match (tensor.graph, self.grad(at)) {
            (Graph::Detached, _) | (_, Grad::Off) => Graph::Detached,
            (graph, Grad::On) => graph,
            (graph, _) => graph.min(Graph::Likely),
        }
    }

    /// What becomes of the graph of a value that is kept at a place.
    pub(crate) fn release(&self, value: &Value, at: &Position<'_>) -> Release {
        let nodes = value.tensor_within().map_or(&[][..], |it| it.nodes.as_slice());
        let function = self.facts.functions.get(at.function.0 as usize);
        if self.facts.tape.are_released(nodes) {
            Release::Released
        } else if function.is_some_and(|it| it.has_unknown_backward)
            || self.leaves_backward_to_others(at.function)
        {
            Release::Unknown
        } else {
            Release::Kept
        }
    }

    /// Whether a function gives its loss to another that runs the backward pass: the framework that called it, or one that it calls.
    fn leaves_backward_to_others(&self, function: FunctionId) -> bool {
        match self.leaves_backward.get(function.0 as usize) {
            Some(known) => *known.get_or_init(|| self.calls_what_goes_backward(function)),
            None => false,
        }
    }

    fn calls_what_goes_backward(&self, function: FunctionId) -> bool {
        let own = self.names.function(function);
        let within = match function {
            FunctionId::MODULE => TextRange::up_to(TextSize::new(u32::MAX)),
            _ => own.range(),
        };
        matches!(own.name, "training_step" | "compute_loss")
            || self.calls_within(within).filter(|it| it.at.function == function).any(|it| {
                self.project.called(&it.callee).is_some_and(|(file, id)| {
                    file == self.file
                        && self.facts.functions.get(id.0 as usize).is_some_and(|it| it.has_backward)
                })
            })
    }

    /// Whether what is gathered in a list or total goes into a backward pass after all: then it is kept on purpose.
    pub(crate) fn reaches_backward(&self, root: Root<'a>) -> bool {
        self.reaches_backward_within(root, 5)
    }

    fn reaches_backward_within(&self, root: Root<'a>, hops: u32) -> bool {
        let Some(hops) = hops.checked_sub(1) else { return false };
        let goes_on = |range: TextRange| {
            self.assigned_from(range).is_some_and(|root| self.reaches_backward_within(root, hops))
        };
        self.uses(root).iter().any(|it| {
            let range = it.expr.range();
            self.is_within_backward(range)
                || match it.usage {
                    Usage::Argument(call) => match &*call.func {
                        ast::Expr::Attribute(callee) => is_gathering(callee.attr.as_str()) && goes_on(range),
                        ast::Expr::Name(callee) => is_gathering(callee.id.as_str()) && goes_on(range),
                        _ => false,
                    },
                    Usage::Operand
                    | Usage::Item
                    | Usage::Assigned
                    | Usage::Other
                    | Usage::Attribute(_)
                    | Usage::Iterated => goes_on(range),
                    // `torch.cat(collect(model, loader)).sum().backward()`
                    Usage::Returned => {
                        let name = self.names.function(it.function).name;
                        !name.is_empty()
                            && self.calls_named(name).any(|call| {
                                let range = call.expr.range();
                                self.is_within_backward(range) || goes_on(range)
                            })
                    }
                    _ => false,
                }
        })
    }

    /// Whether a place is part of what goes backward: `(total / 4).backward()`, `scaler.scale(total).backward()`,
    /// `torch.stack(losses[-2:]).sum().backward()`, `accelerator.backward(total)`, `torch.autograd.grad(total, …)`.
    fn is_within_backward(&self, range: TextRange) -> bool {
        let mut calls =
            ["backward", "manual_backward", "grad", "scale"].into_iter().flat_map(|it| self.calls_named(it));
        calls.any(|it| it.expr.range().contains_range(range))
    }

    /// The name that an expression is part of the value of: `loss` of `pieces` in `loss = torch.stack(pieces).mean()`.
    fn assigned_from(&self, range: TextRange) -> Option<Root<'a>> {
        let assignment = self.facts.assignments.iter().find(|it| it.expr.range().contains_range(range))?;
        match assignment.target {
            ast::Expr::Name(it) => {
                let scope = self.names.scope_of(self.scope(assignment.at.function), it.id.as_str())?;
                Some(Root::Name(self.names.scope(scope).function, it.id.as_str()))
            }
            _ => None,
        }
    }
}

/// Whether a function makes one tensor from several.
fn is_gathering(name: &str) -> bool {
    matches!(
        name,
        "stack"
            | "cat"
            | "concat"
            | "concatenate"
            | "sum"
            | "mean"
            | "hstack"
            | "vstack"
            | "list"
            | "tuple"
            | "zip"
            | "max"
            | "min"
            | "logsumexp"
    )
}
