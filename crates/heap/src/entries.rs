//! Where paths begin: roots first, then what C code holds, then garbage.

use rustc_hash::FxHashMap;

use crate::cycles::Cycle;
use crate::graph::RootKind;
use crate::search::{Origin, Search};

/// The nodes at which paths begin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    /// Roots, in order of preference.
    pub(crate) roots: Vec<(RootKind, u32)>,
    /// What C code holds too.
    pub(crate) outside: Vec<u32>,
    /// To what no reference was found at all.
    pub(crate) orphans: Vec<u32>,
    /// Cycles of garbage.
    pub(crate) cycles: Vec<Cycle>,
}

impl Entries {
    /// All of them; of a cycle the object to which the closing reference leads.
    pub(crate) fn all(&self) -> Vec<u32> {
        let roots = self.roots.iter().map(|&(_, node)| node);
        let cycles = self.cycles.iter().map(|cycle| cycle.start);
        roots.chain(self.outside.iter().copied()).chain(self.orphans.iter().copied()).chain(cycles).collect()
    }

    /// Searches from all of them.
    pub(crate) fn enter(&self, search: &mut Search<'_>) {
        search.enter_roots(&self.roots);
        search.enter(Origin::Outside, &self.outside);
        self.enter_unreached(search);
    }

    /// Searches from those that no root reaches.
    pub(crate) fn enter_unreached(&self, search: &mut Search<'_>) {
        search.enter(Origin::Orphan, &self.orphans);
        // Memory may hang on either end of the closing reference.
        let ends: Vec<u32> = self.cycles.iter().flat_map(|cycle| [cycle.start, cycle.owner]).collect();
        search.enter(Origin::Garbage, &ends);
    }

    /// Cycles of garbage by both ends of their closing reference.
    pub(crate) fn cycles_by_end(&self) -> FxHashMap<u32, Cycle> {
        let by_end = |cycle: &Cycle| [(cycle.owner, cycle.clone()), (cycle.start, cycle.clone())];
        self.cycles.iter().flat_map(by_end).collect()
    }

    /// Those for which there is a new number.
    pub(crate) fn renumbered(&self, new: impl Fn(u32) -> Option<u32>) -> Self {
        let some = |nodes: &[u32]| nodes.iter().filter_map(|&node| new(node)).collect();
        Self {
            roots: self.roots.iter().filter_map(|&(kind, node)| Some((kind, new(node)?))).collect(),
            outside: some(&self.outside),
            orphans: some(&self.orphans),
            cycles: self
                .cycles
                .iter()
                .filter_map(|cycle| {
                    let (start, owner) = (new(cycle.start), new(cycle.owner));
                    Some(Cycle { start: start.or(owner)?, owner: owner.or(start)?, ..cycle.clone() })
                })
                .collect(),
        }
    }
}
