//! What expressions are.

use super::{
    ANCESTORS, DEPTH, Flow, catalogue,
    value::{Class, Graph, GroupKind, Place, Size, Tensor, Value},
};
use crate::{
    names::LoopId,
    syntax::ast::{self, Expr},
};

impl<'a> Flow<'a, '_, '_> {
    /// What `expr` is. Calls and what they keep are written down on the way.
    pub(super) fn value(&mut self, expr: &'a Expr) -> Value {
        if self.depth >= DEPTH {
            return Value::Unknown;
        }
        self.depth += 1;
        let value = self.value_of(expr);
        self.depth -= 1;
        value
    }

    fn value_of(&mut self, expr: &'a Expr) -> Value {
        match expr {
            Expr::Name(it) => self.read(it.id.as_str()),
            Expr::Attribute(it) => self.attribute(expr, it),
            Expr::Call(it) => self.call(it),
            Expr::Subscript(it) => self.item(it),
            Expr::BinOp(it) => {
                let left = self.value(&it.left);
                let right = self.value(&it.right);
                if it.op == ast::Operator::MatMult && !left.is_unknown() {
                    let graph = graph_of(&left).max(graph_of(&right));
                    return self.computed(graph, Size::Array, &[&left, &right]);
                }
                self.arithmetic(it.op, &left, &right)
            }
            Expr::UnaryOp(it) => match (it.op, self.value(&it.operand)) {
                (ast::UnaryOp::Not, _) => Value::Plain,
                (_, value) => value,
            },
            Expr::BoolOp(it) => {
                let values: Vec<_> = it.values.iter().map(|it| self.value(it)).collect();
                values.into_iter().reduce(|a, b| a.join(&b)).unwrap_or_default()
            }
            Expr::Compare(it) => {
                let mut is_tensor = matches!(self.value(&it.left), Value::Tensor(_));
                for other in &it.comparators {
                    is_tensor |= matches!(self.value(other), Value::Tensor(_));
                }
                let is_test = it.ops.iter().any(|op| {
                    matches!(op, ast::CmpOp::Is | ast::CmpOp::IsNot | ast::CmpOp::In | ast::CmpOp::NotIn)
                });
                if is_tensor && !is_test { Value::Tensor(Tensor::data()) } else { Value::Plain }
            }
            Expr::If(it) => {
                self.value(&it.test);
                let body = self.value(&it.body);
                let orelse = self.value(&it.orelse);
                body.join(&orelse)
            }
            Expr::Named(it) => {
                let value = self.value(&it.value);
                self.store(&it.target, &it.value, value.clone());
                value
            }
            Expr::Lambda(it) => match self.names.function_at(it.range) {
                Some(id) => {
                    if !self.quiet {
                        self.follow_function(id, &[]);
                    }
                    Value::Function(self.file, id)
                }
                None => Value::Unknown,
            },
            Expr::List(it) => self.written_out(GroupKind::List, &it.elts),
            Expr::Tuple(it) => self.written_out(GroupKind::Tuple, &it.elts),
            Expr::Set(it) => self.written_out(GroupKind::Set, &it.elts),
            Expr::Dict(it) => {
                let mut element = Value::Unknown;
                let mut is_first = true;
                for item in &it.items {
                    if let Some(key) = &item.key {
                        self.value(key);
                    }
                    let value = self.value(&item.value);
                    let value = match (&item.key, value) {
                        (None, Value::Group(group)) => group.element.clone(),
                        (_, value) => value,
                    };
                    element = if is_first { value } else { join_parts(&element, &value) };
                    is_first = false;
                }
                Value::group(GroupKind::Dict, element)
            }
            Expr::ListComp(it) => self.comprehension(GroupKind::List, &it.generators, None, &it.elt),
            Expr::SetComp(it) => self.comprehension(GroupKind::Set, &it.generators, None, &it.elt),
            Expr::Generator(it) => self.comprehension(GroupKind::Iterator, &it.generators, None, &it.elt),
            Expr::DictComp(it) => {
                self.comprehension(GroupKind::Dict, &it.generators, it.key.as_deref(), &it.value)
            }
            Expr::Await(it) => self.value(&it.value),
            Expr::Yield(it) => {
                if let Some(value) = &it.value {
                    let value = self.value(value);
                    self.frame().returns.get_or_insert(value);
                }
                Value::Unknown
            }
            Expr::YieldFrom(it) => {
                self.value(&it.value);
                Value::Unknown
            }
            Expr::Starred(it) => {
                let value = self.value(&it.value);
                self.element_of(&value)
            }
            Expr::FString(it) => {
                for element in it.value.elements() {
                    if let ast::InterpolatedStringElement::Interpolation(inner) = element {
                        self.value(&inner.expression);
                    }
                }
                Value::Plain
            }
            Expr::StringLiteral(_)
            | Expr::BytesLiteral(_)
            | Expr::NumberLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::NoneLiteral(_)
            | Expr::EllipsisLiteral(_) => Value::Plain,
            _ => Value::Unknown,
        }
    }

    fn written_out(&mut self, kind: GroupKind, elements: &'a [Expr]) -> Value {
        // Long literals are data; what their first elements are is enough.
        let has_star = elements.iter().any(Expr::is_starred_expr);
        let parts: Vec<Value> = elements.iter().take(64).map(|it| self.value(it)).collect();
        if elements.is_empty() || elements.len() > 64 || has_star {
            let element = parts.into_iter().reduce(|a, b| a.join(&b)).unwrap_or_default();
            return Value::group(kind, element);
        }
        let mut group = Value::written_out(kind, parts);
        if let Value::Group(it) = &mut group
            && let Some(it) = std::sync::Arc::get_mut(it)
        {
            it.element = it.parts.iter().cloned().reduce(|a, b| join_parts(&a, &b)).unwrap_or_default();
        }
        group
    }

    fn attribute(&mut self, expr: &'a Expr, it: &'a ast::ExprAttribute) -> Value {
        let scope = self.frame().scope;
        if let Some(path) = self.names.path(scope, expr) {
            let found = self.look_up(&path);
            return if found.is_unknown() { catalogue::constant(&path) } else { found };
        }
        let object = self.value(&it.value);
        self.attribute_of(&object, it.attr.as_str())
    }

    /// What an attribute of a value is.
    pub(super) fn attribute_of(&mut self, object: &Value, name: &str) -> Value {
        match object {
            Value::Tensor(tensor) => match name {
                "shape" | "dtype" | "device" | "ndim" | "requires_grad" | "is_cuda" | "layout" | "name"
                | "itemsize" | "nbytes" | "is_leaf" => Value::Plain,
                "data" | "grad" => {
                    Value::Tensor(Tensor { graph: Graph::Detached, nodes: value_nodes(), ..tensor.clone() })
                }
                "indices" => Value::Tensor(Tensor { size: Size::Indices, ..Tensor::data() }),
                "loss" => Value::Tensor(Tensor { size: Size::Scalar, ..tensor.clone() }),
                // Of the outputs of Hugging Face's models: a cache object, and tuples.
                "grad_fn" | "_grad_fn" | "past_key_values" => Value::Unknown,
                // Methods that are not called here.
                "mean" | "sum" | "item" | "detach" | "cpu" | "cuda" | "to" | "backward" | "max" | "min"
                | "norm" | "tolist" | "numpy" | "clone" | "size" | "dim" | "numel" | "view" | "reshape" => {
                    Value::Unknown
                }
                "hidden_states"
                | "attentions"
                | "cross_attentions"
                | "decoder_hidden_states"
                | "decoder_attentions" => Value::group(GroupKind::Tuple, object.clone()),
                _ => object.clone(),
            },
            // `outputs.logits`
            Value::Group(group) if group.kind == GroupKind::Dict => self.attribute_of(&group.element, name),
            Value::Object(class) => {
                if let Class::Project(file, id) = class
                    && *file == self.file
                    && let Some(value) = self.own_attribute(*id, name)
                {
                    return value;
                }
                let found = self.project.attribute(class, name);
                if !found.is_unknown() {
                    return found;
                }
                if matches!(name, "weight" | "bias") && self.project.is_module(class) {
                    return Value::Tensor(Tensor {
                        graph: Graph::Attached,
                        size: Size::Array,
                        ..Tensor::data()
                    });
                }
                Value::Unknown
            }
            Value::Type(Class::Project(file, id)) if *file == self.file => {
                self.own_attribute(*id, name).unwrap_or_default()
            }
            _ => Value::Unknown,
        }
    }

    /// What an attribute of a class of this file is: assigned somewhere, or a method, its own or that of a base in this file.
    fn own_attribute(&mut self, class: crate::names::ClassId, name: &str) -> Option<Value> {
        let mut waiting = vec![class];
        let mut seen = Vec::new();
        while let Some(id) = waiting.pop() {
            if seen.contains(&id) || seen.len() > ANCESTORS {
                continue;
            }
            seen.push(id);
            if let Some(value) = self.facts.attributes.get(&(id, name)) {
                return Some(value.clone());
            }
            if let Some(method) = self.names.class(id).methods.get(name) {
                let is_property = self.names.function(*method).node.decorators().iter().any(|it| {
                    matches!(&it.expression, Expr::Name(name) if matches!(name.id.as_str(), "property" | "cached_property"))
                });
                return Some(if is_property { Value::Unknown } else { Value::Function(self.file, *method) });
            }
            waiting.extend(self.names.local_bases(id));
        }
        None
    }

    fn item(&mut self, it: &'a ast::ExprSubscript) -> Value {
        let object = self.value(&it.value);
        let index = self.value(&it.slice);
        match object {
            Value::Tensor(tensor) => {
                let is_basic = is_basic_index(&it.slice) && !matches!(index, Value::Tensor(_));
                Value::Tensor(Tensor { is_view: is_basic, size: Size::Unknown, ..tensor })
            }
            Value::Group(group) => {
                if matches!(&*it.slice, Expr::Slice(_)) {
                    return Value::Group(group);
                }
                let written = crate::syntax::int_literal(&it.slice).and_then(|index| {
                    let length = group.parts.len() as i64;
                    let index = if index < 0 { index + length } else { index };
                    usize::try_from(index).ok().and_then(|it| group.parts.get(it).cloned())
                });
                written.unwrap_or_else(|| group.element.clone())
            }
            object @ Value::Object(_) => self.element_of(&object),
            _ => Value::Unknown,
        }
    }

    fn comprehension(
        &mut self,
        kind: GroupKind,
        generators: &'a [ast::Comprehension],
        key: Option<&'a Expr>,
        element: &'a Expr,
    ) -> Value {
        let outer: Option<LoopId> = self.frame().in_loop;
        let mut hidden: Vec<(&'a str, Option<Value>)> = Vec::new();
        for generator in generators {
            let iterable = self.value(&generator.iter);
            if let Some(id) = self.names.loop_at(generator.range) {
                self.frame().in_loop = Some(id);
            }
            for name in target_names(&generator.target) {
                hidden.push((name, self.frame().values.get(name).cloned()));
            }
            let item = self.element_of(&iterable);
            self.bind(&generator.target, &generator.iter, item);
            for condition in &generator.ifs {
                self.value(condition);
            }
        }
        if let Some(key) = key {
            self.value(key);
        }
        let value = self.value(element);
        let frame = self.frame();
        frame.in_loop = outer;
        // Its names are its own.
        for (name, before) in hidden.into_iter().rev() {
            match before {
                Some(value) => frame.values.insert(name, value),
                None => frame.values.remove(name),
            };
        }
        Value::group(kind, value)
    }
}

fn value_nodes() -> super::value::Nodes {
    super::value::Nodes::new()
}

/// What is known of parts of different kinds: the tensor among them, since that is what holds memory.
fn join_parts(a: &Value, b: &Value) -> Value {
    match (a, b) {
        (Value::Unknown, _) | (_, Value::Unknown) => match (a.tensor_within(), b.tensor_within()) {
            (Some(_), None) => a.clone(),
            (None, Some(_)) => b.clone(),
            _ => Value::Unknown,
        },
        _ => a.join(b),
    }
}

/// The graph of a value.
pub(super) fn graph_of(value: &Value) -> Graph {
    match value {
        Value::Tensor(tensor) => tensor.graph,
        Value::Plain => Graph::Detached,
        Value::Group(group) => group.element.tensor_within().map_or(Graph::Detached, |it| it.graph),
        _ => Graph::Unknown,
    }
}

/// Where a tensor lies on a device that is written out: `"cpu"`, `torch.device("cuda:0")`.
pub(super) fn place_of(device: Option<&Expr>) -> Place {
    let name = match device {
        Some(Expr::Call(call)) => match &*call.func {
            Expr::Attribute(it) if it.attr.as_str() == "device" => call.arguments.args.first(),
            _ => None,
        },
        other => other,
    };
    match name.and_then(crate::syntax::text_literal) {
        Some("cpu") => Place::Host,
        Some(text) if text.starts_with("cuda") => Place::Device,
        _ => Place::Unknown,
    }
}

/// Whether indexing like this gives a window rather than a copy: numbers and slices.
fn is_basic_index(slice: &Expr) -> bool {
    match slice {
        Expr::Slice(_) | Expr::EllipsisLiteral(_) | Expr::NoneLiteral(_) => true,
        Expr::Tuple(it) => it.elts.iter().all(is_basic_index),
        other => crate::syntax::int_literal(other).is_some(),
    }
}

fn target_names(target: &Expr) -> Vec<&str> {
    match target {
        Expr::Name(it) => vec![it.id.as_str()],
        Expr::Tuple(it) => it.elts.iter().flat_map(target_names).collect(),
        Expr::List(it) => it.elts.iter().flat_map(target_names).collect(),
        Expr::Starred(it) => target_names(&it.value),
        _ => Vec::new(),
    }
}
