//! What every name in a file means: scopes, what binds a name, how it is used, and what imports it stands for.

mod collect;
mod mentions;
mod path;

use std::num::NonZeroU32;

use rustc_hash::FxHashMap;

use crate::syntax::{
    Ranged, TextRange,
    ast::{self, Expr},
};

pub(crate) use collect::collect;
pub(crate) use path::Path;

/// A function of a file by its number; the body of the module is number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FunctionId(pub(crate) u32);

/// A class of a file by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClassId(pub(crate) u32);

/// A loop of a file by its number. There are many places for one that may be missing, so that no number is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LoopId(NonZeroU32);

/// A scope of a file by its number; that of the module is number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ScopeId(pub(crate) u32);

impl LoopId {
    /// That of the loop at a position of [`Names::loops`].
    pub(crate) fn at(index: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(index as u32))
    }

    pub(crate) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl FunctionId {
    pub(crate) const MODULE: Self = Self(0);
}

impl ScopeId {
    pub(crate) const MODULE: Self = Self(0);
}

/// All that is known about the names of one file.
pub(crate) struct Names<'a> {
    pub(crate) scopes: Vec<Scope<'a>>,
    pub(crate) functions: Vec<Function<'a>>,
    pub(crate) classes: Vec<Class<'a>>,
    pub(crate) loops: Vec<Loop<'a>>,
    /// Every mention of an attribute `….name`, by its name, whatever the object; methods that are called are not in it.
    pub(crate) attributes: FxHashMap<&'a str, Box<[Use<'a>]>>,
    /// Everything that is imported anywhere in the file.
    pub(crate) imports: Vec<Path<'a>>,
    /// Functions, lambdas, classes and loops by where they are.
    by_range: FxHashMap<TextRange, Item>,
    /// The dotted name under which the file can be imported.
    pub(crate) module: &'a str,
}

/// What is at a range.
#[derive(Clone, Copy)]
enum Item {
    Function(FunctionId),
    Class(ClassId),
    Loop(LoopId),
}

/// Where names live.
pub(crate) struct Scope<'a> {
    pub(crate) kind: ScopeKind,
    pub(crate) parent: Option<ScopeId>,
    /// The function whose code it is part of.
    pub(crate) function: FunctionId,
    pub(crate) names: FxHashMap<&'a str, Name<'a>>,
}

/// What a scope belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScopeKind {
    Module,
    Class(ClassId),
    Function,
}

/// A name of a scope.
#[derive(Default)]
pub(crate) struct Name<'a> {
    pub(crate) definitions: Vec<Definition<'a>>,
    /// Where in `definitions` the first import is.
    pub(crate) import: Option<usize>,
    pub(crate) uses: Box<[Use<'a>]>,
    /// Declared `global` or `nonlocal`: it belongs to another scope.
    pub(crate) elsewhere: Option<Elsewhere>,
}

/// Where a declared name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    Global,
    Nonlocal,
}

/// Something that gives a name its value.
#[derive(Clone)]
pub(crate) enum Definition<'a> {
    /// `import a.b as name`, `from a import b as name`
    Import(Box<Path<'a>>),
    /// `name = value`, in this loop
    Value(&'a Expr, Option<LoopId>),
    /// `name += …`, `name: T`, part of an unpacking, `with … as name`, `except … as name`, a pattern
    Other(TextRange),
    /// `for name in …`, of a loop or a comprehension
    Loop(LoopId),
    Parameter(&'a ast::Parameter),
    Function(FunctionId),
    Class(ClassId),
}

/// One mention of a name or an attribute, and what is done with it.
#[derive(Clone, Copy)]
pub(crate) struct Use<'a> {
    pub(crate) expr: &'a Expr,
    pub(crate) usage: Usage<'a>,
    pub(crate) function: FunctionId,
    /// The innermost loop around it, in its function.
    pub(crate) in_loop: Option<LoopId>,
}

/// What is done with a name or attribute where it is mentioned.
#[derive(Clone, Copy)]
pub(crate) enum Usage<'a> {
    /// `x.name(…)`
    Method(&'a ast::ExprCall),
    /// `x.name`
    Attribute(&'a ast::ExprAttribute),
    /// `x[…]` read
    Item,
    /// `x[…].name(…)`
    ItemMethod(&'a ast::ExprCall),
    /// `x[…] = …`
    ItemStored(&'a ast::ExprSubscript),
    /// `x[…] += …`
    ItemAugmented,
    /// `del x[…]`
    ItemDeleted,
    /// `x(…)`
    Called(&'a ast::ExprCall),
    /// `f(x)`, `f(a=x)`, `f(*x)`
    Argument(&'a ast::ExprCall),
    /// `for … in x`
    Iterated,
    /// `return x`, `yield x`
    Returned,
    /// `… = x`
    Assigned,
    /// Part of a list, tuple, dict or set.
    Gathered,
    /// Compared, tested, asked for its truth.
    Tested,
    /// Operand of arithmetic.
    Operand,
    /// `x = …`
    Stored,
    /// `x += …`
    Augmented,
    /// `del x`
    Deleted,
    Other,
}

/// The name of the method that a call calls; empty if it calls no method.
pub(crate) fn method_name(call: &ast::ExprCall) -> &str {
    match &*call.func {
        Expr::Attribute(it) => it.attr.as_str(),
        _ => "",
    }
}

/// A function, a lambda, or the body of the module.
pub(crate) struct Function<'a> {
    pub(crate) node: FunctionNode<'a>,
    /// Empty for the module and lambdas.
    pub(crate) name: &'a str,
    pub(crate) scope: ScopeId,
    /// The class whose method it is.
    pub(crate) class: Option<ClassId>,
    /// The function around it; of the module: none.
    pub(crate) parent: Option<FunctionId>,
    /// The innermost loop around its definition, in the function around it.
    pub(crate) in_loop: Option<LoopId>,
    /// Whether there is a `yield` in it.
    pub(crate) is_generator: bool,
}

/// The syntax of a function.
#[derive(Clone, Copy)]
pub(crate) enum FunctionNode<'a> {
    Module(&'a [ast::Stmt]),
    Def(&'a ast::StmtFunctionDef),
    Lambda(&'a ast::ExprLambda),
}

/// A class.
pub(crate) struct Class<'a> {
    pub(crate) node: &'a ast::StmtClassDef,
    pub(crate) scope: ScopeId,
    pub(crate) parent: FunctionId,
    pub(crate) methods: FxHashMap<&'a str, FunctionId>,
}

/// A `for`, a `while` or a comprehension.
pub(crate) struct Loop<'a> {
    pub(crate) node: LoopNode<'a>,
    /// The loop around it, in the same function.
    pub(crate) parent: Option<LoopId>,
    pub(crate) function: FunctionId,
    /// Whether its body trains: has a `….backward()`, or a step of an optimizer.
    pub(crate) trains: bool,
}

/// The syntax of a loop.
#[derive(Clone, Copy)]
pub(crate) enum LoopNode<'a> {
    For(&'a ast::StmtFor),
    While(&'a ast::StmtWhile),
    Comprehension(&'a ast::Comprehension),
}

impl<'a> FunctionNode<'a> {
    pub(crate) fn body(self) -> &'a [ast::Stmt] {
        match self {
            Self::Module(body) => body,
            Self::Def(def) => &def.body,
            Self::Lambda(_) => &[],
        }
    }

    pub(crate) fn parameters(self) -> Option<&'a ast::Parameters> {
        match self {
            Self::Module(_) => None,
            Self::Def(def) => Some(&def.parameters),
            Self::Lambda(lambda) => lambda.parameters.as_deref(),
        }
    }

    pub(crate) fn decorators(self) -> &'a [ast::Decorator] {
        match self {
            Self::Def(def) => &def.decorator_list,
            _ => &[],
        }
    }
}

impl<'a> Function<'a> {
    /// Names of its parameters by position, `self` included, those after `*` too; `*args` and `**kwargs` are not.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &'a ast::ParameterWithDefault> {
        self.node
            .parameters()
            .into_iter()
            .flat_map(|it| it.posonlyargs.iter().chain(&it.args).chain(&it.kwonlyargs))
    }

    /// The name by which a method calls its object, by position.
    pub(crate) fn receiver(&self) -> Option<&'a str> {
        self.class?;
        self.parameters().next().map(|it| it.parameter.name.as_str())
    }

    /// Where it is.
    pub(crate) fn range(&self) -> TextRange {
        match self.node {
            FunctionNode::Module(_) => TextRange::default(),
            FunctionNode::Def(def) => def.range,
            FunctionNode::Lambda(lambda) => lambda.range,
        }
    }
}

impl<'a> LoopNode<'a> {
    pub(crate) fn range(self) -> TextRange {
        match self {
            Self::For(it) => it.range,
            Self::While(it) => it.range,
            Self::Comprehension(it) => it.range,
        }
    }

    /// What it goes over; nothing for `while`.
    pub(crate) fn iterable(self) -> Option<&'a Expr> {
        match self {
            Self::For(it) => Some(&it.iter),
            Self::While(_) => None,
            Self::Comprehension(it) => Some(&it.iter),
        }
    }

    pub(crate) fn target(self) -> Option<&'a Expr> {
        match self {
            Self::For(it) => Some(&it.target),
            Self::While(_) => None,
            Self::Comprehension(it) => Some(&it.target),
        }
    }

    /// The statements that it repeats; empty for a comprehension.
    pub(crate) fn body(self) -> &'a [ast::Stmt] {
        match self {
            Self::For(it) => &it.body,
            Self::While(it) => &it.body,
            Self::Comprehension(_) => &[],
        }
    }
}

impl<'a> Names<'a> {
    pub(crate) fn function(&self, id: FunctionId) -> &Function<'a> {
        &self.functions[id.0 as usize]
    }

    pub(crate) fn class(&self, id: ClassId) -> &Class<'a> {
        &self.classes[id.0 as usize]
    }

    pub(crate) fn the_loop(&self, id: LoopId) -> &Loop<'a> {
        &self.loops[id.index()]
    }

    pub(crate) fn scope(&self, id: ScopeId) -> &Scope<'a> {
        &self.scopes[id.0 as usize]
    }

    pub(crate) fn function_at(&self, node: impl Ranged) -> Option<FunctionId> {
        match self.by_range.get(&node.range()) {
            Some(Item::Function(id)) => Some(*id),
            _ => None,
        }
    }

    pub(crate) fn class_at(&self, node: impl Ranged) -> Option<ClassId> {
        match self.by_range.get(&node.range()) {
            Some(Item::Class(id)) => Some(*id),
            _ => None,
        }
    }

    pub(crate) fn loop_at(&self, range: TextRange) -> Option<LoopId> {
        match self.by_range.get(&range) {
            Some(Item::Loop(id)) => Some(*id),
            _ => None,
        }
    }

    /// The loops around and including `innermost`, from the inside out.
    pub(crate) fn loops_from(&self, innermost: Option<LoopId>) -> impl Iterator<Item = LoopId> {
        std::iter::successors(innermost, |it| self.the_loop(*it).parent)
    }

    /// The functions around and including `function`, from the inside out; the module is the last.
    pub(crate) fn functions_from(&self, function: FunctionId) -> impl Iterator<Item = FunctionId> {
        std::iter::successors(Some(function), |it| self.function(*it).parent)
    }

    /// The scope in which `name`, mentioned in `scope`, is bound. Nothing for builtins and for what the file does not define.
    pub(crate) fn scope_of(&self, scope: ScopeId, name: &str) -> Option<ScopeId> {
        let mut at = Some(scope);
        let mut is_first = true;
        while let Some(id) = at {
            let it = self.scope(id);
            // The names of a class are seen in its body, not in its methods.
            let is_visible = is_first || !matches!(it.kind, ScopeKind::Class(_));
            is_first = false;
            if is_visible && let Some(entry) = it.names.get(name) {
                match entry.elsewhere {
                    Some(Elsewhere::Global) => return Some(ScopeId::MODULE),
                    Some(Elsewhere::Nonlocal) => {}
                    None => return Some(id),
                }
            }
            at = it.parent;
        }
        None
    }

    /// What is known about `name` as mentioned in `scope`.
    pub(crate) fn name(&self, scope: ScopeId, name: &str) -> Option<&Name<'a>> {
        self.scope(self.scope_of(scope, name)?).names.get(name)
    }

    /// What an expression names by way of imports: `nn.Linear` is `torch.nn.Linear` after `from torch import nn`.
    pub(crate) fn path(&self, scope: ScopeId, expr: &'a Expr) -> Option<Path<'a>> {
        let mut attributes = Vec::new();
        let mut at = expr;
        let root = loop {
            match at {
                Expr::Attribute(it) => {
                    attributes.push(it.attr.as_str());
                    at = &it.value;
                }
                Expr::Name(it) => break it.id.as_str(),
                _ => return None,
            }
        };
        let name = self.name(scope, root)?;
        // A name with more than one import (`try: import a as x / except: import b as x`) means the first.
        let Definition::Import(path) = name.definitions.get(name.import?)? else { return None };
        let mut path = **path;
        for attribute in attributes.iter().rev() {
            path.push(attribute);
        }
        Some(path)
    }
}

impl<'a> Names<'a> {
    /// The class of this file that `expr` names.
    pub(crate) fn path_of_local_class(&self, scope: ScopeId, expr: &Expr) -> Option<ClassId> {
        let Expr::Name(it) = expr else { return None };
        self.name(scope, it.id.as_str())?.definitions.iter().find_map(|it| match it {
            Definition::Class(id) => Some(*id),
            _ => None,
        })
    }

    /// The bases of a class that are defined in this file.
    pub(crate) fn local_bases(&self, id: ClassId) -> Vec<ClassId> {
        let class = self.class(id);
        let scope = self.function(class.parent).scope;
        let bases = class.node.arguments.iter().flat_map(|it| it.args.iter());
        bases.filter_map(|it| self.path_of_local_class(scope, it)).filter(|it| *it != id).collect()
    }

    /// The bases of a class that are imported.
    pub(crate) fn external_bases(&self, id: ClassId) -> Vec<Path<'a>> {
        let class = self.class(id);
        let scope = self.function(class.parent).scope;
        let bases = class.node.arguments.iter().flat_map(|it| it.args.iter());
        bases.filter_map(|it| self.path(scope, it)).collect()
    }
}
