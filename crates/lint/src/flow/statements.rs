//! Follows statements.

use super::{
    Flow,
    value::{Graph, GroupKind, Value},
};
use crate::{
    facts::{Assignment, Branch, Grad},
    flow::catalogue,
    names::{LoopId, LoopNode, ScopeKind},
    syntax::ast::{self, Expr, Stmt},
};

/// Names that changed in a branch, with what they held before it and after it.
type Changed<'a> = Vec<(&'a str, Option<Value>, Value)>;

impl<'a> Flow<'a, '_, '_> {
    /// Follows statements in order; tells whether what comes after them is never reached from their end.
    pub(super) fn follow_statements(&mut self, statements: &'a [Stmt]) -> bool {
        for statement in statements {
            let outer = std::mem::replace(&mut self.frame().statement, statement);
            let ends = self.follow_statement(statement);
            self.frame().statement = outer;
            if ends {
                return true;
            }
        }
        false
    }

    fn follow_statement(&mut self, statement: &'a Stmt) -> bool {
        match statement {
            Stmt::Expr(it) => {
                self.value(&it.value);
            }
            Stmt::Assign(it) => {
                let value = self.value(&it.value);
                for target in &it.targets {
                    self.store(target, &it.value, value.clone());
                }
            }
            Stmt::AnnAssign(it) => {
                if let Some(expr) = &it.value {
                    let value = self.value(expr);
                    self.store(&it.target, expr, value);
                }
            }
            Stmt::AugAssign(it) => self.augment(it),
            Stmt::Return(it) => {
                let value = it.value.as_deref().map_or(Value::Plain, |it| self.value(it));
                let frame = self.frame();
                frame.returns = Some(match frame.returns.take() {
                    Some(before) => before.join(&value),
                    None => value,
                });
                return true;
            }
            Stmt::Raise(it) => {
                for expr in it.exc.iter().chain(&it.cause) {
                    self.value(expr);
                }
                return true;
            }
            Stmt::Break(_) | Stmt::Continue(_) => return true,
            Stmt::If(it) => return self.follow_if(it),
            Stmt::For(it) => {
                let iterable = self.value(&it.iter);
                if let Some(id) = self.names.loop_at(it.range) {
                    self.follow_loop(id, &iterable);
                }
                self.follow_statements(&it.orelse);
            }
            Stmt::While(it) => {
                if let Some(id) = self.names.loop_at(it.range) {
                    self.follow_loop(id, &Value::Unknown);
                }
                self.follow_statements(&it.orelse);
            }
            Stmt::With(it) => return self.follow_with(it),
            Stmt::Try(it) => return self.follow_try(it),
            Stmt::Match(it) => {
                self.value(&it.subject);
                let branches: Vec<_> =
                    it.cases.iter().map(|case| (Branch::Case, case.body.as_slice())).collect();
                self.follow_branches(&branches, true);
            }
            Stmt::FunctionDef(it) => {
                for decorator in &it.decorator_list {
                    self.value(&decorator.expression);
                }
                for parameter in it.parameters.iter_non_variadic_params() {
                    if let Some(default) = parameter.default() {
                        self.value(default);
                    }
                }
                if let Some(id) = self.names.function_at(it.range) {
                    let is_method = matches!(
                        self.names
                            .scope(self.frames.last().map_or(crate::names::ScopeId::MODULE, |it| it.scope))
                            .kind,
                        ScopeKind::Class(_)
                    );
                    if !is_method {
                        self.assign(it.name.as_str(), Value::Function(self.file, id));
                    }
                }
            }
            Stmt::ClassDef(it) => self.follow_class(it),
            Stmt::Delete(it) => {
                for target in &it.targets {
                    match target {
                        Expr::Name(name) => self.assign(name.id.as_str(), Value::Plain),
                        other => {
                            self.value(other);
                        }
                    }
                }
            }
            Stmt::Assert(it) => {
                self.value(&it.test);
            }
            _ => {}
        }
        false
    }

    fn follow_class(&mut self, it: &'a ast::StmtClassDef) {
        for decorator in &it.decorator_list {
            self.value(&decorator.expression);
        }
        for argument in it.arguments.iter().flat_map(|it| it.args.iter()) {
            self.value(argument);
        }
        if let Some(id) = self.names.class_at(it.range) {
            let inner = self.names.class(id).scope;
            let outer = std::mem::replace(&mut self.frame().scope, inner);
            self.follow_statements(&it.body);
            self.frame().scope = outer;
            let class = super::value::Class::Project(self.file, id);
            self.assign(it.name.as_str(), Value::Type(class));
        }
    }

    fn follow_if(&mut self, it: &'a ast::StmtIf) -> bool {
        self.value(&it.test);
        let mut branches = vec![(Branch::If(&it.test), it.body.as_slice())];
        let mut has_else = false;
        for clause in &it.elif_else_clauses {
            if let Some(test) = &clause.test {
                self.value(test);
                branches.push((Branch::If(test), clause.body.as_slice()));
            } else {
                has_else = true;
                branches.push((Branch::If(&it.test), clause.body.as_slice()));
            }
        }
        // The main program, which is what runs.
        if is_main_guard(&it.test) {
            return branches.iter().any(|(_, body)| self.follow_statements(body));
        }
        self.follow_branches(&branches, !has_else)
    }

    /// Follows alternatives, of which one runs; none may, if `may_skip`. Tells whether none of them comes to its end.
    fn follow_branches(&mut self, branches: &[(Branch<'a>, &'a [Stmt])], may_skip: bool) -> bool {
        let mut outcomes: Vec<Changed<'a>> = Vec::new();
        if may_skip {
            outcomes.push(Vec::new());
        }
        for (branch, body) in branches {
            let (changed, ends) = self.follow_branch(*branch, body);
            if !ends {
                outcomes.push(changed);
            }
        }
        if outcomes.is_empty() {
            return true;
        }
        let mut names: Vec<&'a str> = outcomes.iter().flatten().map(|(name, ..)| *name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let before = self.frame().values.get(name).cloned();
            let joined = outcomes
                .iter()
                .filter_map(|changed| {
                    let after =
                        changed.iter().find(|(it, ..)| *it == name).map(|(_, _, value)| value.clone());
                    after.or_else(|| before.clone())
                })
                .reduce(|a, b| a.join(&b));
            if let Some(value) = joined {
                self.assign(name, value);
            }
        }
        false
    }

    /// Follows one alternative and takes back what it did to names; tells that, and whether it never comes to its end.
    fn follow_branch(&mut self, branch: Branch<'a>, body: &'a [Stmt]) -> (Changed<'a>, bool) {
        let frame = self.frame();
        let outer = frame.branch.replace(branch);
        let grad = frame.grad;
        frame.changes.push(Vec::new());
        let ends = self.follow_statements(body);
        let frame = self.frame();
        frame.branch = outer;
        frame.grad = grad;
        let changed = Self::take_changes(frame);
        for (name, before, _) in &changed {
            match before {
                Some(value) => frame.values.insert(name, value.clone()),
                None => frame.values.remove(name),
            };
        }
        (changed, ends)
    }

    /// The first value before and the last after, for each name that changed since the innermost branch began.
    fn take_changes(frame: &mut super::Frame<'a>) -> Changed<'a> {
        let mut changed: Changed<'a> = Vec::new();
        for (name, before) in frame.changes.pop().unwrap_or_default() {
            if !changed.iter().any(|(it, ..)| *it == name) {
                let after = frame.values.get(name).cloned().unwrap_or_default();
                changed.push((name, before, after));
            }
        }
        changed
    }

    /// Follows a loop twice; the first time only to learn what a round leaves to the next.
    pub(super) fn follow_loop(&mut self, id: LoopId, iterable: &Value) {
        let node = self.names.the_loop(id).node;
        let outer_loop = self.frame().in_loop.replace(id);
        let outer_branch = self.frame().branch.take();
        let nesting = self.names.loops_from(Some(id)).count();
        if nesting <= 3 {
            let quiet = std::mem::replace(&mut self.quiet, true);
            let changed = self.follow_round(node, iterable);
            self.quiet = quiet;
            for (name, before, after) in changed {
                self.carry(id, name, before.as_ref(), &after);
            }
        }
        let changed = self.follow_round(node, iterable);
        for (name, before, after) in changed {
            let value = before.map_or_else(|| after.clone(), |it| it.join(&after));
            self.assign(name, value);
        }
        let frame = self.frame();
        frame.in_loop = outer_loop;
        frame.branch = outer_branch;
    }

    /// What a name holds as the second round begins.
    fn carry(&mut self, id: LoopId, name: &'a str, before: Option<&Value>, after: &Value) {
        let mut value = before.map_or_else(|| after.clone(), |it| it.join(after));
        if let Some(tensor) = value.tensor_within().filter(|it| it.graph != Graph::Detached) {
            let node = self.facts.tape.carry(tensor.nodes.clone(), id);
            self.frame().carried.insert((id, name), node);
            value = value.computed_by(node);
        }
        self.assign(name, value);
    }

    fn follow_round(&mut self, node: LoopNode<'a>, iterable: &Value) -> Changed<'a> {
        self.frame().changes.push(Vec::new());
        if let LoopNode::While(it) = node {
            self.value(&it.test);
        }
        if let (Some(target), Some(expr)) = (node.target(), node.iterable()) {
            let element = self.element_of(iterable);
            self.bind(target, expr, element);
        }
        self.follow_statements(node.body());
        let frame = self.frame();
        let changed = Self::take_changes(frame);
        for (name, before, _) in &changed {
            match before {
                Some(value) => frame.values.insert(name, value.clone()),
                None => frame.values.remove(name),
            };
        }
        changed
    }

    /// What an iteration over a value yields.
    pub(super) fn element_of(&mut self, iterable: &Value) -> Value {
        match iterable {
            Value::Group(group) => group.element.clone(),
            Value::Tensor(tensor) => Value::Tensor(tensor.clone()),
            // `for layer in self.layers`
            Value::Object(class) if self.is_module_here(class) => {
                Value::Object(super::value::Class::External("torch.nn.Module".into()))
            }
            _ => Value::Unknown,
        }
    }

    fn follow_with(&mut self, it: &'a ast::StmtWith) -> bool {
        let outer = self.frame().grad;
        for item in &it.items {
            let value = self.value(&item.context_expr);
            let scope = self.frame().scope;
            let (callee, call) = match &item.context_expr {
                Expr::Call(call) => (&*call.func, Some(call)),
                other => (other, None),
            };
            if let Some(path) = self.names.path(scope, callee)
                && let Some(grad) = catalogue::grad_mode(&path, call)
            {
                self.frame().grad = grad;
            } else if catalogue::is_maybe_no_grad(callee) {
                self.frame().grad = Grad::Unknown;
            }
            if let Some(target) = &item.optional_vars {
                self.bind(target, &item.context_expr, value);
            }
        }
        if !self.quiet {
            let at = self.here();
            self.facts.withs.push((it, at));
        }
        let ends = self.follow_statements(&it.body);
        self.frame().grad = outer;
        ends
    }

    fn follow_try(&mut self, it: &'a ast::StmtTry) -> bool {
        if !self.quiet {
            let at = self.here();
            self.facts.tries.push((it, at));
        }
        let body_ends = self.follow_statements(&it.body);
        let handlers: Vec<_> = it
            .handlers
            .iter()
            .map(|handler| {
                let ast::ExceptHandler::ExceptHandler(handler) = handler;
                (Branch::Except(handler), handler.body.as_slice())
            })
            .collect();
        let handlers_end = if handlers.is_empty() {
            true
        } else {
            // Without an exception none of them runs.
            self.follow_branches(&handlers, !body_ends)
        };
        let else_ends = !body_ends && self.follow_statements(&it.orelse);
        let final_ends = self.follow_statements(&it.finalbody);
        final_ends || ((body_ends || else_ends) && handlers_end)
    }

    /// Gives the names of a target their values, without looking at whether anything is kept.
    pub(super) fn bind(&mut self, target: &'a Expr, expr: &'a Expr, value: Value) {
        match target {
            Expr::Name(name) => {
                if !self.quiet {
                    let at = self.here();
                    self.facts.assignments.push(Assignment { target, expr, value: value.clone(), at });
                }
                self.assign(name.id.as_str(), value);
            }
            Expr::Tuple(ast::ExprTuple { elts, .. }) | Expr::List(ast::ExprList { elts, .. }) => {
                self.unpack(elts, expr, &value);
            }
            Expr::Starred(it) => {
                self.bind(&it.value, expr, Value::group(GroupKind::List, value));
            }
            Expr::Attribute(_) | Expr::Subscript(_) => self.store(target, expr, value),
            _ => {}
        }
    }

    fn unpack(&mut self, targets: &'a [Expr], expr: &'a Expr, value: &Value) {
        let has_star = targets.iter().any(Expr::is_starred_expr);
        let written: Option<&'a [Expr]> = match expr {
            Expr::Tuple(it) if it.elts.len() == targets.len() && !has_star => Some(&it.elts),
            _ => None,
        };
        for (index, target) in targets.iter().enumerate() {
            let part = match value {
                Value::Group(group) if group.parts.len() == targets.len() && !has_star => {
                    group.parts[index].clone()
                }
                Value::Group(group) => group.element.clone(),
                // `values, indices = x.max(dim=1)`, `a, b = x.chunk(2)`
                Value::Tensor(tensor) => Value::Tensor(tensor.clone()),
                _ => Value::Unknown,
            };
            let source = written.map_or(expr, |it| &it[index]);
            if written.is_some() {
                self.store(target, source, part);
            } else {
                self.bind_and_keep(target, source, part);
            }
        }
    }
}

/// `__name__ == "__main__"`
fn is_main_guard(test: &Expr) -> bool {
    match test {
        Expr::Compare(it) => matches!(&*it.left, Expr::Name(name) if name.id.as_str() == "__name__"),
        _ => false,
    }
}
