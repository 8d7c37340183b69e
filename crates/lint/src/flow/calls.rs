//! What calls give, and what they do.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{
    ANCESTORS, Flow, Progress, catalogue,
    expressions::graph_of,
    value::{Class, FileId, Graph, Group, GroupKind, Size, Tensor, Value},
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
            let arguments: Box<[Value]> = if arguments.iter().all(Value::is_unknown) {
                Box::default()
            } else {
                arguments.into_vec().into_boxed_slice()
            };
            self.facts.calls_by_name.entry(name).or_default().push(index);
            self.facts.calls.push(Call { expr: call, callee, arguments, result: result.clone(), at });
        }
        result
    }

    fn callee(&mut self, func: &'a Expr) -> Callee<'a> {
        let scope = self.frame().scope;
        if let Some(path) = self.names.path(scope, func) {
            return match self.look_up(&path) {
                Value::Function(file, id) => Callee::Function(file, id),
                Value::Type(class) => Callee::Class(class),
                Value::Object(class) => Callee::Object(Value::Object(class)),
                _ => Callee::External(Box::new(path)),
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
                let path = path.dotted();
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
    pub(super) fn returned(
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
    pub(super) fn called_object(
        &mut self,
        class: &Class,
        call: &'a ast::ExprCall,
        arguments: &[Value],
    ) -> Value {
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
            // The outputs of a model of Hugging Face are a dict, with attributes, too.
            if path.starts_with("transformers.") {
                return Value::group(GroupKind::Dict, tensor);
            }
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
                Value::Plain | Value::Object(_) => returns,
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
    pub(super) fn project_method(&mut self, class: &Class, name: &str) -> Option<(FileId, FunctionId)> {
        let Class::Project(file, id) = class else { return None };
        if *file == self.file {
            let mut waiting = vec![*id];
            let mut seen = Vec::new();
            while let Some(id) = waiting.pop() {
                if seen.contains(&id) || seen.len() > ANCESTORS {
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
            "functools.partial"
            | "copy.copy"
            | "copy.deepcopy"
            | "itertools.cycle"
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
            catalogue::Known::Several => {
                let graph = arguments.iter().map(graph_of).max().unwrap_or(Graph::Unknown);
                Value::group(GroupKind::Tuple, self.computed(graph, Size::Unknown, &inputs))
            }
            catalogue::Known::Loss(size) => {
                let graph = arguments.iter().map(graph_of).max().unwrap_or(Graph::Unknown).max(Graph::Likely);
                self.computed(graph, size, &inputs)
            }
            catalogue::Known::Nothing => Value::Unknown,
        }
    }

    /// A backward pass from `root`.
    pub(super) fn backward(&mut self, root: &Value, call: &'a ast::ExprCall) {
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
