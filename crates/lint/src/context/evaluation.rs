//! Networks that are run to evaluate, not to train.

use super::Context;
use crate::{
    facts::{Call, Callee, Grad},
    flow::value::{Class, Graph, Value},
    names::{FunctionId, LoopId, LoopNode},
    syntax::{Ranged, TextSize, ast::Expr, is_same_place},
};

impl<'a> Context<'a> {
    /// Whether a call runs a network of which it is known that it is one, and whose result has a graph if autograd records.
    pub(crate) fn runs_network(&self, call: &Call<'a>) -> bool {
        let is_detached = call.result.tensor_within().is_some_and(|it| it.graph == Graph::Detached);
        let is_module = match &call.callee {
            Callee::Object(value) => self.is_module(value) && !is_loss(value),
            _ => false,
        };
        !is_detached && (is_module || self.is_put_into_eval(&call.expr.func))
    }

    /// Whether `….eval()` is called on this object anywhere in the file.
    fn is_put_into_eval(&self, object: &Expr) -> bool {
        self.calls_named("eval").any(|it| {
            it.expr.arguments.is_empty() && it.method().is_some_and(|(of, ..)| is_same_place(of, object))
        }) && self.imports("torch")
    }

    /// Whether the last thing that a function does to the mode of an object before a place is `….eval()`.
    pub(crate) fn is_evaluating(&self, function: FunctionId, object: &Expr, before: TextSize) -> bool {
        let modes = self.calls_named("eval").chain(self.calls_named("train"));
        let last = modes
            .filter(|it| it.at.function == function && it.expr.start() < before)
            .filter(|it| it.method().is_some_and(|(of, ..)| is_same_place(of, object)))
            .max_by_key(|it| it.expr.start());
        last.is_some_and(|it| it.last_name() == "eval")
    }

    /// The innermost loop over data around a place that is written as a statement.
    pub(crate) fn statement_loop_over_data(&self, innermost: Option<LoopId>) -> Option<LoopId> {
        self.names.loops_from(innermost).find(|it| {
            self.is_over_data(*it) && !matches!(self.names.the_loop(*it).node, LoopNode::Comprehension(_))
        })
    }

    /// Whether a function, apart from those within it, works with gradients in another way than by training in other loops than
    /// `the_loop`.
    pub(crate) fn wants_gradients(&self, function: FunctionId, the_loop: Option<LoopId>) -> bool {
        let whole = the_loop.map(|it| self.names.the_loop(it).node.range());
        self.gradient_uses(function).any(|(range, in_loop, trains)| {
            let is_elsewhere = trains
                && whole.is_some_and(|whole| {
                    !whole.contains_range(range)
                        && in_loop
                            .is_some_and(|it| !self.names.the_loop(it).node.range().contains_range(whole))
                });
            !is_elsewhere
        })
    }

    /// Whether the loop evaluates the network: it was put into that mode before, or the function is named so and records for sure.
    pub(crate) fn evaluates(&self, call: &Call<'a>, the_loop: LoopId) -> bool {
        let function = call.at.function;
        let is_object = matches!(call.callee, Callee::Object(_));
        // In the loop itself it may be put into that mode, too.
        let by_mode = self.is_evaluating(function, &call.expr.func, call.expr.start());
        let is_in_mode_of_training = ["train"].into_iter().flat_map(|it| self.calls_named(it)).any(|it| {
            it.at.function == function
                && self.names.the_loop(the_loop).node.range().contains_range(it.expr.range())
        });
        let name = self.names.function(function).name.to_ascii_lowercase();
        let by_name = is_object
            && self.grad(&call.at) == Grad::On
            && name.split('_').any(|it| {
                matches!(
                    it,
                    "eval"
                        | "evaluate"
                        | "evaluation"
                        | "val"
                        | "validate"
                        | "validation"
                        | "predict"
                        | "infer"
                        | "inference"
                )
            });
        (by_mode || by_name) && !is_in_mode_of_training
    }

    /// Whether something unseen may turn recording off: an unknown decorator, or Lightning, which calls the methods of its classes so.
    pub(crate) fn is_wrapped(&self, function: FunctionId) -> bool {
        let has_decorator = self.names.functions_from(function).any(|it| {
            self.names.function(it).node.decorators().iter().any(|it| {
                !matches!(&it.expression, Expr::Name(it) if matches!(it.id.as_str(), "staticmethod" | "classmethod"))
            })
        });
        let is_of_lightning = self.class_around(function).is_some_and(|it| {
            self.derives_from(it, &["LightningModule", "Callback", "LightningDataModule", "Trainer"])
        });
        has_decorator || is_of_lightning
    }
}

fn is_loss(value: &Value) -> bool {
    matches!(value, Value::Object(Class::External(path)) if path.ends_with("Loss"))
}
