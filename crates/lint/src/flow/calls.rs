//! What calls give, and what they do.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{
    Flow, Progress, catalogue,
    expressions::{graph_of, place_of},
    value::{Class, FileId, Graph, Group, GroupKind, Nodes, Place, Size, Tensor, Value},
};
use crate::{
    facts::{Call, Callee, Grad},
    names::FunctionId,
    syntax::{
        ast::{self, Expr},
        bool_literal,
    },
};

impl<'a> Flow<'a, '_, '_> {
    pub(super) fn call(&mut self, call: &'a ast::ExprCall) -> Value {
        let callee = self.callee(&call.func);
        self.expect_hook(call);
        let mut arguments: SmallVec<[Value; 3]> = SmallVec::new();
        for argument in &call.arguments.args {
            let value = self.value(argument);
            arguments.push(value);
        }
        for keyword in &call.arguments.keywords {
            let value = self.value(&keyword.value);
            arguments.push(value);
        }
        let result = self.result(&callee, call, &arguments);
        if !self.quiet {
            let at = self.here();
            let name = match &callee {
                Callee::External(path) => path.last(),
                Callee::Method { name, .. } => name,
                _ => match &*call.func {
                    Expr::Name(it) => it.id.as_str(),
                    Expr::Attribute(it) => it.attr.as_str(),
                    _ => "",
                },
            };
            let index = self.facts.calls.len() as u32;
            self.facts.calls_by_name.entry(name).or_default().push(index);
            self.facts.calls.push(Call { expr: call, callee, arguments, result: result.clone(), at });
        }
        result
    }

    fn callee(&mut self, func: &'a Expr) -> Callee<'a> {
        let scope = self.frame().scope;
        if let Some(path) = self.names.path(scope, func) {
            return match self.project.lookup(&path) {
                Value::Function(file, id) => Callee::Function(file, id),
                Value::Type(class) => Callee::Class(class),
                Value::Object(class) => Callee::Object(Value::Object(class)),
                _ => Callee::External(path),
            };
        }
        match func {
            Expr::Attribute(it) => {
                let value = self.value(&it.value);
                let found = self.attribute_of(&value, it.attr.as_str());
                match found {
                    Value::Type(class) => Callee::Class(class),
                    // `self.model(x)`
                    Value::Object(_) if !matches!(value, Value::Tensor(_)) => Callee::Object(found),
                    _ => Callee::Method { object: &it.value, value, name: it.attr.as_str() },
                }
            }
            other => match self.value(other) {
                Value::Function(file, id) => Callee::Function(file, id),
                Value::Type(class) => Callee::Class(class),
                value @ Value::Object(_) => Callee::Object(value),
                Value::External(path) => Callee::Class(Class::External(path)),
                _ => Callee::Unknown,
            },
        }
    }

    fn result(&mut self, callee: &Callee<'a>, call: &'a ast::ExprCall, arguments: &[Value]) -> Value {
        match callee {
            Callee::External(path) => {
                let path = path.to_string();
                self.imported(&path, call, arguments)
            }
            Callee::Class(Class::External(path)) => {
                let path = path.clone();
                self.imported(&path, call, arguments)
            }
            Callee::Class(class @ Class::Project(file, id)) => {
                if *file == self.file
                    && let Some(init) = self.names.class(*id).methods.get("__init__").copied()
                {
                    let passed = self.passed(init, call, arguments, true);
                    self.follow_function(init, &passed);
                }
                Value::Object(class.clone())
            }
            Callee::Function(file, id) => self.returned(*file, *id, call, arguments, false),
            Callee::Object(Value::Object(class)) => {
                let class = class.clone();
                self.called_object(&class, call, arguments)
            }
            Callee::Method { object, value, name } => self.method(object, value, name, call, arguments),
            Callee::Unknown | Callee::Object(_) => self.called_unknown(call, arguments),
        }
    }

    /// A function of the project: what it returns, computed from what is passed.
    fn returned(
        &mut self,
        file: FileId,
        id: FunctionId,
        call: &'a ast::ExprCall,
        arguments: &[Value],
        is_bound: bool,
    ) -> Value {
        let returns = if file == self.file {
            let passed = self.passed(id, call, arguments, is_bound);
            self.follow_function(id, &passed);
            if self.progress[id.0 as usize] == Progress::Now {
                return Value::Unknown;
            }
            self.facts.functions[id.0 as usize].returns.clone()
        } else {
            self.project.returns(file, id)
        };
        self.with_graph(&returns, arguments)
    }

    /// The same value as the result of an operation on `inputs` here.
    fn with_graph(&mut self, value: &Value, inputs: &[Value]) -> Value {
        match value {
            Value::Tensor(tensor) if tensor.graph > Graph::Detached => {
                let inputs: Vec<&Value> = inputs.iter().collect();
                match self.computed(tensor.graph, tensor.size, &inputs) {
                    Value::Tensor(computed) => Value::Tensor(Tensor { place: tensor.place, ..computed }),
                    other => other,
                }
            }
            Value::Group(group) => {
                let element = self.with_graph(&group.element, inputs);
                let parts = group.parts.iter().map(|it| self.with_graph(it, inputs)).collect();
                Value::Group(Arc::new(group.with(element, parts)))
            }
            other => other.clone(),
        }
    }

    /// `model(x)`
    fn called_object(&mut self, class: &Class, call: &'a ast::ExprCall, arguments: &[Value]) -> Value {
        if let Class::External(path) = class {
            if &**path == catalogue::FROZEN {
                return Value::Tensor(Tensor::data());
            }
            if !self.project.is_module(class) {
                return Value::Unknown;
            }
            let last = path.rsplit('.').next().unwrap_or("");
            let size = if last.ends_with("Loss") { Size::Scalar } else { Size::Array };
            let inputs: Vec<&Value> = arguments.iter().collect();
            let tensor = self.computed(Graph::Attached, size, &inputs);
            return match last {
                "LSTM" | "LSTMCell" => {
                    let state = Value::written_out(GroupKind::Tuple, vec![tensor.clone(), tensor.clone()]);
                    if last == "LSTM" {
                        Value::written_out(GroupKind::Tuple, vec![tensor, state])
                    } else {
                        state
                    }
                }
                "GRU" | "RNN" | "MultiheadAttention" => {
                    Value::written_out(GroupKind::Tuple, vec![tensor.clone(), tensor])
                }
                _ => tensor,
            };
        }
        let forward = self.project_method(class, "forward");
        if let Some((file, id)) = forward
            && self.is_module_here(class)
        {
            let returns = self.returned(file, id, call, arguments, true);
            return match returns {
                Value::Plain => Value::Plain,
                Value::Group(group) => {
                    let inputs: Vec<Value> = arguments.to_vec();
                    self.attach_all(&Value::Group(group), &inputs)
                }
                _ => {
                    let size = returns.as_tensor().map_or(Size::Unknown, |it| it.size);
                    let graph = match &returns {
                        Value::Tensor(it) if it.graph == Graph::Detached => Graph::Detached,
                        _ => Graph::Attached,
                    };
                    let inputs: Vec<&Value> = arguments.iter().collect();
                    self.computed(graph, size, &inputs)
                }
            };
        }
        if let Some((file, id)) = self.project_method(class, "__call__") {
            return self.returned(file, id, call, arguments, true);
        }
        if self.is_module_here(class) {
            let inputs: Vec<&Value> = arguments.iter().collect();
            return self.computed(Graph::Attached, Size::Unknown, &inputs);
        }
        Value::Unknown
    }

    /// What a module returns in a group is attached, if nothing says otherwise.
    fn attach_all(&mut self, value: &Value, inputs: &[Value]) -> Value {
        match value {
            Value::Group(group) => {
                let element = self.attach_all(&group.element, inputs);
                let parts = group.parts.iter().map(|it| self.attach_all(it, inputs)).collect();
                Value::Group(Arc::new(group.with(element, parts)))
            }
            Value::Unknown => {
                let inputs: Vec<&Value> = inputs.iter().collect();
                self.computed(Graph::Likely, Size::Unknown, &inputs)
            }
            other => other.clone(),
        }
    }

    /// Whether a class is a module: known from the project, or from the bases in this file.
    pub(super) fn is_module_here(&self, class: &Class) -> bool {
        match class {
            Class::Project(file, id) if *file == self.file => {
                self.project.is_module(class)
                    || self.names.external_bases(*id).iter().any(catalogue::is_module_class)
            }
            _ => self.project.is_module(class),
        }
    }

    /// A method of a class of the project, its own or inherited.
    fn project_method(&mut self, class: &Class, name: &str) -> Option<(FileId, FunctionId)> {
        let Class::Project(file, id) = class else { return None };
        if *file == self.file {
            let mut waiting = vec![*id];
            let mut seen = Vec::new();
            while let Some(id) = waiting.pop() {
                if seen.contains(&id) {
                    continue;
                }
                seen.push(id);
                if let Some(method) = self.names.class(id).methods.get(name) {
                    return Some((self.file, *method));
                }
                waiting.extend(self.names.local_bases(id));
            }
        }
        self.project.method(class, name)
    }

    /// Something is called of which only the name is known.
    fn called_unknown(&mut self, call: &'a ast::ExprCall, arguments: &[Value]) -> Value {
        let inputs: Vec<&Value> = arguments.iter().collect();
        match &*call.func {
            Expr::Name(it) => {
                let name = it.id.as_str();
                let scope = self.frame().scope;
                if self.names.scope_of(scope, name).is_none() {
                    return self.builtin(name, arguments);
                }
                match catalogue::meaning_of_name(name) {
                    Some(size) => self.computed(Graph::Likely, size, &inputs),
                    None => Value::Unknown,
                }
            }
            _ => Value::Unknown,
        }
    }

    fn builtin(&mut self, name: &str, arguments: &[Value]) -> Value {
        let first = arguments.first().cloned().unwrap_or_default();
        match name {
            "len" | "int" | "float" | "str" | "bool" | "round" | "repr" | "format" | "isinstance"
            | "hasattr" | "id" | "hash" | "print" | "ord" | "chr" | "type" | "any" | "all" | "callable"
            | "issubclass" => Value::Plain,
            "abs" => first,
            "list" | "sorted" | "reversed" | "tuple" | "set" | "frozenset" | "iter" => {
                let kind = match name {
                    "tuple" => GroupKind::Tuple,
                    "set" | "frozenset" => GroupKind::Set,
                    "iter" | "reversed" => GroupKind::Iterator,
                    _ => GroupKind::List,
                };
                let element = if arguments.is_empty() { Value::Unknown } else { self.element_of(&first) };
                Value::group(kind, element)
            }
            "dict" => match first {
                Value::Group(group) if group.kind == GroupKind::Dict => Value::Group(group),
                _ => {
                    let element = arguments.iter().cloned().reduce(|a, b| a.join(&b)).unwrap_or_default();
                    Value::group(GroupKind::Dict, element)
                }
            },
            "enumerate" => {
                let element = self.element_of(&first);
                let pair = Value::written_out(GroupKind::Tuple, vec![Value::Plain, element]);
                Value::group(GroupKind::Iterator, pair)
            }
            "zip" => {
                let parts = arguments.iter().map(|it| self.element_of(it)).collect();
                let row = Value::written_out(GroupKind::Tuple, parts);
                Value::group(GroupKind::Iterator, row)
            }
            "range" => Value::group(GroupKind::Iterator, Value::Plain),
            "map" => {
                let element = match arguments.first() {
                    Some(Value::Function(file, id)) if *file == self.file => {
                        self.facts.functions[id.0 as usize].returns.clone()
                    }
                    _ => Value::Unknown,
                };
                Value::group(GroupKind::Iterator, element)
            }
            "filter" => arguments.get(1).cloned().unwrap_or_default(),
            "next" => self.element_of(&first),
            "sum" => {
                let element = self.element_of(&first);
                match element {
                    Value::Tensor(_) => self.arithmetic(ast::Operator::Add, &element, &Value::Plain),
                    other => other,
                }
            }
            "max" | "min" if arguments.len() == 1 => self.element_of(&first),
            "max" | "min" => arguments.iter().cloned().reduce(|a, b| a.join(&b)).unwrap_or_default(),
            _ => Value::Unknown,
        }
    }

    /// Something imported is called.
    fn imported(&mut self, path: &str, call: &'a ast::ExprCall, arguments: &[Value]) -> Value {
        let first = arguments.first().cloned().unwrap_or_default();
        let inputs: Vec<&Value> = arguments.iter().collect();
        match path {
            "torch.set_grad_enabled" | "torch.autograd.set_grad_enabled" => {
                let at_statement = matches!(self.frame().statement, ast::Stmt::Expr(_));
                if at_statement {
                    let on = call.arguments.args.first().and_then(bool_literal);
                    self.frame().grad = match on {
                        Some(false) => Grad::Off,
                        Some(true) => Grad::On,
                        None => Grad::Unknown,
                    };
                }
                return Value::Plain;
            }
            "torch.autograd.backward" => {
                self.backward(&first, call);
                return Value::Plain;
            }
            "torch.autograd.grad" => {
                let keeps = is_true(call, "create_graph");
                if !keeps && !is_true(call, "retain_graph") {
                    self.release(&first);
                }
                let graph = if keeps { Graph::Attached } else { Graph::Detached };
                let tensor = self.computed(graph, Size::Array, &inputs);
                return Value::group(GroupKind::Tuple, tensor);
            }
            "functools.partial" => return first,
            "copy.copy" | "copy.deepcopy" => return first,
            "itertools.cycle"
            | "tqdm.tqdm"
            | "tqdm.auto.tqdm"
            | "tqdm.notebook.tqdm"
            | "rich.progress.track" => {
                return first;
            }
            "collections.deque" => {
                let is_bounded = call.arguments.find_keyword("maxlen").is_some() || arguments.len() > 1;
                let element = self.element_of(&first);
                return Value::Group(Arc::new(Group::new(GroupKind::List, element, Vec::new(), is_bounded)));
            }
            "collections.defaultdict" => {
                let element = match call.arguments.args.first() {
                    Some(Expr::Name(it)) if it.id.as_str() == "list" => {
                        Value::group(GroupKind::List, Value::Unknown)
                    }
                    Some(Expr::Name(it)) if matches!(it.id.as_str(), "int" | "float") => Value::Plain,
                    _ => Value::Unknown,
                };
                return Value::group(GroupKind::Dict, element);
            }
            "collections.OrderedDict" | "collections.Counter" => {
                let element = self.element_of(&first);
                return Value::group(GroupKind::Dict, element);
            }
            // The compiled, wrapped or placed module is that module.
            "torch.compile"
            | "torch.jit.script"
            | "torch.jit.trace"
            | "torch.nn.DataParallel"
            | "torch.nn.parallel.DataParallel"
            | "torch.nn.parallel.DistributedDataParallel"
            | "torch.distributed.fsdp.FullyShardedDataParallel"
                if !first.is_unknown() =>
            {
                return first;
            }
            "torch.utils.checkpoint.checkpoint" => {
                return match first {
                    Value::Object(class) => self.called_object(&class, call, &arguments[1..]),
                    _ => self.computed(Graph::Likely, Size::Unknown, &inputs),
                };
            }
            _ => {}
        }
        match catalogue::result_of(path, call) {
            catalogue::Known::Value(value) => value,
            catalogue::Known::LikeInputs(size) => {
                let graph = arguments.iter().map(graph_of).max().unwrap_or(Graph::Unknown);
                self.computed(graph, size, &inputs)
            }
            catalogue::Known::Loss(size) => {
                let graph = arguments.iter().map(graph_of).max().unwrap_or(Graph::Unknown).max(Graph::Likely);
                self.computed(graph, size, &inputs)
            }
            catalogue::Known::Nothing => Value::Unknown,
        }
    }

    fn method(
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
                self.group_method(group, name)
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

    fn group_method(&mut self, group: &Arc<Group>, name: &str) -> Value {
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

    /// A backward pass from `root`.
    fn backward(&mut self, root: &Value, call: &'a ast::ExprCall) {
        let function = self.frame().function;
        self.facts.functions[function.0 as usize].has_backward = true;
        let keeps =
            |name| call.arguments.find_keyword(name).is_some_and(|it| bool_literal(&it.value) == Some(true));
        if !keeps("retain_graph") && !keeps("create_graph") {
            self.release(root);
            if root.tensor_within().is_none_or(|it| it.nodes.is_empty()) {
                self.facts.functions[function.0 as usize].has_unknown_backward = true;
            }
        }
    }

    fn release(&mut self, root: &Value) {
        if let Value::Group(group) = root {
            for part in group.parts.iter().chain([&group.element]) {
                if let Some(tensor) = part.tensor_within() {
                    self.facts.tape.release(&tensor.nodes);
                }
            }
        } else if let Some(tensor) = root.tensor_within() {
            self.facts.tape.release(&tensor.nodes);
        }
    }
}

/// Whether a call has `name=True`.
fn is_true(call: &ast::ExprCall, name: &str) -> bool {
    call.arguments.find_keyword(name).is_some_and(|it| bool_literal(&it.value) == Some(true))
}
