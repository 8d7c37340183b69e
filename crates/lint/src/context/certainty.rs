//! Whether an expression is surely a tensor. A value may be one in one round, or from one caller, and a plain number in the next; what
//! is edited without asking must be a tensor always.

use super::Context;
use crate::{
    facts::Callee,
    flow::value::{Class, Value},
    names::{Definition, FunctionId},
    syntax::ast::Expr,
};

/// How far names are followed to what they were given.
const HOPS: u32 = 4;

impl<'a> Context<'a> {
    /// Whether an expression is a tensor whenever it is evaluated: the result of a function or module that gives one, arithmetic with
    /// such a result, or a name that is given nothing else.
    pub(crate) fn is_surely_tensor(&self, function: FunctionId, expr: &'a Expr) -> bool {
        self.is_surely(function, expr, HOPS)
    }

    fn is_surely(&self, function: FunctionId, expr: &'a Expr, hops: u32) -> bool {
        let Some(hops) = hops.checked_sub(1) else { return false };
        match expr {
            Expr::Call(it) => {
                let Some(call) = self.facts.calls.iter().find(|call| std::ptr::eq(call.expr, it)) else {
                    return false;
                };
                let gives_tensor = matches!(call.result, Value::Tensor(_));
                gives_tensor
                    && match &call.callee {
                        Callee::External(_) | Callee::Object(Value::Object(Class::External(_))) => true,
                        // What its `forward` returns was understood.
                        Callee::Object(Value::Object(class @ Class::Project(..))) => {
                            self.is_module_class(class)
                        }
                        Callee::Method { object, .. } => self.is_surely(function, object, hops),
                        _ => false,
                    }
            }
            Expr::BinOp(it) => {
                self.is_surely(function, &it.left, hops) || self.is_surely(function, &it.right, hops)
            }
            Expr::UnaryOp(it) => self.is_surely(function, &it.operand, hops),
            Expr::Subscript(it) => self.is_surely(function, &it.value, hops),
            Expr::Name(it) => {
                let Some(entry) = self.names.scope(self.scope(function)).names.get(it.id.as_str()) else {
                    return false;
                };
                !entry.definitions.is_empty()
                    && entry.definitions.iter().all(|it| match it {
                        Definition::Value(value, _) => self.is_surely(function, value, hops),
                        _ => false,
                    })
            }
            _ => false,
        }
    }
}
