//! Asks each class of functions what it saves, once it is sure that the getters tell the truth.

use pyo3::prelude::*;
use pyo3::types::PyModule;

use super::super::getters::{EmptyFunction, IN_PYBIND};
use super::super::layout::{Field, Layout};
use super::{SEARCHED, Search};
use crate::cpython::type_field::FREED_BY;
use crate::own_memory::Memory;

/// What a real function says about one of its saved tensors.
struct Truth {
    kind: usize,
    attribute: String,
    at: usize,
    list: bool,
}

impl Search {
    /// Asks the getters of all generated types, if they tell the truth of real functions.
    pub(super) fn fields(&mut self, examples: &Bound<'_, PyModule>, layout: &mut Layout) -> PyResult<()> {
        let types: Vec<(Bound<'_, PyAny>, String, Vec<String>)> =
            examples.getattr("function_types")?.call0()?.extract()?;
        let mut freed_by =
            types.iter().take(8).map(|(kind, ..)| self.memory.word(kind.as_ptr() as usize + FREED_BY));
        let first = freed_by.next().flatten();
        layout.wrappers_freed_by = first.filter(|&first| freed_by.all(|other| other == Some(first)));
        let (Some(function), Some(saved)) = (&layout.function, &mut layout.saved) else { return Ok(()) };
        let Some(mut empty) =
            EmptyFunction::new(function.in_object, saved.size).filter(|_| !types.is_empty())
        else {
            layout.warnings.push(
                "names of saved tensors cannot be asked for; they are recognised by what they look like"
                    .to_owned(),
            );
            return Ok(());
        };
        let truths = self.truths(function.in_object, saved.size);
        let told = truths.iter().all(|truth| {
            let kind = types.iter().find(|(kind, ..)| kind.as_ptr() as usize == truth.kind);
            kind.and_then(|(kind, ..)| empty.field(&mut self.memory, kind, &truth.attribute))
                .is_some_and(|field| (field.at, field.list) == (truth.at, truth.list))
        });
        if !told || truths.len() < 4 {
            layout.warnings.push("what functions saved cannot be asked for in this release of torch; saved tensors are recognised by what they look like".to_owned());
            return Ok(());
        }
        for (kind, name, attributes) in types {
            let known: Option<Vec<Field>> =
                attributes.iter().map(|attribute| empty.field(&mut self.memory, &kind, attribute)).collect();
            // A class of which not all is known is looked at as one that says nothing.
            if let Some(known) = known {
                saved.fields.insert(name, known);
            }
        }
        Ok(())
    }

    fn truths(&mut self, in_object: usize, size: usize) -> Vec<Truth> {
        let mut truths = Vec::new();
        for row in self.table("saved") {
            let &[object, saved, kind, name] = row.as_slice() else { continue };
            let (function, saved) =
                (self.memory.pointer(object + in_object), self.memory.pointer(saved + IN_PYBIND));
            let at = function.zip(saved).and_then(|(function, saved)| saved.checked_sub(function));
            let attribute = ["_raw_saved_self", "_raw_saved_other", "_raw_saved_mat2"]
                .get(name)
                .copied()
                .unwrap_or_default()
                .to_owned();
            // An impossible place, which no getter tells, if it is not known.
            truths.push(Truth { kind, attribute, at: at.unwrap_or(usize::MAX), list: false });
        }
        for row in self.table("saved lists") {
            let [object, kind, saved @ ..] = row.as_slice() else { continue };
            let function = self.memory.pointer(object + in_object);
            let first = saved.first().and_then(|saved| self.memory.pointer(saved + IN_PYBIND));
            let at = function.zip(first).and_then(|(function, first)| {
                let is = |memory: &mut Memory, at: usize| {
                    memory.pointer(function + at) == Some(first)
                        && memory.pointer(function + at + 8) == Some(first + size * saved.len())
                };
                (16..SEARCHED * 2).step_by(8).find(|&at| is(&mut self.memory, at))
            });
            truths.push(Truth {
                kind: *kind,
                attribute: "_raw_saved_indices".to_owned(),
                at: at.unwrap_or(usize::MAX),
                list: true,
            });
        }
        truths
    }
}
