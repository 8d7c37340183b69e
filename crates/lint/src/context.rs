//! What a rule may look at: the facts of one file, and judgements that several rules need.

mod afterwards;
mod bounds;
mod caches;
mod cases;
mod cells;
mod certainty;
mod compiled;
mod each_step;
mod edits;
mod evaluation;
mod gradients;
mod imports;
mod loaders;
mod objects;
mod recording;
mod repetition;
mod returns;
mod serving;
mod shapes;
mod text;
mod within;

use std::sync::OnceLock;

use crate::{
    calling::Calling,
    facts::{Call, Facts, Root},
    flow::value::{Class, FileId, Value},
    names::{Definition, FunctionId, Names, Path, ScopeId, Use},
    project::Project,
    source::Source,
    syntax::ast::Expr,
};

pub(crate) use cases::{Case, Kind, is_called_loss, is_copy};
pub(crate) use compiled::Compiled;
pub(crate) use each_step::EachStep;
pub(crate) use edits::blocks_of;
pub(crate) use gradients::Release;
pub(crate) use loaders::{LOADERS, Loader, Workers};
pub(crate) use objects::{HOOK_METHODS, first_name, is_done_once};
pub(crate) use repetition::{Repetition, Rounds};
pub(crate) use returns::holds_name;
pub(crate) use text::needs_parentheses;

/// Everything that is known about one file.
pub(crate) struct Context<'a> {
    pub(crate) source: &'a Source,
    pub(crate) file: FileId,
    pub(crate) names: &'a Names<'a>,
    pub(crate) facts: &'a Facts<'a>,
    pub(crate) project: &'a Project,
    pub(crate) calling: &'a Calling<'a>,
    /// What is kept in the file, once a rule has asked.
    cases: OnceLock<Vec<Case<'a>>>,
    /// How often each loop goes round, once a rule has asked.
    rounds: Vec<OnceLock<Rounds>>,
    /// Whether each function calls one that runs a backward pass, once a rule has asked.
    leaves_backward: Vec<OnceLock<bool>>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        source: &'a Source,
        file: FileId,
        names: &'a Names<'a>,
        facts: &'a Facts<'a>,
        project: &'a Project,
        calling: &'a Calling<'a>,
    ) -> Self {
        Self {
            source,
            file,
            names,
            facts,
            project,
            calling,
            cases: OnceLock::new(),
            rounds: names.loops.iter().map(|_| OnceLock::new()).collect(),
            leaves_backward: names.functions.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// Calls of what has this name at the end: `load` finds `torch.load(…)` and `x.load(…)`.
    pub(crate) fn calls_named(&self, name: &str) -> impl Iterator<Item = &'a Call<'a>> {
        self.facts.calls_named(name)
    }

    /// Calls of imported things with these dotted names.
    pub(crate) fn calls_to<'t>(
        &self,
        dotted: &'t [&'t str],
    ) -> impl Iterator<Item = &'a Call<'a>> + use<'a, 't> {
        let facts = self.facts;
        let mut names: Vec<&str> = dotted.iter().map(|it| it.rsplit('.').next().unwrap_or(it)).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().flat_map(move |name| facts.calls_named(name)).filter(move |it| it.is_to(dotted))
    }

    /// The text of a piece of the source.
    pub(crate) fn text(&self, place: impl crate::syntax::Ranged) -> &'a str {
        self.source.text().get(place.range().to_std_range()).unwrap_or("")
    }

    /// What an expression names by way of imports, as seen from a function.
    pub(crate) fn path(&self, function: FunctionId, expr: &'a Expr) -> Option<Path<'a>> {
        self.names.path(self.names.function(function).scope, expr)
    }

    /// Every mention of what a root stands for; of attributes, by their name alone.
    pub(crate) fn uses(&self, root: Root<'a>) -> &'a [Use<'a>] {
        match root {
            Root::Name(function, name) => self
                .names
                .scope(self.names.function(function).scope)
                .names
                .get(name)
                .map_or(&[], |it| &it.uses[..]),
            Root::SelfAttribute(_, name) | Root::Attribute(name) => {
                self.names.attributes.get(name).map_or(&[], |it| &it[..])
            }
            Root::Other => &[],
        }
    }

    /// What defines the name that a root stands for.
    pub(crate) fn definitions(&self, root: Root<'a>) -> &'a [Definition<'a>] {
        match root {
            Root::Name(function, name) => self
                .names
                .scope(self.names.function(function).scope)
                .names
                .get(name)
                .map_or(&[], |it| it.definitions.as_slice()),
            _ => &[],
        }
    }

    /// Whether a value is an instance of a module.
    pub(crate) fn is_module(&self, value: &Value) -> bool {
        matches!(value, Value::Object(class) if self.is_module_class(class))
    }

    /// Whether a class is one of modules.
    pub(crate) fn is_module_class(&self, class: &Class) -> bool {
        self.project.is_module(class)
            || matches!(class, Class::External(path) if crate::flow::catalogue_is_module(path))
    }

    /// The class that the code of a function belongs to: that of the method it is or is part of.
    pub(crate) fn class_around(&self, function: FunctionId) -> Option<crate::names::ClassId> {
        self.names.functions_from(function).find_map(|it| self.names.function(it).class)
    }

    /// The scope of a function.
    pub(crate) fn scope(&self, function: FunctionId) -> ScopeId {
        self.names.function(function).scope
    }

    /// Whether the file belongs to tests, benchmarks or examples, whose loops are short.
    pub(crate) fn is_test(&self) -> bool {
        let mut parts = self.source.name().rsplit(['/', '\\']);
        let file = parts.next().unwrap_or("");
        file.starts_with("test_")
            || file.ends_with("_test.py")
            || file == "conftest.py"
            || parts.any(|it| matches!(it, "test" | "tests" | "testing" | "benchmarks" | "_internal"))
    }
}
