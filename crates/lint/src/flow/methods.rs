//! What methods of values give.

use std::sync::Arc;

use super::{
    Flow, catalogue,
    expressions::place_of,
    value::{Class, Graph, Group, GroupKind, Nodes, Place, Size, Tensor, Value},
};
use crate::syntax::{
    ast::{self, Expr},
    bool_literal,
};

impl<'a> Flow<'a, '_, '_> {
    pub(super) fn method(
        &mut self,
        object: &'a Expr,
        value: &Value,
        name: &'a str,
        call: &'a ast::ExprCall,
        arguments: &[Value],
    ) -> Value {
        self.note_hook(name, arguments);
        match name {
            "backward" => {
                let is_own = call.arguments.args.is_empty() || matches!(value, Value::Tensor(_));
                let root =
                    if is_own { value.clone() } else { arguments.first().cloned().unwrap_or_default() };
                self.backward(&root, call);
                return Value::Plain;
            }
            "manual_backward" => {
                self.backward(&arguments.first().cloned().unwrap_or_default(), call);
                return Value::Plain;
            }
            // A scaler's, an accelerator's; the scaled loss is the loss.
            "scale" | "scale_loss" if !matches!(value, Value::Tensor(_)) && arguments.len() == 1 => {
                return arguments[0].clone();
            }
            "item" | "tolist" | "numpy" | "size" | "dim" | "numel" | "element_size" | "data_ptr"
            | "stride"
                if !matches!(value, Value::Object(_) | Value::Group(_)) =>
            {
                return Value::Plain;
            }
            "detach" | "detach_" if !matches!(value, Value::Object(_) | Value::Group(_)) => {
                let tensor = value.as_tensor().cloned().unwrap_or_else(Tensor::data);
                return Value::Tensor(Tensor { graph: Graph::Detached, nodes: Nodes::new(), ..tensor });
            }
            "prepare" if value.is_unknown() || matches!(value, Value::Object(_)) => {
                return match arguments {
                    [one] => one.clone(),
                    many => Value::written_out(GroupKind::Tuple, many.to_vec()),
                };
            }
            _ => {}
        }
        match value {
            Value::Tensor(tensor) => self.tensor_method(tensor, name, call, arguments),
            Value::Group(group) => {
                self.note_method(call, object, name, value, arguments);
                Self::group_method(group, name)
            }
            Value::Object(class) => {
                if let Some((file, id)) = self.project_method(class, name) {
                    return self.returned(file, id, call, arguments, true);
                }
                let class = class.clone();
                self.note_method(call, object, name, value, arguments);
                self.object_method(&class, object, name, call, arguments)
            }
            Value::Plain => Value::Plain,
            Value::Type(_) | Value::Function(..) | Value::External(_) | Value::Unknown => {
                self.note_method(call, object, name, value, arguments);
                self.unknown_method(object, name, call, arguments)
            }
        }
    }

    fn unknown_method(
        &mut self,
        object: &Expr,
        name: &str,
        call: &'a ast::ExprCall,
        arguments: &[Value],
    ) -> Value {
        match name {
            "cpu" if arguments.is_empty() => {
                Value::Tensor(Tensor { graph: Graph::Unknown, place: Place::Host, ..Tensor::data() })
            }
            // `model.head.weight.clone()`, whatever the model is
            "clone" | "detach" if crate::syntax::is_parameter(object) => {
                Value::Tensor(Tensor { size: Size::Array, ..Tensor::data() })
            }
            "argmax" | "argmin" | "argsort" => {
                Value::Tensor(Tensor { size: Size::Indices, ..Tensor::data() })
            }
            "state_dict" => {
                Value::group(GroupKind::Dict, Value::Tensor(Tensor { size: Size::Array, ..Tensor::data() }))
            }
            "generate" => Value::Tensor(Tensor::data()),
            "to" | "cuda" if self.is_part_of_batch(object) => {
                let place = match name {
                    "cuda" => Place::Device,
                    _ => place_of(call.arguments.find_argument_value("device", 0)),
                };
                Value::Tensor(Tensor { graph: Graph::Unknown, place, ..Tensor::data() })
            }
            _ => {
                // `self.model(x)`, `self.criterion(y, t)`, where nothing says what they are
                let is_receiver = matches!(object, Expr::Name(_));
                match catalogue::meaning_of_name(name) {
                    Some(size) if is_receiver && !call.arguments.args.is_empty() => {
                        let inputs: Vec<&Value> = arguments.iter().collect();
                        self.computed(Graph::Likely, size, &inputs)
                    }
                    _ => Value::Unknown,
                }
            }
        }
    }

    fn tensor_method(
        &mut self,
        tensor: &Tensor,
        name: &str,
        call: &'a ast::ExprCall,
        arguments: &[Value],
    ) -> Value {
        let own = Value::Tensor(tensor.clone());
        if catalogue::gives_several(name, call, 0) {
            return Value::group(GroupKind::Tuple, own);
        }
        let no_arguments = call.arguments.args.is_empty() && call.arguments.keywords.is_empty();
        match catalogue::tensor_method(name) {
            catalogue::TensorMethod::Plain => Value::Plain,
            catalogue::TensorMethod::Cut(size) => {
                let size = if size == Size::Unknown { tensor.size } else { size };
                Value::Tensor(Tensor { size, place: tensor.place, ..Tensor::data() })
            }
            catalogue::TensorMethod::Move => {
                let place = match name {
                    "cpu" => Place::Host,
                    "cuda" => Place::Device,
                    "to" => {
                        let device = call.arguments.find_argument_value("device", 0);
                        match place_of(device) {
                            Place::Unknown if device.is_none() => tensor.place,
                            place => place,
                        }
                    }
                    _ => tensor.place,
                };
                Value::Tensor(Tensor { place, is_view: false, ..tensor.clone() })
            }
            catalogue::TensorMethod::Copy => Value::Tensor(Tensor { is_view: false, ..tensor.clone() }),
            catalogue::TensorMethod::Window => {
                Value::Tensor(Tensor { size: Size::Unknown, ..tensor.clone() })
            }
            catalogue::TensorMethod::Reduce => {
                let size = if no_arguments { Size::Scalar } else { Size::Unknown };
                Value::Tensor(Tensor { size, is_view: false, ..tensor.clone() })
            }
            catalogue::TensorMethod::Parts => Value::group(GroupKind::Tuple, own),
            catalogue::TensorMethod::RequireGrad => {
                let off = call.arguments.args.first().and_then(bool_literal) == Some(false);
                let graph = if off { Graph::Detached } else { Graph::Attached };
                Value::Tensor(Tensor { graph, ..tensor.clone() })
            }
            catalogue::TensorMethod::Compute => {
                let mut inputs = vec![&own];
                inputs.extend(arguments);
                let graph = inputs
                    .iter()
                    .filter_map(|it| it.as_tensor())
                    .map(|it| it.graph)
                    .max()
                    .unwrap_or(Graph::Unknown);
                self.computed(graph, Size::Unknown, &inputs)
            }
        }
    }

    fn group_method(group: &Arc<Group>, name: &str) -> Value {
        match name {
            "values" => Value::group(GroupKind::Iterator, group.element.clone()),
            "items" => {
                let pair = Value::written_out(GroupKind::Tuple, vec![Value::Plain, group.element.clone()]);
                Value::group(GroupKind::Iterator, pair)
            }
            "keys" => Value::group(GroupKind::Iterator, Value::Plain),
            "pop" | "popleft" | "get" | "setdefault" | "popitem" => group.element.clone(),
            "copy" => Value::Group(group.clone()),
            "index" | "count" => Value::Plain,
            _ => Value::Unknown,
        }
    }

    fn object_method(
        &mut self,
        class: &Class,
        object: &'a Expr,
        name: &str,
        call: &'a ast::ExprCall,
        arguments: &[Value],
    ) -> Value {
        let is_module = self.is_module_here(class);
        if is_module {
            match name {
                "requires_grad_" if call.arguments.args.first().and_then(bool_literal) == Some(false) => {
                    let frozen = Value::Object(Class::External(catalogue::FROZEN.into()));
                    if let Expr::Name(it) = object {
                        self.assign(it.id.as_str(), frozen.clone());
                    }
                    return frozen;
                }
                "to" | "cuda" | "cpu" | "eval" | "train" | "half" | "float" | "double" | "bfloat16"
                | "requires_grad_" | "apply" | "compile" => return Value::Object(class.clone()),
                "parameters" | "buffers" => {
                    let parameter = Tensor { graph: Graph::Attached, size: Size::Array, ..Tensor::data() };
                    let parameter = if name == "buffers" {
                        Tensor { graph: Graph::Detached, ..parameter }
                    } else {
                        parameter
                    };
                    return Value::group(GroupKind::Iterator, Value::Tensor(parameter));
                }
                "named_parameters" => {
                    let parameter = Tensor { graph: Graph::Attached, size: Size::Array, ..Tensor::data() };
                    let pair =
                        Value::written_out(GroupKind::Tuple, vec![Value::Plain, Value::Tensor(parameter)]);
                    return Value::group(GroupKind::Iterator, pair);
                }
                "state_dict" => {
                    return Value::group(
                        GroupKind::Dict,
                        Value::Tensor(Tensor { size: Size::Array, ..Tensor::data() }),
                    );
                }
                "forward" => return self.called_object(class, call, arguments),
                "generate" => return Value::Tensor(Tensor::data()),
                "modules" | "children" | "named_modules" | "named_children" | "load_state_dict"
                | "get_submodule" => {
                    return Value::Unknown;
                }
                _ => {}
            }
        }
        if let Class::External(path) = class {
            return catalogue::method_of(path, name);
        }
        Value::Unknown
    }
}
