//! Follows the code of a file, in the order in which it runs, and writes down what its values are and where they are kept.
//!
//! Every function is followed once: when a call of it is first met, with what that call passes, or after everything else
//! if nothing in the file calls it. Loops are followed twice, so that what a round leaves behind is seen by the next;
//! only the second time counts. What is not understood is [`Value::Unknown`], and rules are silent about that.

mod arguments;
mod batches;
mod calls;
mod catalogue;
mod expressions;
pub(crate) mod hooks;
mod keeps;
mod methods;
mod statements;
pub(crate) mod tape;
pub(crate) mod value;

use rustc_hash::FxHashMap;

use crate::{
    facts::{Branch, Facts, FunctionFacts, Grad, Position},
    names::{ClassId, Definition, FunctionId, FunctionNode, LoopId, Names, Path, ScopeId, ScopeKind},
    project::Project,
    syntax::{
        Ranged,
        ast::{self, Expr, Stmt},
        with_deep_stack,
    },
};
use value::{Class, FileId, Graph, Size, Tensor, Value};

/// How deep expressions and calls of calls are followed; beyond, values are unknown.
const DEPTH: u32 = 200;
const CALLS: usize = 12;

/// Follows all code of a file.
pub(crate) fn follow<'a>(file: FileId, names: &Names<'a>, project: &Project) -> Facts<'a> {
    let mut flow = Flow {
        file,
        names,
        project,
        facts: Facts { functions: vec![FunctionFacts::default(); names.functions.len()], ..Facts::default() },
        looked_up: FxHashMap::default(),
        progress: vec![Progress::NotYet; names.functions.len()],
        frames: Vec::new(),
        quiet: false,
        depth: 0,
        fallback: &NOTHING,
    };
    flow.read_decorators();
    flow.follow_function(FunctionId::MODULE, &[]);
    // Those that nothing in the file calls come first: they call the others, and say with what.
    let is_called = |id: FunctionId| {
        let function = names.function(id);
        let uses = match function.class {
            Some(_) => names.attributes.get(function.name).map(|it| &it[..]),
            None => names
                .name(names.function(function.parent.unwrap_or(id)).scope, function.name)
                .map(|it| &it.uses[..]),
        };
        uses.is_some_and(|it| !it.is_empty()) || function.name.is_empty()
    };
    let all = || (0..names.functions.len() as u32).map(FunctionId);
    for id in all().filter(|id| names.function(*id).name == "__init__") {
        flow.follow_function(id, &[]);
    }
    for id in all().filter(|id| !is_called(*id)) {
        flow.follow_function(id, &[]);
    }
    for id in all() {
        flow.follow_function(id, &[]);
    }
    let mut facts = flow.facts;
    let mut by_place: Vec<u32> = (0..facts.calls.len() as u32).collect();
    by_place.sort_by_key(|it| facts.calls.get(*it as usize).map(|it| it.expr.start()));
    facts.calls_by_place = by_place;
    facts
}

/// How many bases of a class are looked at.
const ANCESTORS: usize = 64;

/// How far a function has been followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    NotYet,
    Now,
    Done,
}

/// A statement for the moments in which there is none.
static NOTHING: Stmt = Stmt::Pass(ast::StmtPass {
    node_index: ast::AtomicNodeIndex::NONE,
    range: crate::syntax::TextRange::new(crate::syntax::ZERO, crate::syntax::ZERO),
});

/// The walk through a file.
pub(crate) struct Flow<'a, 'n, 'p> {
    file: FileId,
    names: &'n Names<'a>,
    project: &'p Project,
    facts: Facts<'a>,
    looked_up: FxHashMap<Path<'a>, Value>,
    progress: Vec<Progress>,
    /// The functions that are being followed, from the outermost caller in.
    frames: Vec<Frame<'a>>,
    /// Whether this is a first time through a loop, of which nothing is written down.
    quiet: bool,
    depth: u32,
    fallback: &'a Stmt,
}

/// One function that is being followed.
struct Frame<'a> {
    function: FunctionId,
    /// Where names are looked up: that of the function, or of a class in it.
    scope: ScopeId,
    values: FxHashMap<&'a str, Value>,
    /// Names that were assigned since a branch began, with what they held before; one list a branch.
    changes: Vec<Vec<(&'a str, Option<Value>)>>,
    in_loop: Option<LoopId>,
    grad: Grad,
    branch: Option<Branch<'a>>,
    statement: &'a Stmt,
    returns: Option<Value>,
    /// What stands for the value of a name in the round before.
    carried: FxHashMap<(LoopId, &'a str), u32>,
}

impl<'a> Flow<'a, '_, '_> {
    fn frame(&mut self) -> &mut Frame<'a> {
        // There is always one while code is followed; an empty one stands in for the impossible.
        if self.frames.is_empty() {
            let frame = Frame::of(FunctionId::MODULE, ScopeId::MODULE, Grad::Unknown, self.fallback);
            self.frames.push(frame);
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn here(&mut self) -> Position<'a> {
        let frame = self.frame();
        Position {
            function: frame.function,
            in_loop: frame.in_loop,
            grad: frame.grad,
            branch: frame.branch,
            statement: frame.statement,
        }
    }

    /// What decorators and signatures tell before any code is followed.
    fn read_decorators(&mut self) {
        for (index, function) in self.names.functions.iter().enumerate() {
            let scope = function.parent.map_or(ScopeId::MODULE, |it| self.names.function(it).scope);
            for decorator in function.node.decorators() {
                let (callee, call) = match &decorator.expression {
                    Expr::Call(call) => (&*call.func, Some(call)),
                    other => (other, None),
                };
                let Some(path) = self.names.path(scope, callee) else { continue };
                if let Some(grad) = catalogue::grad_mode(&path, call) {
                    self.facts.functions[index].decorated = Some(grad);
                }
            }
        }
    }

    /// Follows a function if that has not been done, with what a call passes to it.
    fn follow_function(&mut self, id: FunctionId, passed: &[(&'a str, Value)]) {
        let index = id.0 as usize;
        if self.progress[index] != Progress::NotYet || self.frames.len() > CALLS {
            return;
        }
        let function = self.names.function(id);
        if let Some(class) = function.class
            && let Some(init) = self.names.class(class).methods.get("__init__")
            && *init != id
        {
            self.follow_function(*init, &[]);
        }
        self.progress[index] = Progress::Now;
        let grad = if id == FunctionId::MODULE {
            Grad::On
        } else {
            self.facts.functions[index].decorated.unwrap_or(Grad::AsCaller)
        };
        let fallback = self.fallback;
        let mut frame = Frame::of(id, function.scope, grad, fallback);
        let hook = self.facts.functions[index].hook;
        for parameter in function.parameters() {
            let name = parameter.parameter.name.as_str();
            let given = passed.iter().find(|(it, _)| *it == name).map(|(_, value)| value.clone());
            let value = match given {
                Some(value) if !value.is_unknown() => value,
                _ => match hook.and_then(|hook| hooks::parameter(function, hook, name)) {
                    Some(value) => value,
                    None => {
                        self.value_of_annotation(function.parent, parameter.parameter.annotation.as_deref())
                    }
                },
            };
            frame.values.insert(name, value);
        }
        if let Some(class) = function.class
            && let Some(receiver) = function.receiver()
            && !is_static(function.node)
        {
            frame.values.insert(receiver, Value::Object(Class::Project(self.file, class)));
        }
        let quiet = std::mem::replace(&mut self.quiet, false);
        let depth = std::mem::replace(&mut self.depth, 0);
        self.frames.push(frame);
        // Functions are followed from within calls, which may themselves lie deep in a tree.
        with_deep_stack(|| match function.node {
            FunctionNode::Lambda(lambda) => {
                let value = self.value(&lambda.body);
                self.frame().returns = Some(value);
            }
            node => {
                self.follow_statements(node.body());
            }
        });
        // Functions within see what this one's names hold in the end.
        let inner: Vec<FunctionId> = (0..self.names.functions.len() as u32)
            .map(FunctionId)
            .filter(|it| {
                self.names.function(*it).parent == Some(id)
                    && self.progress[it.0 as usize] == Progress::NotYet
            })
            .filter(|it| id != FunctionId::MODULE || self.names.function(*it).name.is_empty())
            .collect();
        for it in inner {
            self.follow_function(it, &[]);
        }
        if let Some(frame) = self.frames.pop() {
            self.facts.functions[index].returns = match frame.returns {
                Some(_) if function.is_generator => Value::group(value::GroupKind::Iterator, Value::Unknown),
                Some(value) => value.without_nodes(),
                None => Value::Plain,
            };
            let held = frame.values.into_iter().map(|(name, value)| ((id, name), value.without_nodes()));
            self.facts.names.extend(held);
        }
        self.quiet = quiet;
        self.depth = depth;
        self.progress[index] = Progress::Done;
    }

    /// What a type annotation says about a value.
    fn value_of_annotation(&self, function: Option<FunctionId>, annotation: Option<&'a Expr>) -> Value {
        let scope = function.map_or(ScopeId::MODULE, |it| self.names.function(it).scope);
        let Some(annotation) = annotation else { return Value::Unknown };
        match annotation {
            Expr::Name(it) if matches!(it.id.as_str(), "int" | "float" | "str" | "bool" | "bytes") => {
                Value::Plain
            }
            Expr::Name(_) | Expr::Attribute(_) => {
                if let Some(path) = self.names.path(scope, annotation) {
                    return catalogue::instance_of(&path).unwrap_or_else(|| self.project_instance(&path));
                }
                match self.names.path_of_local_class(scope, annotation) {
                    Some(class) => Value::Object(Class::Project(self.file, class)),
                    None => Value::Unknown,
                }
            }
            _ => Value::Unknown,
        }
    }

    fn project_instance(&self, path: &Path<'_>) -> Value {
        match self.project.lookup(path) {
            Value::Type(class) => Value::Object(class),
            _ => Value::Unknown,
        }
    }

    /// What an imported thing is in the project. The same few are asked for again and again.
    fn look_up(&mut self, path: &Path<'a>) -> Value {
        if !self.project.may_know(path) {
            return Value::Unknown;
        }
        self.looked_up.entry(*path).or_insert_with(|| self.project.lookup(path)).clone()
    }

    /// What a name holds here.
    fn read(&mut self, name: &'a str) -> Value {
        let scope = self.frame().scope;
        let Some(owner) = self.names.scope_of(scope, name) else { return Value::Unknown };
        let owner_scope = self.names.scope(owner);
        if let ScopeKind::Class(class) = owner_scope.kind {
            return self.facts.attributes.get(&(class, name)).cloned().unwrap_or_default();
        }
        let function = owner_scope.function;
        let is_own = self.frame().function == function;
        let held = self.frames.iter().rev().find(|it| it.function == function).map(|it| it.values.get(name));
        match held {
            Some(Some(value)) if is_own => return value.clone(),
            Some(Some(value)) => return value.without_nodes(),
            Some(None) => {}
            None => {
                if let Some(value) = self.facts.names.get(&(function, name)) {
                    return value.clone();
                }
            }
        }
        for definition in owner_scope.names.get(name).into_iter().flat_map(|it| &it.definitions) {
            match definition {
                Definition::Import(path) => {
                    let found = self.look_up(path);
                    return if found.is_unknown() { Value::External(path.dotted().into()) } else { found };
                }
                Definition::Function(id) => return Value::Function(self.file, *id),
                Definition::Class(id) => return Value::Type(Class::Project(self.file, *id)),
                _ => {}
            }
        }
        Value::Unknown
    }

    /// Gives a name its value.
    fn assign(&mut self, name: &'a str, value: Value) {
        let scope = self.frame().scope;
        let owner = self.names.scope_of(scope, name).unwrap_or(scope);
        let owner_scope = self.names.scope(owner);
        if let ScopeKind::Class(class) = owner_scope.kind {
            self.assign_attribute(class, name, &value);
            return;
        }
        let function = owner_scope.function;
        let is_own = self.frame().function == function;
        if is_own {
            let frame = self.frame();
            let old = frame.values.insert(name, value);
            if let Some(changes) = frame.changes.last_mut() {
                changes.push((name, old));
            }
        } else if let Some(frame) = self.frames.iter_mut().rev().find(|it| it.function == function) {
            let joined = frame.values.get(name).map_or_else(|| value.clone(), |it| it.join(&value));
            frame.values.insert(name, joined.without_nodes());
        } else {
            let entry = self.facts.names.entry((function, name)).or_default();
            *entry =
                if entry.is_unknown() { value.without_nodes() } else { entry.join(&value.without_nodes()) };
        }
    }

    fn assign_attribute(&mut self, class: ClassId, name: &'a str, value: &Value) {
        let value = value.without_nodes();
        self.facts.attributes.entry((class, name)).and_modify(|it| *it = it.join(&value)).or_insert(value);
    }

    /// A tensor computed from `inputs`, with its graph if autograd records here.
    fn computed(&mut self, graph: Graph, size: Size, inputs: &[&Value]) -> Value {
        let mut nodes = value::Nodes::new();
        for tensor in inputs.iter().filter_map(|it| it.tensor_within()) {
            for node in &tensor.nodes {
                if !nodes.contains(node) {
                    nodes.push(*node);
                }
            }
        }
        let graph = if self.frame().grad == Grad::Off { Graph::Detached } else { graph };
        if graph == Graph::Detached {
            return Value::Tensor(Tensor { size, ..Tensor::data() });
        }
        let node = self.facts.tape.record(nodes);
        Value::Tensor(Tensor { graph, size, nodes: std::iter::once(node).collect(), ..Tensor::data() })
    }
}

impl<'a> Frame<'a> {
    fn of(function: FunctionId, scope: ScopeId, grad: Grad, statement: &'a Stmt) -> Self {
        Self {
            function,
            scope,
            values: FxHashMap::default(),
            changes: Vec::new(),
            in_loop: None,
            grad,
            branch: None,
            statement,
            returns: None,
            carried: FxHashMap::default(),
        }
    }
}

/// Whether a method gets no object.
fn is_static(node: FunctionNode<'_>) -> bool {
    node.decorators().iter().any(|it| match &it.expression {
        Expr::Name(name) => matches!(name.id.as_str(), "staticmethod" | "classmethod"),
        _ => false,
    })
}

/// Whether a dotted name is that of a class of modules.
pub(crate) fn catalogue_is_module(path: &str) -> bool {
    catalogue::is_module_class(&Path::of(path))
}
