//! Hooks: which functions serve as one, and what they are called with.

use super::{
    Flow,
    value::{Graph, GroupKind, Tensor, Value},
};
use crate::{
    facts::Hook,
    names::{Definition, Function, FunctionId, FunctionNode, Usage},
    syntax::ast::{self, Expr, Stmt},
};

/// What kind of hook a method registers, by its name.
pub(crate) fn registered_by(method: &str) -> Option<Hook> {
    match method {
        "register_forward_hook" | "register_forward_pre_hook" | "register_module_forward_hook" => {
            Some(Hook::Forward)
        }
        "register_full_backward_hook"
        | "register_backward_hook"
        | "register_full_backward_pre_hook"
        | "register_hook"
        | "register_post_accumulate_grad_hook" => Some(Hook::Backward),
        _ => None,
    }
}

impl<'a> Flow<'a, '_, '_> {
    /// A call that registers a hook says so before its argument is followed: a lambda, and what a factory of hooks returns.
    pub(super) fn expect_hook(&mut self, call: &'a ast::ExprCall) {
        let Expr::Attribute(method) = &*call.func else { return };
        let Some(hook) = registered_by(method.attr.as_str()) else { return };
        match call.arguments.args.first() {
            Some(Expr::Lambda(lambda)) => {
                if let Some(id) = self.names.function_at(lambda.range) {
                    self.facts.functions[id.0 as usize].hook = Some(hook);
                }
            }
            Some(Expr::Call(made)) => {
                let Some(factory) = self.factory(&made.func) else { return };
                for id in (0..self.names.functions.len() as u32).map(FunctionId) {
                    if self.names.function(id).parent == Some(factory) && self.is_returned(factory, id) {
                        self.facts.functions[id.0 as usize].hook = Some(hook);
                    }
                }
            }
            _ => {}
        }
    }

    /// The function of this file that an expression names, or the method of the object whose code this is.
    fn factory(&mut self, func: &'a Expr) -> Option<FunctionId> {
        match func {
            Expr::Name(it) => {
                let scope = self.frame().scope;
                self.names.name(scope, it.id.as_str())?.definitions.iter().find_map(|it| match it {
                    Definition::Function(id) => Some(*id),
                    _ => None,
                })
            }
            Expr::Attribute(it) => {
                let Expr::Name(object) = &*it.value else { return None };
                let object = self.read(object.id.as_str());
                match self.attribute_of(&object, it.attr.as_str()) {
                    Value::Function(file, id) if file == self.file => Some(id),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn is_returned(&self, factory: FunctionId, inner: FunctionId) -> bool {
        let name = self.names.function(inner).name;
        if name.is_empty() {
            let range = self.names.function(inner).range();
            return matches!(
                self.names.function(factory).node.body().last(),
                Some(Stmt::Return(it)) if matches!(it.value.as_deref(), Some(Expr::Lambda(it)) if it.range == range)
            );
        }
        let scope = self.names.scope(self.names.function(factory).scope);
        scope.names.get(name).is_some_and(|it| it.uses.iter().any(|it| matches!(it.usage, Usage::Returned)))
    }

    /// A function that is given to a method which registers hooks is one.
    pub(super) fn note_hook(&mut self, method: &str, arguments: &[Value]) {
        let Some(hook) = registered_by(method) else { return };
        if let Some(Value::Function(file, id)) = arguments.first()
            && *file == self.file
        {
            self.facts.functions[id.0 as usize].hook = Some(hook);
        }
    }
}

/// What a hook gets for one of its parameters: what goes into a module and what comes out of it, or their gradients.
pub(super) fn parameter(function: &Function<'_>, hook: Hook, name: &str) -> Option<Value> {
    let receiver = function.receiver().filter(|_| matches!(function.node, FunctionNode::Def(_)));
    let names: Vec<&str> = function
        .parameters()
        .filter(|it| it.default.is_none())
        .map(|it| it.parameter.name.as_str())
        .filter(|it| Some(*it) != receiver)
        .collect();
    let graph = match hook {
        Hook::Forward => Graph::Likely,
        // Gradients have graphs of their own only with `create_graph=True`.
        Hook::Backward => Graph::Unknown,
    };
    let tensor = Value::Tensor(Tensor { graph, ..Tensor::data() });
    let several = || Value::group(GroupKind::Tuple, tensor.clone());
    let last = names.iter().rposition(|it| it.starts_with("out") || *it == "o");
    let last = last.or_else(|| names.len().checked_sub(1))?;
    let position = names.iter().position(|it| *it == name)?;
    match (hook, last) {
        // `tensor.register_hook(lambda grad: …)`
        (Hook::Backward, 0) => (position == 0).then_some(tensor),
        (Hook::Forward, 2..) if position == last => Some(tensor),
        (Hook::Backward, _) if position == last => Some(several()),
        (_, 1) if position == 1 => Some(several()),
        (_, 2..) if position + 1 == last => Some(several()),
        _ => None,
    }
}
