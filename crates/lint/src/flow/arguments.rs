//! Which parameter gets which argument.

use super::{Flow, value::Value};
use crate::{names::FunctionId, syntax::ast};

impl<'a> Flow<'a, '_, '_> {
    /// What a call passes to a function of this file, by the names of its parameters.
    pub(super) fn passed(
        &self,
        function: FunctionId,
        call: &'a ast::ExprCall,
        values: &[Value],
        is_bound: bool,
    ) -> Vec<(&'a str, Value)> {
        let function = self.names.function(function);
        let Some(parameters) = function.node.parameters() else { return Vec::new() };
        let positional: Vec<&'a str> = parameters
            .posonlyargs
            .iter()
            .chain(&parameters.args)
            .skip(usize::from(is_bound))
            .map(|it| it.parameter.name.as_str())
            .collect();
        let mut passed = Vec::new();
        let args = &call.arguments.args;
        for (index, (argument, value)) in args.iter().zip(values).enumerate() {
            if argument.is_starred_expr() {
                break;
            }
            if let Some(name) = positional.get(index) {
                passed.push((*name, value.clone()));
            }
        }
        for (keyword, value) in call.arguments.keywords.iter().zip(values.iter().skip(args.len())) {
            if let Some(name) = &keyword.arg {
                passed.push((name.as_str(), value.clone()));
            }
        }
        passed
    }
}
