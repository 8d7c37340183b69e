//! Code that need not record for autograd: whether it does, whether it wants to, and how to say that it does not.

use super::Context;
use crate::{
    facts::{Grad, Position},
    fix::Edit,
    flow::value::Class,
    names::{Definition, FunctionId, FunctionNode, LoopId, ScopeId, Usage},
    syntax::{Ranged, TextRange, TextSize},
};

/// Calls that show that a piece of code works with gradients.
const GRADIENT_CALLS: &[&str] = &[
    "backward",
    "manual_backward",
    "grad",
    "requires_grad_",
    "enable_grad",
    "set_grad_enabled",
    "retain_grad",
    "register_hook",
    "register_full_backward_hook",
    "register_backward_hook",
    "jacobian",
    "hessian",
    "jacrev",
    "jacfwd",
    "vjp",
    "jvp",
    "value_and_grad",
    "zero_grad",
];

impl<'a> Context<'a> {
    /// Whether autograd records at a place as far as can be seen: certainly, or nobody who is seen to call the function turns
    /// it off and somebody does call it.
    pub(crate) fn seems_to_record(&self, at: &Position<'_>) -> bool {
        match self.grad(at) {
            Grad::On => true,
            Grad::Off => false,
            _ => at.grad == Grad::AsCaller && self.calling.is_called(self.file, at.function),
        }
    }

    /// Where a function, apart from those within it, works with gradients: the place, the loop around it, and whether it is
    /// a step of training.
    pub(crate) fn gradient_uses(
        &self,
        function: FunctionId,
    ) -> impl Iterator<Item = (TextRange, Option<LoopId>, bool)> {
        let calls = GRADIENT_CALLS.iter().flat_map(|it| self.calls_named(it));
        let calls = calls.filter(move |it| it.at.function == function).map(|it| {
            let trains = matches!(it.last_name(), "backward" | "manual_backward" | "zero_grad");
            (it.expr.range(), it.at.in_loop, trains)
        });
        let stored = self.names.attributes.get("requires_grad").into_iter().flatten();
        let stored = stored.filter(|it| matches!(it.usage, Usage::Stored));
        let read = self.names.attributes.get("grad").into_iter().flatten();
        let attributes = stored.chain(read).filter(move |it| it.function == function);
        calls.chain(attributes.map(|it| (it.expr.range(), it.in_loop, false)))
    }

    /// The name by which the file calls `torch`.
    pub(crate) fn name_of_torch(&self) -> Option<&'a str> {
        let names = self.names.scope(ScopeId::MODULE).names.iter();
        let of_torch = names.filter(
            |(_, entry)| matches!(entry.definitions.as_slice(), [Definition::Import(path)] if path.is("torch")),
        );
        of_torch.map(|(name, _)| *name).min()
    }

    /// Whether a class derives from one of these imported ones, given by the ends of their dotted names.
    pub(crate) fn derives_from(&self, class: crate::names::ClassId, names: &[&str]) -> bool {
        self.project
            .foreign_bases(&Class::Project(self.file, class))
            .iter()
            .any(|base| names.contains(&base.rsplit('.').next().unwrap_or(base)))
    }

    /// Puts `@torch.no_grad()` above a function, below its other decorators. Nothing for a coroutine, whose body runs after
    /// the decorator has ended, and where `torch` has no name.
    pub(crate) fn decorate_with_no_grad(&self, function: FunctionId) -> Option<Edit> {
        let torch = self.name_of_torch()?;
        let FunctionNode::Def(def) = self.names.function(function).node else { return None };
        if def.is_async {
            return None;
        }
        let text = self.source.text();
        let at = if let Some(last) = def.decorator_list.last() {
            let rest = text.get(usize::from(last.end())..)?;
            let line = rest.find('\n')?;
            last.end() + TextSize::try_from(line + 1).ok()?
        } else {
            let before = text.get(..usize::from(def.start()))?;
            TextSize::try_from(before.rfind(['\n', '\r']).map_or(0, |it| it + 1)).ok()?
        };
        // The blanks in front of the function, which are those in front of its first decorator.
        let before = text.get(..usize::from(def.start()))?;
        let indentation = before.get(before.rfind(['\n', '\r']).map_or(0, |it| it + 1)..)?;
        let is_blank = indentation.chars().all(char::is_whitespace);
        is_blank.then(|| Edit::insert(at, format!("{indentation}@{torch}.no_grad(){}", self.end_of_line())))
    }
}
