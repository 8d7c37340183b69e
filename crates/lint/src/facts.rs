//! What following a file's code found: the calls, what is kept beyond where it was made, and under which conditions.
//! Rules look at these and never follow code themselves.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    flow::{
        tape::Tape,
        value::{Class, FileId, Value},
    },
    names::{ClassId, FunctionId, LoopId, Path},
    syntax::{
        Ranged, TextRange,
        ast::{self, Expr, Stmt},
    },
};

/// Everything found in one file.
#[derive(Default)]
pub(crate) struct Facts<'a> {
    pub(crate) calls: Vec<Call<'a>>,
    /// Positions in `calls` by the last part of what is called: `load` for `torch.load`, `append` for `xs.append`.
    pub(crate) calls_by_name: FxHashMap<&'a str, Vec<u32>>,
    /// Positions in `calls` in the order of the source.
    pub(crate) calls_by_place: Vec<u32>,
    pub(crate) keeps: Vec<Keep<'a>>,
    pub(crate) assignments: Vec<Assignment<'a>>,
    pub(crate) withs: Vec<(&'a ast::StmtWith, Position<'a>)>,
    pub(crate) tries: Vec<(&'a ast::StmtTry, Position<'a>)>,
    /// By function: whether its code runs under `no_grad` by its own decorators.
    pub(crate) functions: Vec<FunctionFacts>,
    /// What the attributes of each class hold, as far as its methods assign them.
    pub(crate) attributes: FxHashMap<(ClassId, &'a str), Value>,
    /// What names hold when their function ends: all assignments joined.
    pub(crate) names: FxHashMap<(FunctionId, &'a str), Value>,
    pub(crate) tape: Tape,
    /// Names that are mentioned too often for it to be followed what is put into them.
    pub(crate) not_followed: FxHashSet<&'a str>,
}

/// Where in the running program something happens.
#[derive(Clone, Copy)]
pub(crate) struct Position<'a> {
    pub(crate) function: FunctionId,
    /// The innermost loop around it, in its function.
    pub(crate) in_loop: Option<LoopId>,
    /// Whether autograd records there.
    pub(crate) grad: Grad,
    /// The innermost `if`, `except`, `match` case around it, if any within its innermost loop or function.
    pub(crate) branch: Option<Branch<'a>>,
    /// The innermost statement around it.
    pub(crate) statement: &'a Stmt,
}

/// A part of code that runs only sometimes.
#[derive(Clone, Copy)]
pub(crate) enum Branch<'a> {
    /// Under an `if` (its test) or one of its `elif`s and `else`s.
    If(&'a Expr),
    Except(&'a ast::ExceptHandlerExceptHandler),
    Case,
}

/// Whether autograd records what is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grad {
    On,
    Off,
    /// As whoever calls the function has it.
    AsCaller,
    Unknown,
}

/// A call.
pub(crate) struct Call<'a> {
    pub(crate) expr: &'a ast::ExprCall,
    pub(crate) callee: Callee<'a>,
    /// What is known of the arguments: those by position, then those by keyword, in the order of the source; none if nothing is known
    /// of any, as is most often the case.
    pub(crate) arguments: Box<[Value]>,
    pub(crate) result: Value,
    pub(crate) at: Position<'a>,
}

/// What is called.
pub(crate) enum Callee<'a> {
    /// Something imported: `torch.load`.
    External(Box<Path<'a>>),
    /// A method of some object.
    Method {
        object: &'a Expr,
        value: Value,
        name: &'a str,
    },
    /// A function of the project.
    Function(FileId, FunctionId),
    /// A class of the project or an imported one that a name stands for: it makes an instance.
    Class(Class),
    /// An object: `model(x)`.
    Object(Value),
    Unknown,
}

/// Something put where it outlives the place that made it.
pub(crate) struct Keep<'a> {
    pub(crate) how: How,
    /// The statement or call that keeps.
    pub(crate) range: TextRange,
    /// Where it is put: `losses` in `losses.append(loss)`, `stats[k]` in `stats[k].append(loss)`.
    pub(crate) target: &'a Expr,
    pub(crate) root: Root<'a>,
    /// The key, if there is one.
    pub(crate) key: Option<&'a Expr>,
    pub(crate) kept: &'a Expr,
    pub(crate) value: Value,
    /// What was known of the target before.
    pub(crate) before: Value,
    /// The operation that stands for what the target held in the round before, for what goes on from it.
    pub(crate) carried: Option<u32>,
    /// The outermost loop that the target outlives, in the same function.
    pub(crate) outlived_loop: Option<LoopId>,
    /// Whether the target outlives the function.
    pub(crate) outlives_call: bool,
    pub(crate) at: Position<'a>,
}

/// How something is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// `xs.append(x)`, `add`, `insert`, `appendleft`, `put`, `push`
    Append,
    /// `xs.extend(…)`, `xs += […]`
    Extend,
    /// `d[key] = x`, `setdefault`
    SetItem,
    /// `d.update(…)`
    Update,
    /// `total += x`, `total = total + x`
    Accumulate,
    /// `x = f(x, …)`
    Chain,
    /// `x = torch.cat([x, …])`
    Concatenate,
    /// `self.last = x`
    SetAttribute,
}

/// The variable or attribute that something is reached by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Root<'a> {
    /// A name of a function (by way of its scope's function).
    Name(FunctionId, &'a str),
    /// `self.name` in a class of the file.
    SelfAttribute(ClassId, &'a str),
    /// `….name` of anything else.
    Attribute(&'a str),
    Other,
}

/// `target = value`.
pub(crate) struct Assignment<'a> {
    pub(crate) target: &'a Expr,
    pub(crate) expr: &'a Expr,
    pub(crate) value: Value,
    pub(crate) at: Position<'a>,
}

/// What is known of a function beside its code.
#[derive(Clone, Debug, Default)]
pub(crate) struct FunctionFacts {
    /// What it returns.
    pub(crate) returns: Value,
    /// Whether a decorator of it turns recording off or on.
    pub(crate) decorated: Option<Grad>,
    /// Whether it, not a function within it, runs a backward pass.
    pub(crate) has_backward: bool,
    /// Whether what a backward pass of it starts from is not understood, so that it may release anything.
    pub(crate) has_unknown_backward: bool,
    /// Registered as a hook: the methods that registered it.
    pub(crate) hook: Option<Hook>,
}

/// What kind of hook a function serves as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// Of a module, with what goes in and out: runs at each forward.
    Forward,
    /// Of a module or tensor, with gradients.
    Backward,
}

impl<'a> Call<'a> {
    /// Whether it calls one of these imported things, by their dotted names.
    pub(crate) fn is_to(&self, dotted: &[&str]) -> bool {
        match &self.callee {
            Callee::External(path) => dotted.iter().any(|it| path.is(it)),
            Callee::Class(Class::External(path)) => dotted.iter().any(|it| **path == **it),
            _ => false,
        }
    }

    /// The object and the name, if a method is called.
    pub(crate) fn method(&self) -> Option<(&'a Expr, &Value, &'a str)> {
        match &self.callee {
            Callee::Method { object, value, name } => Some((object, value, name)),
            _ => None,
        }
    }

    /// The last part of what is called, as it is written.
    pub(crate) fn last_name(&self) -> &'a str {
        match &*self.expr.func {
            Expr::Name(it) => it.id.as_str(),
            Expr::Attribute(it) => it.attr.as_str(),
            _ => "",
        }
    }

    /// The argument with this name.
    pub(crate) fn keyword(&self, name: &str) -> Option<&'a ast::Keyword> {
        self.expr.arguments.keywords.iter().find(|it| it.arg.as_ref().is_some_and(|it| it.as_str() == name))
    }

    /// Whether there are arguments of which nothing can be known: `*args`, `**kwargs`.
    pub(crate) fn has_unpacking(&self) -> bool {
        self.expr.arguments.args.iter().any(Expr::is_starred_expr)
            || self.expr.arguments.keywords.iter().any(|it| it.arg.is_none())
    }

    /// The argument with this name or at this position (from 0, the object of a method not counted).
    pub(crate) fn argument(&self, name: &str, position: usize) -> Option<&'a Expr> {
        self.keyword(name).map(|it| &it.value).or_else(|| self.expr.arguments.args.get(position))
    }

    /// What is known of an argument of this call.
    pub(crate) fn value_of(&self, argument: &Expr) -> &Value {
        let position = self
            .expr
            .arguments
            .args
            .iter()
            .chain(self.expr.arguments.keywords.iter().map(|it| &it.value))
            .position(|it| std::ptr::eq(it, argument));
        position.and_then(|it| self.arguments.get(it)).unwrap_or(&Value::Unknown)
    }

    /// Whether its result is thrown away.
    pub(crate) fn is_statement(&self) -> bool {
        match self.at.statement {
            Stmt::Expr(it) => match &*it.value {
                Expr::Call(call) => std::ptr::eq(call, self.expr),
                _ => false,
            },
            _ => false,
        }
    }

    /// The name that its statement gives its result to, if the statement does nothing else.
    pub(crate) fn name_of_result(&self) -> Option<&'a ast::ExprName> {
        let (target, value) = match self.at.statement {
            Stmt::Assign(it) => match it.targets.as_slice() {
                [target] => (target, &*it.value),
                _ => return None,
            },
            Stmt::AnnAssign(it) => (&*it.target, it.value.as_deref()?),
            _ => return None,
        };
        match (target, value) {
            (Expr::Name(name), Expr::Call(it)) if std::ptr::eq(it, self.expr) => Some(name),
            _ => None,
        }
    }
}

impl<'a> Facts<'a> {
    /// The calls in a part of the source, in its order.
    pub(crate) fn calls_within(&self, range: TextRange) -> impl Iterator<Item = &Call<'a>> {
        let starts_before =
            |it: &u32| self.calls.get(*it as usize).is_some_and(|it| it.expr.range().start() < range.start());
        let first = self.calls_by_place.partition_point(starts_before);
        let from_there = self.calls_by_place.get(first..).unwrap_or(&[]).iter();
        from_there
            .filter_map(|it| self.calls.get(*it as usize))
            .take_while(move |it| it.expr.range().start() < range.end())
            .filter(move |it| range.contains_range(it.expr.range()))
    }

    /// Calls by the last part of what is called.
    pub(crate) fn calls_named(&self, name: &str) -> impl Iterator<Item = &Call<'a>> {
        self.calls_by_name.get(name).into_iter().flatten().filter_map(|it| self.calls.get(*it as usize))
    }
}
