//! The walk that finds scopes, definitions and uses.

use rustc_hash::FxHashMap;

use super::{
    Class, ClassId, Definition, Elsewhere, Function, FunctionId, FunctionNode, Item, Loop, LoopId, LoopNode,
    Names, Path, Scope, ScopeId, ScopeKind, Usage, Use, mentions::Mentions,
};
use crate::syntax::{
    TextRange,
    ast::{self, Expr, ExprContext, Stmt},
    visitor::{self, Visitor},
};

/// Reads all names of a module. `module` is its dotted name; `is_package` whether it is an `__init__.py`.
pub(crate) fn collect<'a>(body: &'a [Stmt], module: &'a str, is_package: bool) -> Names<'a> {
    let mut collector = Collector {
        names: Names {
            scopes: vec![Scope {
                kind: ScopeKind::Module,
                parent: None,
                function: FunctionId::MODULE,
                names: FxHashMap::default(),
            }],
            functions: vec![Function {
                node: FunctionNode::Module(body),
                name: "",
                scope: ScopeId::MODULE,
                class: None,
                parent: None,
                in_loop: None,
                is_generator: false,
            }],
            classes: Vec::new(),
            loops: Vec::new(),
            attributes: FxHashMap::default(),
            imports: Vec::new(),
            by_range: FxHashMap::default(),
            module,
        },
        is_package,
        scope: ScopeId::MODULE,
        function: FunctionId::MODULE,
        in_loop: None,
        parents: Vec::new(),
        statement: None,
        uses: Mentions::default(),
        attributes: Mentions::default(),
    };
    collector.visit_body(body);
    collector.finish()
}

struct Collector<'a> {
    names: Names<'a>,
    is_package: bool,
    scope: ScopeId,
    function: FunctionId,
    in_loop: Option<LoopId>,
    /// The expressions around the one that is visited, from the outside in.
    parents: Vec<&'a Expr>,
    statement: Option<&'a Stmt>,
    /// Uses of names with the scope in which they stand: what they mean is known only when all scopes are.
    uses: Mentions<'a, (ScopeId, &'a str)>,
    attributes: Mentions<'a, &'a str>,
}

impl<'a> Collector<'a> {
    fn finish(self) -> Names<'a> {
        let mut names = self.names;
        let found = self.uses.by_owner(|(scope, name)| Some((names.scope_of(scope, name)?, name)));
        // What the answer is made of is no longer needed to find it.
        let found: Vec<_> = found.collect();
        for ((scope, name), uses) in found {
            if let Some(entry) = names.scopes[scope.0 as usize].names.get_mut(name) {
                entry.uses = uses;
            }
        }
        names.attributes = self.attributes.by_owner(Some).collect();
        names
    }

    fn define(&mut self, name: &'a str, definition: Definition<'a>) {
        let scope = match self.names.scopes[self.scope.0 as usize].names.get(name) {
            Some(it) if it.elsewhere == Some(Elsewhere::Global) => ScopeId::MODULE,
            Some(it) if it.elsewhere == Some(Elsewhere::Nonlocal) => {
                self.names.scope_of(self.scope, name).unwrap_or(self.scope)
            }
            _ => self.scope,
        };
        let scope = &mut self.names.scopes[scope.0 as usize];
        let entry = scope.names.entry(name).or_default();
        if entry.import.is_none() && matches!(definition, Definition::Import(_)) {
            entry.import = Some(entry.definitions.len());
        }
        if entry.definitions.is_empty() {
            // Most names have no other.
            entry.definitions.reserve_exact(1);
        }
        entry.definitions.push(definition);
    }

    /// Defines the names of a target that gets a value as a whole or in parts.
    fn define_target(&mut self, target: &'a Expr, whole: Definition<'a>) {
        match target {
            Expr::Name(it) => self.define(it.id.as_str(), whole),
            Expr::Tuple(it) => self.define_parts(&it.elts, &whole),
            Expr::List(it) => self.define_parts(&it.elts, &whole),
            Expr::Starred(it) => self.define_target(&it.value, Definition::Other(it.range)),
            _ => {}
        }
    }

    fn define_parts(&mut self, parts: &'a [Expr], whole: &Definition<'a>) {
        for part in parts {
            let range = crate::syntax::Ranged::range(part);
            let definition = match whole {
                Definition::Loop(id) => Definition::Loop(*id),
                _ => Definition::Other(range),
            };
            self.define_target(part, definition);
        }
    }

    fn enter_scope(&mut self, kind: ScopeKind, function: FunctionId) -> ScopeId {
        let id = ScopeId(self.names.scopes.len() as u32);
        self.names.scopes.push(Scope {
            kind,
            parent: Some(self.scope),
            function,
            names: FxHashMap::default(),
        });
        std::mem::replace(&mut self.scope, id)
    }

    fn in_function(
        &mut self,
        node: FunctionNode<'a>,
        name: &'a str,
        range: TextRange,
        visit: impl FnOnce(&mut Self),
    ) {
        let id = FunctionId(self.names.functions.len() as u32);
        let class = match (self.names.scope(self.scope).kind, node) {
            (ScopeKind::Class(class), FunctionNode::Def(_)) => Some(class),
            _ => None,
        };
        self.names.functions.push(Function {
            node,
            name,
            scope: ScopeId(self.names.scopes.len() as u32),
            class,
            parent: Some(self.function),
            in_loop: self.in_loop,
            is_generator: false,
        });
        self.names.by_range.insert(range, Item::Function(id));
        if let Some(class) = class {
            self.names.classes[class.0 as usize].methods.insert(name, id);
        }
        if !name.is_empty() {
            self.define(name, Definition::Function(id));
        }
        let scope = self.enter_scope(ScopeKind::Function, id);
        let function = std::mem::replace(&mut self.function, id);
        let in_loop = self.in_loop.take();
        let parents = std::mem::take(&mut self.parents);
        for parameter in node.parameters().into_iter().flat_map(|it| it.iter()) {
            let parameter = parameter.as_parameter();
            self.define(parameter.name.as_str(), Definition::Parameter(parameter));
        }
        visit(self);
        self.scope = scope;
        self.function = function;
        self.in_loop = in_loop;
        self.parents = parents;
    }

    fn in_loop(&mut self, node: LoopNode<'a>) -> Option<LoopId> {
        let id = LoopId::at(self.names.loops.len());
        self.names.loops.push(Loop { node, parent: self.in_loop, function: self.function, trains: false });
        self.names.by_range.insert(node.range(), Item::Loop(id));
        if let Some(target) = node.target() {
            self.define_target(target, Definition::Loop(id));
        }
        self.in_loop.replace(id)
    }

    fn marks_training(&mut self) {
        let mut at = self.in_loop;
        while let Some(id) = at {
            let it = &mut self.names.loops[id.index()];
            it.trains = true;
            at = it.parent;
        }
    }

    fn use_of(&self, expr: &'a Expr, usage: Usage<'a>) -> Use<'a> {
        Use { expr, usage, function: self.function, in_loop: self.in_loop }
    }

    /// What is done with `expr`, whose parents are on the stack.
    fn usage(&self, expr: &'a Expr, context: ExprContext) -> Usage<'a> {
        let mut outwards = self.parents.iter().rev();
        match outwards.next() {
            Some(Expr::Attribute(attribute)) => match outwards.next() {
                Some(Expr::Call(call)) if is_same(&call.func, self.parents.last().unwrap_or(&expr)) => {
                    Usage::Method(call)
                }
                _ => Usage::Attribute(attribute),
            },
            Some(parent @ Expr::Subscript(item)) if is_same(&item.value, expr) => match item.ctx {
                ExprContext::Store => match self.statement {
                    Some(Stmt::AugAssign(it)) if is_same(&it.target, parent) => Usage::ItemAugmented,
                    _ => Usage::ItemStored(item),
                },
                ExprContext::Del => Usage::ItemDeleted,
                _ => match (outwards.next(), outwards.next()) {
                    (Some(callee @ Expr::Attribute(attribute)), Some(Expr::Call(call)))
                        if is_same(&call.func, callee) =>
                    {
                        Usage::ItemMethod(call)
                    }
                    _ => Usage::Item,
                },
            },
            Some(Expr::Call(call)) if is_same(&call.func, expr) => Usage::Called(call),
            Some(Expr::Call(call)) => Usage::Argument(call),
            Some(Expr::Starred(_)) => match outwards.next() {
                Some(Expr::Call(call)) => Usage::Argument(call),
                _ => Usage::Gathered,
            },
            // `a, b = …`
            Some(Expr::List(_) | Expr::Tuple(_)) if context == ExprContext::Store => Usage::Stored,
            Some(Expr::List(_) | Expr::Tuple(_) | Expr::Set(_) | Expr::Dict(_)) => Usage::Gathered,
            Some(Expr::Compare(_) | Expr::BoolOp(_) | Expr::UnaryOp(_)) => Usage::Tested,
            Some(Expr::If(it)) if is_same(&it.test, expr) => Usage::Tested,
            Some(Expr::BinOp(_)) => Usage::Operand,
            Some(Expr::Yield(_) | Expr::YieldFrom(_)) => Usage::Returned,
            Some(
                Expr::ListComp(ast::ExprListComp { generators, .. })
                | Expr::SetComp(ast::ExprSetComp { generators, .. })
                | Expr::DictComp(ast::ExprDictComp { generators, .. })
                | Expr::Generator(ast::ExprGenerator { generators, .. }),
            ) if generators.iter().any(|it| is_same(&it.iter, expr)) => Usage::Iterated,
            Some(_) => Usage::Other,
            None => self.usage_in_statement(expr, context),
        }
    }

    fn usage_in_statement(&self, expr: &'a Expr, context: ExprContext) -> Usage<'a> {
        match self.statement {
            Some(Stmt::AugAssign(it)) if is_same(&it.target, expr) => Usage::Augmented,
            Some(Stmt::For(it)) if is_same(&it.iter, expr) => Usage::Iterated,
            Some(Stmt::Return(_)) => Usage::Returned,
            _ if context == ExprContext::Store => Usage::Stored,
            Some(Stmt::Delete(_)) => Usage::Deleted,
            Some(Stmt::Assign(_) | Stmt::AnnAssign(_)) => Usage::Assigned,
            Some(Stmt::AugAssign(_)) => Usage::Operand,
            Some(Stmt::If(_) | Stmt::While(_) | Stmt::Assert(_)) => Usage::Tested,
            _ => Usage::Other,
        }
    }

    fn define_import(&mut self, it: &'a ast::StmtImport) {
        for alias in &it.names {
            let dotted = alias.name.as_str();
            self.names.imports.push(Path::of(dotted));
            if let Some(name) = &alias.asname {
                self.define(name.as_str(), Definition::Import(Box::new(Path::of(dotted))));
            } else {
                let root = dotted.split('.').next().unwrap_or(dotted);
                self.define(root, Definition::Import(Box::new(Path::of(root))));
            }
        }
    }

    fn define_import_from(&mut self, it: &'a ast::StmtImportFrom) {
        let mut base = Path::default();
        if it.level > 0 {
            base = Path::of(self.names.module);
            let up = if self.is_package { it.level - 1 } else { it.level };
            for _ in 0..up {
                base.pop();
            }
        }
        if let Some(module) = &it.module {
            base.push(module.as_str());
        }
        for alias in &it.names {
            let mut path = base;
            path.push(alias.name.as_str());
            self.names.imports.push(path);
            let name = alias.asname.as_ref().unwrap_or(&alias.name);
            self.define(name.as_str(), Definition::Import(Box::new(path)));
        }
    }
}

/// Whether a call of this method is what a loop that trains does.
fn trains(method: &ast::ExprAttribute) -> bool {
    match method.attr.as_str() {
        "backward" | "manual_backward" => true,
        "step" => {
            let object = match &*method.value {
                Expr::Name(it) => it.id.as_str(),
                Expr::Attribute(it) => it.attr.as_str(),
                _ => "",
            };
            object.contains("opt") || object.contains("scaler")
        }
        _ => false,
    }
}

/// Whether two expressions are the same place of the source.
fn is_same(a: &Expr, b: &Expr) -> bool {
    std::ptr::eq(a, b)
}

impl<'a> Visitor<'a> for Collector<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        let outer = self.statement.replace(stmt);
        match stmt {
            Stmt::FunctionDef(def) => {
                for decorator in &def.decorator_list {
                    self.visit_decorator(decorator);
                }
                for parameter in def.parameters.iter_non_variadic_params() {
                    if let Some(default) = parameter.default() {
                        self.visit_expr(default);
                    }
                }
                self.in_function(FunctionNode::Def(def), def.name.as_str(), def.range, |it| {
                    it.visit_body(&def.body);
                });
            }
            Stmt::ClassDef(def) => {
                for decorator in &def.decorator_list {
                    self.visit_decorator(decorator);
                }
                if let Some(arguments) = &def.arguments {
                    self.visit_arguments(arguments);
                }
                let id = ClassId(self.names.classes.len() as u32);
                self.names.classes.push(Class {
                    node: def,
                    scope: ScopeId(self.names.scopes.len() as u32),
                    parent: self.function,
                    methods: FxHashMap::default(),
                });
                self.names.by_range.insert(def.range, Item::Class(id));
                self.define(def.name.as_str(), Definition::Class(id));
                let scope = self.enter_scope(ScopeKind::Class(id), self.function);
                self.visit_body(&def.body);
                self.scope = scope;
            }
            Stmt::Assign(it) => {
                for target in &it.targets {
                    self.define_target(target, Definition::Value(&it.value, self.in_loop));
                }
                visitor::walk_stmt(self, stmt);
            }
            Stmt::AnnAssign(it) => {
                let definition = match &it.value {
                    Some(value) => Definition::Value(value, self.in_loop),
                    None => Definition::Other(it.range),
                };
                self.define_target(&it.target, definition);
                visitor::walk_stmt(self, stmt);
            }
            Stmt::AugAssign(it) => {
                self.define_target(&it.target, Definition::Other(it.range));
                visitor::walk_stmt(self, stmt);
            }
            Stmt::For(it) => {
                self.visit_expr(&it.iter);
                let outside = self.in_loop(LoopNode::For(it));
                self.visit_expr(&it.target);
                self.visit_body(&it.body);
                self.in_loop = outside;
                self.visit_body(&it.orelse);
            }
            Stmt::While(it) => {
                let outside = self.in_loop(LoopNode::While(it));
                self.visit_expr(&it.test);
                self.visit_body(&it.body);
                self.in_loop = outside;
                self.visit_body(&it.orelse);
            }
            Stmt::Import(it) => self.define_import(it),
            Stmt::ImportFrom(it) => self.define_import_from(it),
            Stmt::Global(it) => self.declare(&it.names, Elsewhere::Global),
            Stmt::Nonlocal(it) => self.declare(&it.names, Elsewhere::Nonlocal),
            _ => visitor::walk_stmt(self, stmt),
        }
        self.statement = outer;
    }

    fn visit_with_item(&mut self, item: &'a ast::WithItem) {
        if let Some(target) = &item.optional_vars {
            self.define_target(target, Definition::Other(item.range));
        }
        visitor::walk_with_item(self, item);
    }

    fn visit_except_handler(&mut self, handler: &'a ast::ExceptHandler) {
        let ast::ExceptHandler::ExceptHandler(it) = handler;
        if let Some(name) = &it.name {
            self.define(name.as_str(), Definition::Other(name.range));
        }
        visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a ast::Pattern) {
        let name = match pattern {
            ast::Pattern::MatchAs(it) => it.name.as_ref(),
            ast::Pattern::MatchStar(it) => it.name.as_ref(),
            ast::Pattern::MatchMapping(it) => it.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = name {
            self.define(name.as_str(), Definition::Other(name.range));
        }
        visitor::walk_pattern(self, pattern);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(it) => {
                let usage = self.usage(expr, it.ctx);
                let one_use = self.use_of(expr, usage);
                self.uses.add((self.scope, it.id.as_str()), one_use);
                return;
            }
            Expr::Attribute(it) => {
                let is_callee =
                    matches!(self.parents.last(), Some(Expr::Call(call)) if is_same(&call.func, expr));
                if is_callee {
                    if trains(it) {
                        self.marks_training();
                    }
                } else {
                    let usage = self.usage(expr, it.ctx);
                    let one_use = self.use_of(expr, usage);
                    self.attributes.add(it.attr.as_str(), one_use);
                }
            }
            Expr::Lambda(it) => {
                self.in_function(FunctionNode::Lambda(it), "", it.range, |inner| {
                    inner.visit_expr(&it.body);
                });
                return;
            }
            Expr::Named(it) => self.define_target(&it.target, Definition::Value(&it.value, self.in_loop)),
            Expr::Yield(_) | Expr::YieldFrom(_) => {
                self.names.functions[self.function.0 as usize].is_generator = true;
            }
            _ => {}
        }
        self.parents.push(expr);
        match expr {
            Expr::ListComp(it) => self.visit_comprehensions(&it.generators, &[&it.elt]),
            Expr::SetComp(it) => self.visit_comprehensions(&it.generators, &[&it.elt]),
            Expr::Generator(it) => self.visit_comprehensions(&it.generators, &[&it.elt]),
            Expr::DictComp(it) => match &it.key {
                Some(key) => self.visit_comprehensions(&it.generators, &[key, &it.value]),
                None => self.visit_comprehensions(&it.generators, &[&it.value]),
            },
            _ => visitor::walk_expr(self, expr),
        }
        self.parents.pop();
    }
}

impl<'a> Collector<'a> {
    fn declare(&mut self, names: &'a [ast::Identifier], elsewhere: Elsewhere) {
        for name in names {
            let scope = &mut self.names.scopes[self.scope.0 as usize];
            scope.names.entry(name.as_str()).or_default().elsewhere = Some(elsewhere);
            if elsewhere == Elsewhere::Global {
                self.names.scopes[0].names.entry(name.as_str()).or_default();
            }
        }
    }

    /// The names of a comprehension are taken as names of the function around it, which is where readers look for them.
    fn visit_comprehensions(&mut self, generators: &'a [ast::Comprehension], parts: &[&'a Expr]) {
        let outside = self.in_loop;
        for generator in generators {
            self.visit_expr(&generator.iter);
            self.in_loop(LoopNode::Comprehension(generator));
            self.visit_expr(&generator.target);
            for condition in &generator.ifs {
                self.visit_expr(condition);
            }
        }
        for part in parts {
            self.visit_expr(part);
        }
        self.in_loop = outside;
    }
}
