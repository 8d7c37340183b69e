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
                let Some(call) = self.call_of(it) else { return false };
                let gives_tensor = matches!(call.result, Value::Tensor(_));
                gives_tensor
                    && match &call.callee {
                        Callee::External(path) => path.first() == "torch" && gives_one(path.last()),
                        Callee::Object(Value::Object(Class::External(path))) => {
                            path.starts_with("torch.nn.")
                                && !path.contains("Pool")
                                && !path.contains("AdaptiveLog")
                        }
                        Callee::Method { object, name, .. } => {
                            gives_one(name) && self.is_surely(function, object, hops)
                        }
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

/// Whether what has this name gives one tensor whatever it is called with.
fn gives_one(name: &str) -> bool {
    name.ends_with("_loss")
        || matches!(
            name,
            "cross_entropy"
                | "binary_cross_entropy"
                | "binary_cross_entropy_with_logits"
                | "kl_div"
                | "nll"
                | "sum"
                | "mean"
                | "norm"
                | "var"
                | "std"
                | "prod"
                | "logsumexp"
                | "square"
                | "pow"
                | "sqrt"
                | "exp"
                | "log"
                | "log1p"
                | "abs"
                | "neg"
                | "tanh"
                | "sigmoid"
                | "relu"
                | "gelu"
                | "silu"
                | "softmax"
                | "log_softmax"
                | "softplus"
                | "clamp"
                | "add"
                | "sub"
                | "mul"
                | "div"
                | "matmul"
                | "mm"
                | "bmm"
                | "einsum"
                | "dot"
                | "cat"
                | "stack"
                | "where"
                | "linear"
                | "conv1d"
                | "conv2d"
                | "conv3d"
                | "layer_norm"
                | "dropout"
                | "interpolate"
                | "view"
                | "reshape"
                | "flatten"
                | "squeeze"
                | "unsqueeze"
                | "transpose"
                | "permute"
                | "contiguous"
                | "clone"
                | "float"
                | "half"
                | "double"
                | "bfloat16"
                | "to"
                | "cuda"
                | "cpu"
                | "randn"
                | "rand"
                | "zeros"
                | "ones"
                | "full"
                | "tensor"
        )
}
