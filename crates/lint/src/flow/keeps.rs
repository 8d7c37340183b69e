//! Where values are put, and whether that place outlives the one that made them.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{
    Flow,
    value::{Class, Graph, GroupKind, Size, Value},
};
use crate::{
    facts::{Assignment, Branch, How, Keep, Root},
    names::{ClassId, Definition, LoopId, ScopeId, ScopeKind, Usage},
    syntax::{
        Ranged, TextRange, TextSize,
        ast::{self, Expr},
        is_same_place, mentions,
    },
};

/// A name that is mentioned more often than this is one of generated code, about which nothing is said.
const MANY: usize = 2000;

/// With more definitions than that, it is not asked which of them is the first.
const FEW_DEFINITIONS: usize = 4;

/// So many assignments are looked back at for the first.
const RECENT: usize = 32;

/// How far the place that something is put into reaches.
struct Reach<'a> {
    root: Root<'a>,
    outlived_loop: Option<LoopId>,
    outlives_call: bool,
}

impl<'a> Flow<'a, '_, '_> {
    /// `target = expr`, where `expr` is `value`.
    pub(super) fn store(&mut self, target: &'a Expr, expr: &'a Expr, value: Value) {
        match target {
            Expr::Tuple(_) | Expr::List(_) | Expr::Starred(_) => self.bind(target, expr, value),
            _ => self.bind_and_keep(target, expr, value),
        }
    }

    /// Like `store`, for a part of what `expr` is.
    pub(super) fn bind_and_keep(&mut self, target: &'a Expr, expr: &'a Expr, value: Value) {
        match target {
            Expr::Name(name) => {
                self.note_chain(target, name.id.as_str(), expr, &value);
                self.bind(target, expr, value);
            }
            Expr::Attribute(it) => {
                let object = self.value(&it.value);
                let before = self.attribute_of(&object, it.attr.as_str());
                let how = match self_reference(target, expr) {
                    Some(how) => how,
                    None => How::SetAttribute,
                };
                self.note_keep(how, target.range(), target, None, expr, &value, before);
                if !self.quiet {
                    let at = self.here();
                    self.facts.assignments.push(Assignment { target, expr, value: value.clone(), at });
                }
                if let Value::Object(Class::Project(file, class)) = object
                    && file == self.file
                {
                    self.assign_attribute(class, it.attr.as_str(), &value);
                }
            }
            Expr::Subscript(it) => {
                let before = self.value(&it.value);
                self.value(&it.slice);
                let how = match self_reference(target, expr) {
                    Some(how) => how,
                    None => How::SetItem,
                };
                self.note_keep(how, target.range(), &it.value, Some(&it.slice), expr, &value, before);
                self.put_into(&it.value, &value);
            }
            other => self.bind(other, expr, value),
        }
    }

    /// `target += value`
    pub(super) fn augment(&mut self, it: &'a ast::StmtAugAssign) {
        let value = self.value(&it.value);
        let before = match &*it.target {
            Expr::Name(name) => self.read(name.id.as_str()),
            Expr::Attribute(attribute) => {
                let object = self.value(&attribute.value);
                self.attribute_of(&object, attribute.attr.as_str())
            }
            Expr::Subscript(item) => {
                let group = self.value(&item.value);
                self.value(&item.slice);
                self.element_of(&group)
            }
            _ => Value::Unknown,
        };
        let is_group = matches!(before, Value::Group(_)) || matches!(value, Value::Group(_));
        let how = if is_group { How::Extend } else { How::Accumulate };
        let (place, key) = match &*it.target {
            Expr::Subscript(item) => (&*item.value, Some(&*item.slice)),
            other => (other, None),
        };
        self.note_keep(how, it.range, place, key, &it.value, &value, before.clone());
        let after = if is_group { before.join(&value) } else { self.arithmetic(it.op, &before, &value) };
        match &*it.target {
            Expr::Name(name) => self.assign(name.id.as_str(), after),
            Expr::Attribute(attribute) => {
                let object = self.value(&attribute.value);
                if let Value::Object(Class::Project(file, class)) = object
                    && file == self.file
                {
                    self.assign_attribute(class, attribute.attr.as_str(), &after);
                }
            }
            Expr::Subscript(item) => self.put_into(&item.value, &after),
            _ => {}
        }
    }

    /// A method that puts something into its object: `xs.append(x)`.
    pub(super) fn note_method(
        &mut self,
        call: &'a ast::ExprCall,
        target: &'a Expr,
        name: &str,
        before: &Value,
        arguments: &[Value],
    ) {
        let args = &call.arguments.args;
        let (how, kept, key) = match (name, args.len()) {
            // Not the `put` of a queue: whoever gets from it lets go of what is in it.
            ("append" | "appendleft" | "add" | "push", 1) => (How::Append, 0, None),
            ("insert", 2) => (How::Append, 1, None),
            ("extend" | "extendleft", 1) => (How::Extend, 0, None),
            ("setdefault", 2) => (How::SetItem, 1, Some(&args[0])),
            ("update", 1) if call.arguments.keywords.is_empty() => (How::Update, 0, None),
            _ => return,
        };
        if !self.may_be_container(target, before, name) {
            return;
        }
        let (Some(expr), Some(value)) = (args.get(kept), arguments.get(kept)) else { return };
        self.note_keep(how, call.range(), target, key, expr, value, before.clone());
        let element = match how {
            How::Extend | How::Update => self.element_of(value),
            _ => value.clone(),
        };
        self.put_into(target, &element);
    }

    /// Whether an object is one that keeps what is put into it by a method of this name. Meters, metrics and balancers of losses have an
    /// `add`, `push` or `update`, too, and do with what they get as they like. So of an object that is not known only the methods of lists
    /// are believed, and these not of what a call gave.
    fn may_be_container(&self, target: &Expr, before: &Value, method: &str) -> bool {
        match before {
            Value::Group(_) => true,
            Value::Object(Class::Project(file, class)) if *file == self.file => {
                self.is_container_class(*class)
            }
            Value::Unknown => {
                matches!(method, "append" | "appendleft" | "extend" | "extendleft" | "insert")
                    && !self.is_of_unknown_kind(target)
            }
            _ => false,
        }
    }

    /// `class History(list)`
    fn is_container_class(&self, class: ClassId) -> bool {
        let bases = self.names.class(class).node.arguments.iter().flat_map(|it| it.args.iter());
        let containers = bases.map(first_of_subscript).filter_map(last_name);
        containers.into_iter().any(|it| {
            matches!(
                it,
                "list"
                    | "dict"
                    | "set"
                    | "deque"
                    | "OrderedDict"
                    | "defaultdict"
                    | "UserList"
                    | "UserDict"
                    | "List"
                    | "Dict"
            )
        })
    }

    /// Whether a name is given what a call gives (`tracker = Tracker()`, `make_tracker()`), or is annotated with a class; what gives containers
    /// is known and does not come here.
    fn is_of_unknown_kind(&self, target: &Expr) -> bool {
        let Expr::Name(name) = target else { return false };
        let scope = self.frames.last().map_or(ScopeId::MODULE, |it| it.scope);
        let definitions = self.names.name(scope, name.id.as_str()).map_or(&[][..], |it| &it.definitions);
        definitions.iter().any(|it| match it {
            Definition::Value(value, _) => may_be_of_call(value),
            Definition::Parameter(it) => it.annotation.as_deref().is_some_and(is_other_class),
            _ => false,
        })
    }

    /// What the elements of a named list or dict are, now that this was put into it.
    fn put_into(&mut self, target: &'a Expr, value: &Value) {
        let group = self.value(target);
        let Value::Group(group) = group else { return };
        let element = if group.element.is_unknown() { value.clone() } else { group.element.join(value) };
        let grown = Value::Group(Arc::new(group.with(element, Vec::new())));
        match target {
            Expr::Name(name) => self.assign(name.id.as_str(), grown),
            Expr::Attribute(it) => {
                let object = self.value(&it.value);
                if let Value::Object(Class::Project(file, class)) = object
                    && file == self.file
                {
                    self.assign_attribute(class, it.attr.as_str(), &grown);
                }
            }
            // `stats[k].append(x)`: the elements of `stats` are such lists.
            Expr::Subscript(it) => self.put_into_element(&it.value, &grown),
            _ => {}
        }
    }

    fn put_into_element(&mut self, target: &'a Expr, element: &Value) {
        if let Expr::Name(name) = target
            && let Value::Group(group) = self.read(name.id.as_str())
            && group.kind == GroupKind::Dict
        {
            let grown = group.with(element.clone(), Vec::new());
            self.assign(name.id.as_str(), Value::Group(Arc::new(grown)));
        }
    }

    /// Notes `name = expr` where `expr` goes on from what the name held in the round before.
    fn note_chain(&mut self, target: &'a Expr, name: &'a str, expr: &'a Expr, value: &Value) {
        if self.quiet {
            return;
        }
        let expr = way_on(target, expr);
        let reference = self_reference(target, expr);
        let innermost = self.frame().in_loop;
        let mut carried = None;
        if let Some(tensor) = value.tensor_within() {
            let loops: Vec<LoopId> = self.names.loops_from(innermost).collect();
            for id in loops {
                if let Some(node) = self.frame().carried.get(&(id, name)).copied()
                    && self.facts.tape.reach_round_before(&tensor.nodes, node, id)
                {
                    carried = Some(node);
                }
            }
        }
        let how = match (reference, carried) {
            (Some(How::Chain) | None, None) => return,
            (Some(how), _) => how,
            (None, Some(_)) => How::Chain,
        };
        let before = self.read(name);
        let kept = match (how, expr) {
            (How::Accumulate, Expr::BinOp(it)) if mentions(&it.left, &|it| is_same_place(it, target)) => {
                &*it.right
            }
            (How::Accumulate, Expr::BinOp(it)) => &*it.left,
            _ => expr,
        };
        let value = if std::ptr::eq(kept, expr) {
            value.clone()
        } else {
            let quiet = std::mem::replace(&mut self.quiet, true);
            let value = self.value(kept);
            self.quiet = quiet;
            value
        };
        self.note(how, expr.range(), target, None, kept, &value, before, carried);
    }

    #[expect(clippy::too_many_arguments)]
    fn note_keep(
        &mut self,
        how: How,
        range: TextRange,
        target: &'a Expr,
        key: Option<&'a Expr>,
        kept: &'a Expr,
        value: &Value,
        before: Value,
    ) {
        self.note(how, range, target, key, kept, value, before, None);
    }

    #[expect(clippy::too_many_arguments)]
    fn note(
        &mut self,
        how: How,
        range: TextRange,
        target: &'a Expr,
        key: Option<&'a Expr>,
        kept: &'a Expr,
        value: &Value,
        before: Value,
        carried: Option<u32>,
    ) {
        if self.quiet {
            return;
        }
        let reach = self.reach(target);
        if reach.outlived_loop.is_none() && !reach.outlives_call {
            return;
        }
        let at = self.here();
        self.facts.keeps.push(Keep {
            how,
            range,
            target,
            root: reach.root,
            key,
            kept,
            value: value.clone(),
            before,
            carried,
            outlived_loop: reach.outlived_loop,
            outlives_call: reach.outlives_call,
            at,
        });
    }

    fn reach(&mut self, target: &'a Expr) -> Reach<'a> {
        let nowhere = Reach { root: Root::Other, outlived_loop: None, outlives_call: false };
        match target {
            Expr::Name(name) => self.reach_of_name(name.id.as_str()),
            Expr::Subscript(it) => self.reach(&it.value),
            Expr::Call(call) => match &*call.func {
                // `stats.setdefault(key, []).append(x)`
                Expr::Attribute(it) if matches!(it.attr.as_str(), "setdefault" | "get") => {
                    self.reach(&it.value)
                }
                _ => nowhere,
            },
            Expr::Attribute(it) => {
                let attribute = it.attr.as_str();
                let object = self.value(&it.value);
                let base = self.reach(&it.value);
                let is_receiver =
                    matches!(&*it.value, Expr::Name(name) if self.is_receiver(name.id.as_str()));
                let root = match object {
                    Value::Object(Class::Project(file, class)) if file == self.file => {
                        Root::SelfAttribute(class, attribute)
                    }
                    Value::Type(Class::Project(file, class)) if file == self.file => {
                        Root::SelfAttribute(class, attribute)
                    }
                    _ => Root::Attribute(attribute),
                };
                let outlived_loop = if is_receiver {
                    self.loop_without_reset(|range| {
                        self.names.attributes.get(attribute).is_some_and(|uses| {
                            uses.iter().any(|it| {
                                matches!(it.usage, Usage::Stored) && range.contains_range(it.expr.range())
                            })
                        })
                    })
                } else {
                    base.outlived_loop
                };
                Reach { root, outlived_loop, outlives_call: is_receiver || base.outlives_call }
            }
            _ => nowhere,
        }
    }

    fn is_receiver(&self, name: &str) -> bool {
        self.frames.last().is_some_and(|frame| {
            self.names
                .functions_from(frame.function)
                .any(|id| self.names.function(id).receiver() == Some(name))
        })
    }

    fn reach_of_name(&mut self, name: &'a str) -> Reach<'a> {
        let nowhere = Reach { root: Root::Other, outlived_loop: None, outlives_call: false };
        let frame = self.frame();
        let (scope, function) = (frame.scope, frame.function);
        let Some(owner) = self.names.scope_of(scope, name) else { return nowhere };
        let owner_scope = self.names.scope(owner);
        if matches!(owner_scope.kind, ScopeKind::Class(_)) {
            return nowhere;
        }
        let root = Root::Name(owner_scope.function, name);
        let Some(entry) = owner_scope.names.get(name) else { return nowhere };
        // No hand wrote this; each of the keeps would be compared with each other.
        if entry.definitions.len() + entry.uses.len() > MANY {
            self.facts.not_followed.insert(name);
            return nowhere;
        }
        let is_own = owner_scope.function == function;
        let is_parameter = entry.definitions.iter().all(|it| matches!(it, Definition::Parameter(_)));
        let is_import = entry.definitions.iter().any(|it| matches!(it, Definition::Import(_)));
        let statement = self.frame().statement.range();
        let names = self.names;
        // What the present statement does, and `total += x`, do not begin anew.
        let augmented: FxHashSet<TextSize> = entry
            .uses
            .iter()
            .filter(|it| matches!(it.usage, Usage::Augmented))
            .map(|it| it.expr.start())
            .collect();
        // `if total is None: total = loss` happens once.
        let first_values: FxHashSet<TextSize> = if entry.definitions.len() <= FEW_DEFINITIONS {
            let recent = self.facts.assignments.iter().rev().take(RECENT);
            recent.filter(|it| is_first_value(it, name)).map(|it| it.expr.start()).collect()
        } else {
            FxHashSet::default()
        };
        let is_augmented = |at: TextRange| augmented.contains(&at.start());
        let begins_anew = |range: TextRange, it: &Definition<'_>| match it {
            Definition::Value(expr, _) => {
                let at = expr.range();
                range.contains_range(at)
                    && !statement.contains_range(at)
                    && !is_update_of(expr, name)
                    && !first_values.contains(&at.start())
            }
            Definition::Other(at) => {
                range.contains_range(*at) && !statement.contains_range(*at) && !is_augmented(*at)
            }
            Definition::Loop(id) => range.contains_range(names.the_loop(*id).node.range()),
            _ => false,
        };
        let outlived_loop = self
            .loop_without_reset(|range| is_own && entry.definitions.iter().any(|it| begins_anew(range, it)));
        Reach { root, outlived_loop, outlives_call: !is_own || (is_parameter && !is_import) }
    }

    /// The outermost loop around this place in whose rounds nothing resets the target.
    fn loop_without_reset(&self, is_reset_in: impl Fn(TextRange) -> bool) -> Option<LoopId> {
        let innermost = self.frames.last().and_then(|it| it.in_loop);
        let mut found = None;
        for id in self.names.loops_from(innermost) {
            if is_reset_in(self.names.the_loop(id).node.range()) {
                break;
            }
            found = Some(id);
        }
        found
    }

    /// What arithmetic gives.
    pub(super) fn arithmetic(&mut self, op: ast::Operator, left: &Value, right: &Value) -> Value {
        match (left, right) {
            (Value::Tensor(a), Value::Tensor(b)) => {
                let graph = a.graph.max(b.graph);
                let size = match (a.size, b.size) {
                    (Size::Scalar, other) | (other, Size::Scalar) => other,
                    (a, b) if a == b => a,
                    _ => Size::Unknown,
                };
                if matches!(op, ast::Operator::Add | ast::Operator::Sub) {
                    let Value::Tensor(mut sum) = left.join(right) else { return Value::Unknown };
                    sum.size = size;
                    sum.is_view = false;
                    return Value::Tensor(sum);
                }
                self.computed(graph, size, &[left, right])
            }
            (Value::Tensor(tensor), Value::Plain) | (Value::Plain, Value::Tensor(tensor)) => {
                let mut tensor = tensor.clone();
                tensor.is_view = false;
                Value::Tensor(tensor)
            }
            (Value::Tensor(tensor), Value::Unknown) | (Value::Unknown, Value::Tensor(tensor)) => {
                let graph = tensor.graph.max(Graph::Unknown);
                self.computed(graph, Size::Unknown, &[left, right])
            }
            (Value::Plain, Value::Plain) => Value::Plain,
            (Value::Group(a), Value::Group(b)) if a.kind == b.kind => left.join(right),
            (Value::Group(_), Value::Plain | Value::Unknown) if op == ast::Operator::Mult => left.clone(),
            _ => Value::Unknown,
        }
    }
}

/// `list` of `list[Tensor]`.
fn first_of_subscript(expr: &Expr) -> &Expr {
    match expr {
        Expr::Subscript(it) => &it.value,
        other => other,
    }
}

/// The last part of a dotted name.
fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(it) => Some(it.id.as_str()),
        Expr::Attribute(it) => Some(it.attr.as_str()),
        _ => None,
    }
}

/// Whether an expression is a call, or may be one: `given or Tracker()`.
fn may_be_of_call(expr: &Expr) -> bool {
    match expr {
        Expr::Call(_) => true,
        Expr::BoolOp(it) => it.values.iter().any(may_be_of_call),
        Expr::If(it) => may_be_of_call(&it.body) || may_be_of_call(&it.orelse),
        _ => false,
    }
}

/// Whether an annotation names a class that is no container.
fn is_other_class(annotation: &Expr) -> bool {
    const CONTAINERS: &[&str] = &[
        "List",
        "Deque",
        "Sequence",
        "MutableSequence",
        "Iterable",
        "Collection",
        "Any",
        "Optional",
        "Union",
        "Dict",
    ];
    let is_other = |it: &str| {
        let last = it.rsplit('.').next().unwrap_or(it);
        last.starts_with(|it: char| it.is_ascii_uppercase()) && !CONTAINERS.contains(&last)
    };
    match first_of_subscript(annotation) {
        Expr::StringLiteral(it) => is_other(it.value.to_str().split('[').next().unwrap_or_default()),
        other => last_name(other).is_some_and(is_other),
    }
}

/// Whether `expr`, given to `name`, is made from what the name held before.
fn is_update_of(expr: &Expr, name: &str) -> bool {
    mentions(expr, &|it| matches!(it, Expr::Name(it) if it.id.as_str() == name))
}

/// Whether an assignment gives a name its first value, under `if name is None`.
fn is_first_value(it: &Assignment<'_>, name: &str) -> bool {
    let is_name = |it: &Expr| matches!(it, Expr::Name(it) if it.id.as_str() == name);
    let Some(Branch::If(Expr::Compare(test))) = it.at.branch else { return false };
    is_name(it.target)
        && is_name(&test.left)
        && matches!(&*test.ops, [ast::CmpOp::Is])
        && matches!(&*test.comparators, [Expr::NoneLiteral(_)])
}

/// Of `total = loss if total is None else total + loss` the way that goes on from the target; else the expression itself.
fn way_on<'a>(target: &Expr, expr: &'a Expr) -> &'a Expr {
    let Expr::If(it) = expr else { return expr };
    let goes_on = |it: &&Expr| self_reference(target, it).is_some_and(|it| it != How::Chain);
    [&*it.orelse, &*it.body].into_iter().find(goes_on).unwrap_or(expr)
}

/// How `target = expr` goes on from the target itself, if it does.
fn self_reference(target: &Expr, expr: &Expr) -> Option<How> {
    match expr {
        Expr::BinOp(it) if matches!(it.op, ast::Operator::Add | ast::Operator::Sub) => {
            // `0.9 * average + 0.1 * loss` goes on from the average, too.
            let is_target = |side: &Expr| match side {
                Expr::BinOp(it) if it.op == ast::Operator::Mult && !target.is_subscript_expr() => {
                    is_same_place(&it.left, target) || is_same_place(&it.right, target)
                }
                side => is_same_place(side, target),
            };
            if is_target(&it.left) || is_target(&it.right) {
                return Some(How::Accumulate);
            }
        }
        Expr::Call(call) => {
            let name = match &*call.func {
                Expr::Attribute(it) => it.attr.as_str(),
                Expr::Name(it) => it.id.as_str(),
                _ => "",
            };
            if matches!(name, "cat" | "concat" | "concatenate" | "hstack" | "vstack" | "stack")
                && let Some(Expr::List(ast::ExprList { elts, .. }) | Expr::Tuple(ast::ExprTuple { elts, .. })) =
                    call.arguments.args.first()
                && elts.iter().any(|it| is_same_place(it, target))
            {
                return Some(How::Concatenate);
            }
        }
        _ => {}
    }
    mentions(expr, &|it| is_same_place(it, target)).then_some(How::Chain)
}
