//! Whether code runs anew for every batch, step or epoch, and not only once or a few times.

use super::{Context, Repetition, Rounds};
use crate::{
    diagnostic::Diagnostic,
    facts::Position,
    names::{FunctionId, LoopId, LoopNode},
    syntax::{
        Ranged,
        ast::{Expr, Stmt},
    },
};

/// How far callers of callers are looked for.
const HOPS: u32 = 4;

/// How it is known that code runs at every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EachStep {
    /// It stands in this loop.
    In(LoopId),
    /// Its function is called in this loop.
    CalledIn(LoopId),
    /// Its function is one that a framework calls at every step: `forward`, `training_step`.
    Framework,
}

impl<'a> Context<'a> {
    /// Whether code runs anew at every step. Code under a condition, or behind a way out (`if key in cache: return …`), may
    /// well run once, and callers count only where they are in the same file.
    pub(crate) fn each_step(&self, at: &Position<'a>) -> Option<EachStep> {
        match self.data_loop(at.in_loop) {
            Some(id) => (!self.may_skip_rounds(at, Some(id))).then_some(EachStep::In(id)),
            None if self.may_run_once(at) => None,
            None => self.each_call(at.function, HOPS),
        }
    }

    /// The innermost loop over data that is or is around `innermost`.
    pub(crate) fn data_loop(&self, innermost: Option<LoopId>) -> Option<LoopId> {
        self.names.loops_from(innermost).find(|it| self.rounds(*it) == Rounds::Data)
    }

    /// The reason in words.
    pub(crate) fn because_each_step(
        &self,
        diagnostic: Diagnostic,
        each: EachStep,
        at: &Position<'a>,
    ) -> Diagnostic {
        let name = self.names.function(at.function).name;
        match each {
            EachStep::In(id) => {
                diagnostic.because_of(self.head(id), "this loop runs for each batch, step or epoch")
            }
            EachStep::CalledIn(id) => diagnostic.because_of(
                self.head(id),
                format!("this loop, which runs for each batch, step or epoch, calls `{name}`"),
            ),
            EachStep::Framework => diagnostic.because(format!("`{name}` runs at every step")),
        }
    }

    /// What a loop goes over, or its test.
    pub(crate) fn head(&self, id: LoopId) -> crate::syntax::TextRange {
        match self.names.the_loop(id).node {
            LoopNode::While(it) => it.test.range(),
            node => node.iterable().map_or(node.range(), Ranged::range),
        }
    }

    fn each_call(&self, function: FunctionId, hops: u32) -> Option<EachStep> {
        let hops = hops.checked_sub(1)?;
        let own = self.names.function(function);
        if function == FunctionId::MODULE || own.name == "__init__" {
            return None;
        }
        if self.repetition_of_function(function) == Some(Repetition::Framework) {
            return Some(EachStep::Framework);
        }
        self.calls_named(own.name)
            .filter(|it| self.project.called(&it.callee) == Some((self.file, function)))
            .find_map(|call| {
                if call.at.function == function {
                    return None;
                }
                match self.data_loop(call.at.in_loop) {
                    Some(id) => (!self.may_skip_rounds(&call.at, Some(id))).then_some(EachStep::CalledIn(id)),
                    None if self.may_run_once(&call.at) => None,
                    None => self.each_call(call.at.function, hops),
                }
            })
    }

    /// Whether something decides about running this code at all: an `if` around it, a way out before it, a cache of results.
    fn may_run_once(&self, at: &Position<'a>) -> bool {
        let function = self.names.function(at.function);
        let is_cached = function.node.decorators().iter().any(|it| {
            let callee = match &it.expression {
                Expr::Call(call) => &*call.func,
                other => other,
            };
            let name = self.text(callee);
            name.contains("cache") || name.contains("once") || name.contains("fixture")
        });
        is_cached || self.may_skip_rounds(at, None) || has_way_out(function.node.body(), at.statement)
    }

    /// Whether something decides in which rounds this code runs, in the loops up to and including `outermost`.
    fn may_skip_rounds(&self, at: &Position<'a>, outermost: Option<LoopId>) -> bool {
        let mut is_inside = true;
        let mut loops = self.names.loops_from(at.in_loop).take_while(|it| {
            let was_inside = is_inside;
            is_inside = was_inside && Some(*it) != outermost;
            was_inside
        });
        at.branch.is_some() || loops.any(|it| has_way_out(self.names.the_loop(it).node.body(), at.statement))
    }
}

/// Whether an `if` before a statement leaves its block.
fn has_way_out(body: &[Stmt], statement: &Stmt) -> bool {
    body.iter().take_while(|it| it.end() <= statement.start()).any(|it| match it {
        Stmt::If(it) => {
            matches!(it.body.last(), Some(Stmt::Return(_) | Stmt::Continue(_) | Stmt::Break(_)))
        }
        _ => false,
    })
}
