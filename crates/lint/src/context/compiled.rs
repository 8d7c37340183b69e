//! Functions that a library compiles (`tf.function`, `jax.jit`): which they are, who calls them, and what is traced in them.

use rustc_hash::FxHashSet;

use super::{Context, first_name};
use crate::{
    facts::{Call, Callee, Keep, Position, Root},
    flow::value::Value,
    names::{Definition, FunctionId, LoopId, LoopNode, ScopeId, Usage, method_name},
    syntax::{
        Ranged,
        ast::{self, Expr},
        int_literal, text_literal,
    },
};

/// A function that is compiled, and by what.
#[derive(Clone, Copy)]
pub(crate) struct Compiled<'a> {
    /// The decorator, or the call that compiles.
    pub(crate) place: &'a Expr,
    /// The call whose keywords are the options, if there is one: `@jax.jit` alone has none.
    pub(crate) options: Option<&'a ast::ExprCall>,
    /// What is compiled, if it is a function of this file.
    pub(crate) function: Option<FunctionId>,
    /// Whether a decorator compiles it: that of a method sees the object as the first argument, a call of `jax.jit(self.f)` does not.
    pub(crate) is_decorated: bool,
}

/// What a decorator that compiles looks like.
enum Wrapper<'a> {
    /// `@jax.jit`
    Bare,
    /// `@jax.jit(…)`
    With(&'a ast::ExprCall),
}

impl<'a> Compiled<'a> {
    /// An option by its name.
    pub(crate) fn option(&self, name: &str) -> Option<&'a Expr> {
        self.options?.arguments.find_keyword(name).map(|it| &it.value)
    }

    /// Whether there may be options that cannot be seen: `**kwargs`.
    pub(crate) fn has_unseen_options(&self) -> bool {
        self.options.is_some_and(|it| it.arguments.keywords.iter().any(|it| it.arg.is_none()))
    }
}

impl<'a> Context<'a> {
    /// How the decorators of a function compile it, by one of these wrappers.
    pub(crate) fn compiling_decorator(
        &self,
        function: FunctionId,
        wrappers: &[&str],
    ) -> Option<Compiled<'a>> {
        let own = self.names.function(function);
        let scope = self.scope(own.parent?);
        own.node.decorators().iter().find_map(|it| {
            let place = &it.expression;
            let options = match self.wrapper(scope, place, wrappers)? {
                Wrapper::Bare => None,
                Wrapper::With(call) => Some(call),
            };
            Some(Compiled { place, options, function: Some(function), is_decorated: true })
        })
    }

    /// How a decorator names one of the wrappers, if it does.
    fn wrapper(&self, scope: ScopeId, decorator: &'a Expr, wrappers: &[&str]) -> Option<Wrapper<'a>> {
        let is_wrapper = |expr: &'a Expr| {
            self.names.path(scope, expr).is_some_and(|path| wrappers.iter().any(|it| path.is(it)))
        };
        let Expr::Call(call) = decorator else {
            return is_wrapper(decorator).then_some(Wrapper::Bare);
        };
        // `@functools.partial(jax.jit, static_argnums=0)`
        let is_partial = self.names.path(scope, &call.func).is_some_and(|it| it.is("functools.partial"))
            && call.arguments.args.first().is_some_and(is_wrapper);
        (is_partial || is_wrapper(&call.func)).then_some(Wrapper::With(call))
    }

    /// The compiled function that a call calls, if it does.
    pub(crate) fn compiled_callee(&self, call: &Call<'a>, wrappers: &[&str]) -> Option<Compiled<'a>> {
        match &call.callee {
            Callee::Function(file, id) if *file == self.file => self.compiling_decorator(*id, wrappers),
            Callee::Method { value: Value::Object(class), name, .. } => {
                if let Some((file, id)) = self.project.method(class, name) {
                    return if file == self.file { self.compiling_decorator(id, wrappers) } else { None };
                }
                self.compiled_attribute(call, name, wrappers)
            }
            Callee::Unknown => match &*call.expr.func {
                Expr::Name(name) => self.compiled_name(call.at.function, name.id.as_str(), wrappers),
                _ => None,
            },
            _ => None,
        }
    }

    /// `step = jax.jit(step)`
    fn compiled_name(&self, function: FunctionId, name: &str, wrappers: &[&str]) -> Option<Compiled<'a>> {
        let entry = self.names.name(self.scope(function), name)?;
        let mut found = None;
        for definition in &entry.definitions {
            match definition {
                Definition::Function(_) => {}
                Definition::Value(expr, _) if found.is_none() => found = Some(*expr),
                _ => return None,
            }
        }
        self.compiling_call(found?, wrappers)
    }

    /// `self.step = jax.jit(self.step)`
    fn compiled_attribute(&self, call: &Call<'a>, name: &str, wrappers: &[&str]) -> Option<Compiled<'a>> {
        let class = self.class_around(call.at.function)?;
        let mut assigned = self.facts.assignments.iter().filter(|it| {
            matches!(it.target, Expr::Attribute(target) if target.attr.as_str() == name)
                && self.class_around(it.at.function) == Some(class)
        });
        let first = assigned.next()?;
        if assigned.next().is_some() {
            return None;
        }
        self.compiling_call(first.expr, wrappers)
    }

    fn compiling_call(&self, place: &'a Expr, wrappers: &[&str]) -> Option<Compiled<'a>> {
        let Expr::Call(options) = place else { return None };
        let call = self.calls_to(wrappers).find(|it| std::ptr::eq(it.expr, options))?;
        let function = match call.arguments.first() {
            Some(Value::Function(file, id)) if *file == self.file => Some(*id),
            _ => None,
        };
        Some(Compiled { place, options: Some(options), function, is_decorated: false })
    }

    /// How a function is compiled: by a decorator, or by a call that gets it.
    pub(crate) fn compilation_of(&self, function: FunctionId, wrappers: &[&str]) -> Option<Compiled<'a>> {
        self.compiling_decorator(function, wrappers).or_else(|| {
            self.calls_to(wrappers)
                .find(|it| matches!(it.arguments.first(), Some(Value::Function(file, id)) if *file == self.file && *id == function))
                .map(|it| Compiled { place: &it.expr.func, options: Some(it.expr), function: Some(function), is_decorated: false })
        })
    }

    /// The loop that counts in `name`, if Python's own numbers do: `for name in range(…)`, `name += 1`.
    pub(crate) fn counted_by(&self, at: &Position<'a>, name: &str) -> Option<LoopId> {
        let entry = self.names.name(self.scope(at.function), name)?;
        let is_loop_only = entry.definitions.iter().all(|it| matches!(it, Definition::Loop(_)));
        let is_counter = entry.definitions.iter().all(|it| match it {
            Definition::Value(expr, _) => int_literal(expr).is_some(),
            Definition::Other(range) => entry
                .uses
                .iter()
                .any(|it| matches!(it.usage, Usage::Augmented) && range.contains_range(it.expr.range())),
            _ => false,
        });
        self.names.loops_from(at.in_loop).find(|id| {
            let node = self.names.the_loop(*id).node;
            let counts_here = node
                .target()
                .zip(node.iterable())
                .is_some_and(|(target, iterable)| is_loop_only && counts(target, iterable, name));
            if counts_here {
                return true;
            }
            is_counter
                && matches!(node, LoopNode::While(_) | LoopNode::For(_))
                && entry.uses.iter().any(|it| matches!(it.usage, Usage::Augmented) && it.in_loop == Some(*id))
        })
    }

    /// The names of a loop around a place that hold something else in each round: its targets, and what is made of them.
    pub(crate) fn varies_with(&self, at: &Position<'a>, expr: &'a Expr) -> bool {
        self.varies(at, expr, 3)
    }

    fn varies(&self, at: &Position<'a>, expr: &'a Expr, hops: u32) -> bool {
        let Some(hops) = hops.checked_sub(1) else { return false };
        let mut names = Vec::new();
        gather_names(expr, &mut names);
        let around: Vec<LoopId> = self.names.loops_from(at.in_loop).collect();
        names.into_iter().any(|name| {
            let Some(entry) = self.names.name(self.scope(at.function), name) else { return false };
            entry.definitions.iter().any(|it| match it {
                Definition::Loop(id) => around.contains(id),
                Definition::Value(value, Some(id)) => {
                    around.contains(id) && !std::ptr::eq(*value, expr) && self.varies(at, value, hops)
                }
                _ => false,
            })
        })
    }

    /// What a name that is assigned once stands for; any other expression is itself.
    pub(crate) fn meaning(&self, function: FunctionId, expr: &'a Expr) -> &'a Expr {
        let Expr::Name(name) = expr else { return expr };
        let entry = self.names.name(self.scope(function), name.id.as_str());
        match entry.map(|it| it.definitions.as_slice()) {
            Some([Definition::Value(value, _)]) => value,
            _ => expr,
        }
    }

    /// The compiled function around a place, and the names in it whose values exist only while it is traced.
    pub(crate) fn traced_at(
        &self,
        at: FunctionId,
        wrappers: &[&str],
    ) -> Option<(Compiled<'a>, FxHashSet<&'a str>)> {
        let (outer, compiled) =
            self.names.functions_from(at).find_map(|it| Some((it, self.compilation_of(it, wrappers)?)))?;
        let own = self.names.function(outer);
        let mut traced = FxHashSet::default();
        let is_bound = own.class.is_some() && !compiled.is_decorated;
        for (position, parameter) in own.parameters().enumerate() {
            let position = if is_bound { position.checked_sub(1) } else { Some(position) };
            let name = parameter.parameter.name.as_str();
            let is_receiver = own.receiver() == Some(name);
            let is_plain = matches!(
                parameter.parameter.annotation.as_deref(),
                Some(Expr::Name(it)) if matches!(it.id.as_str(), "int" | "str" | "bool" | "float" | "Callable")
            );
            if !is_receiver && !is_plain && !is_static(&compiled, position, name) {
                traced.insert(name);
            }
        }
        let inside: Vec<FunctionId> =
            self.names.functions_from(at).take_while(|it| *it != outer).chain([outer]).collect();
        for _ in 0..3 {
            for it in &self.facts.assignments {
                if let Expr::Name(name) = it.target
                    && inside.contains(&it.at.function)
                    && is_traced(it.expr, &traced)
                {
                    traced.insert(name.id.as_str());
                }
            }
        }
        Some((compiled, traced))
    }

    /// Whether a keep puts a traced value into something that exists outside of the compiled function.
    pub(crate) fn leaks_traced(&self, keep: &Keep<'a>, wrappers: &[&str]) -> Option<Compiled<'a>> {
        let (compiled, traced) = self.traced_at(keep.at.function, wrappers)?;
        let outer = compiled.function?;
        let is_outside = match keep.root {
            Root::Name(owner, _) => {
                !self.names.functions_from(owner).any(|it| it == outer)
                    && !self
                        .definitions(keep.root)
                        .iter()
                        .any(|it| matches!(it, Definition::Parameter(_) | Definition::Import(_)))
            }
            Root::SelfAttribute(..) => {
                let own = self.names.function(outer);
                own.class.is_some() && first_name(keep.target) == own.receiver()
            }
            Root::Attribute(_) | Root::Other => false,
        };
        // What is emptied again is used only while tracing.
        let is_emptied = self.uses(keep.root).iter().any(|it| match it.usage {
            Usage::Method(call) => matches!(method_name(call), "clear" | "pop" | "popleft" | "popitem"),
            Usage::Deleted | Usage::ItemDeleted => true,
            _ => false,
        });
        let leaks = is_outside && !is_emptied && keep.outlives_call && is_traced(keep.kept, &traced);
        leaks.then_some(compiled)
    }
}

/// Whether `for target in iterable` counts in `name`.
fn counts(target: &Expr, iterable: &Expr, name: &str) -> bool {
    let Expr::Call(call) = iterable else { return false };
    let callee = match &*call.func {
        Expr::Name(it) => it.id.as_str(),
        Expr::Attribute(it) => it.attr.as_str(),
        _ => "",
    };
    let is_name = |it: &Expr| matches!(it, Expr::Name(it) if it.id.as_str() == name);
    match (callee, target) {
        ("range", _) => matches!(&*call.func, Expr::Name(_)) && is_name(target),
        ("trange", _) => is_name(target),
        ("enumerate", Expr::Tuple(it)) => {
            matches!(&*call.func, Expr::Name(_)) && it.elts.first().is_some_and(is_name)
        }
        ("tqdm" | "track", _) => call.arguments.args.first().is_some_and(|it| counts(target, it, name)),
        _ => false,
    }
}

/// Whether a parameter is declared to be no traced value.
fn is_static(compiled: &Compiled<'_>, position: Option<usize>, name: &str) -> bool {
    if compiled.has_unseen_options() {
        return true;
    }
    let numbers = compiled.option("static_argnums").or_else(|| compiled.option("static_broadcasted_argnums"));
    numbers.is_some_and(|it| {
        each(it, &|it| int_literal(it).is_none_or(|it| position.is_some_and(|at| at as i64 == it)))
    }) || compiled
        .option("static_argnames")
        .is_some_and(|it| each(it, &|it| text_literal(it).is_none_or(|it| it == name)))
}

/// Whether an expression or, if it is a tuple or list, one of its elements is like that.
fn each(expr: &Expr, is_meant: &dyn Fn(&Expr) -> bool) -> bool {
    match expr {
        Expr::Tuple(it) => it.elts.iter().any(is_meant),
        Expr::List(it) => it.elts.iter().any(is_meant),
        other => is_meant(other),
    }
}

/// Whether an expression is computed from traced values; what is known while tracing, such as shapes, is not.
fn is_traced(expr: &Expr, traced: &FxHashSet<&str>) -> bool {
    match expr {
        Expr::Name(it) => traced.contains(it.id.as_str()),
        Expr::Attribute(it) => {
            !matches!(it.attr.as_str(), "shape" | "dtype" | "ndim" | "size" | "name" | "aval")
                && is_traced(&it.value, traced)
        }
        Expr::Subscript(it) => is_traced(&it.value, traced),
        Expr::Call(it) => {
            let is_plain = match &*it.func {
                Expr::Name(name) => matches!(
                    name.id.as_str(),
                    "len" | "isinstance" | "type" | "str" | "repr" | "id" | "hasattr" | "callable"
                ),
                Expr::Attribute(method) => {
                    if is_traced(&method.value, traced) {
                        return !matches!(method.attr.as_str(), "get_shape" | "numpy" | "item" | "keys");
                    }
                    false
                }
                _ => false,
            };
            !is_plain && it.arguments.args.iter().any(|it| is_traced(it, traced))
        }
        Expr::BinOp(it) => is_traced(&it.left, traced) || is_traced(&it.right, traced),
        Expr::UnaryOp(it) => is_traced(&it.operand, traced),
        Expr::Tuple(it) => it.elts.iter().any(|it| is_traced(it, traced)),
        Expr::List(it) => it.elts.iter().any(|it| is_traced(it, traced)),
        Expr::Dict(it) => it.items.iter().any(|it| is_traced(&it.value, traced)),
        Expr::Starred(it) => is_traced(&it.value, traced),
        _ => false,
    }
}

fn gather_names<'a>(expr: &'a Expr, names: &mut Vec<&'a str>) {
    struct Names<'n, 'a>(&'n mut Vec<&'a str>);
    impl<'a> crate::syntax::visitor::Visitor<'a> for Names<'_, 'a> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Name(it) = expr {
                self.0.push(it.id.as_str());
            }
            crate::syntax::visitor::walk_expr(self, expr);
        }
    }
    crate::syntax::visitor::Visitor::visit_expr(&mut Names(names), expr);
}
