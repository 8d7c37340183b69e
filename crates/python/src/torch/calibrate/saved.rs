//! Where things lie in saved tensors, and where functions and `ctx` keep them.

use rustc_hash::FxHashMap;

use super::super::class::Family;
use super::super::getters::IN_PYBIND;
use super::super::layout::{ContextAt, FunctionAt, SavedAt};
use super::{SEARCHED, Search};

impl Search {
    pub(super) fn context(&mut self) -> Option<ContextAt> {
        let contexts: Vec<_> = self.table("contexts").iter().filter_map(|row| row.first().copied()).collect();
        let function = (16..SEARCHED).step_by(8).find(|at| {
            let mut functions = contexts.iter().map(|context| {
                self.memory
                    .pointer(context + at)
                    .is_some_and(|function| self.classes.is(&mut self.memory, function, Family::Function))
            });
            contexts.len() > 1 && functions.all(|is| is)
        })?;
        let back: Vec<_> = contexts
            .iter()
            .filter_map(|&context| Some((self.memory.pointer(context + function)?, context)))
            .collect();
        let back = self.find_by(&back, |word, context| word & !1 == context)?;
        let size = self.saved_size();
        let rows = self.table("saved variables");
        let saved = (16..SEARCHED).step_by(8).find(|at| {
            rows.len() > 1
                && rows.iter().all(|row| {
                    let Some((context, saved)) = row.split_first() else { return false };
                    let Some(first) = saved.first().and_then(|saved| self.memory.pointer(saved + IN_PYBIND))
                    else {
                        return false;
                    };
                    let end = size.map(|size| first + size * saved.len());
                    self.memory.pointer(context + at) == Some(first)
                        && self.memory.pointer(context + at + 8) == end
                })
        });
        Some(ContextAt { function, back, saved })
    }

    /// How far apart two saved tensors of one list are.
    pub(super) fn saved_size(&mut self) -> Option<usize> {
        let rows = self.table("saved variables");
        let row = rows.iter().find(|row| row.len() > 3)?;
        let places: Vec<_> =
            row.iter().skip(1).filter_map(|saved| self.memory.pointer(saved + IN_PYBIND)).collect();
        let size = places.get(1)?.checked_sub(*places.first()?)?;
        (places.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(size))
            && (16..1024).contains(&size))
        .then_some(size)
    }

    pub(super) fn saved(&mut self, function: &FunctionAt) -> Option<SavedAt> {
        let size = self.saved_size()?;
        let mut known = self
            .table("saved by custom functions")
            .into_iter()
            .flat_map(|row| row.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>());
        let first_word = known.all(|(saved, tensor)| {
            self.memory.pointer(saved + IN_PYBIND).and_then(|saved| self.memory.pointer(saved))
                == Some(tensor)
        });
        if !first_word {
            return None;
        }
        let rows: Vec<(usize, Vec<usize>)> = self
            .table("packed")
            .into_iter()
            .filter_map(|row| Some((self.memory.pointer(row.first()? + IN_PYBIND)?, row)))
            .collect();
        let hooks = (8..size).step_by(8).find(|at| {
            let mut are = rows.iter().map(|(saved, _)| {
                self.memory
                    .pointer(saved + at)
                    .is_some_and(|hooks| self.classes.is(&mut self.memory, hooks, Family::SavedHooks))
            });
            rows.len() > 1 && are.all(|is| is)
        });
        let mut at = SavedAt {
            size,
            hooks,
            owned: self.owned(),
            packed: Vec::new(),
            functions: Vec::new(),
            fields: FxHashMap::default(),
        };
        if let Some(hooks) = hooks {
            let held: Vec<_> = rows
                .iter()
                .filter_map(|(saved, row)| Some((self.memory.pointer(saved + hooks)?, row)))
                .collect();
            // The pack hook is let go of in some releases: the fifth column says whether it is held.
            let pack_held = rows.iter().all(|(_, row)| row.get(4).is_some_and(|&held| held > 0));
            for column in if pack_held { 1..4 } else { 2..4 } {
                let places: Vec<_> =
                    held.iter().filter_map(|(hooks, row)| Some((*hooks, *row.get(column)?))).collect();
                at.packed.extend(self.find(&places));
            }
            // With hooks, it holds the function that made the tensor, or the one that adds to a leaf's gradient.
            for made in [1, 0] {
                let sources = rows.iter().filter(|(_, row)| row.get(6) == Some(&made));
                let sources: Vec<_> = sources
                    .filter_map(|(saved, row)| {
                        Some((*saved, self.memory.pointer(row.get(5)? + function.in_object)?))
                    })
                    .collect();
                let place = (hooks..size).step_by(8).find(|place| {
                    !sources.is_empty()
                        && sources
                            .iter()
                            .all(|(saved, function)| self.memory.pointer(saved + place) == Some(*function))
                });
                at.functions.extend(place);
            }
        }
        Some(at)
    }

    /// Where it says that a saved tensor belongs to its Python object: set in the ones and not in the others.
    pub(super) fn owned(&mut self) -> Option<usize> {
        let [owned, borrowed] =
            ["owned saved tensors", "borrowed saved tensors"].map(|table| self.columns(table, 0, 1));
        (IN_PYBIND + 8..128).find(|at| {
            let mut is =
                |object: usize, flag: u8| self.memory.byte(object + at).is_some_and(|byte| byte & 1 == flag);
            let mut told = |rows: &[(usize, usize)], flag: u8| {
                rows.len() > 1 && rows.iter().all(|&(object, _)| is(object, flag))
            };
            // One bit among others: bytes of pointers are even, or differ.
            at.is_multiple_of(8) && told(&owned, 1) && told(&borrowed, 0)
        })
    }
}
