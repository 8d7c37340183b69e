//! What no path reaches: garbage, and what something holds that was not found.

use crate::components::Components;
use crate::cycles::{Closing, Cycle};
use crate::kept::Kept;
use crate::names::Names;
use crate::search::Search;

/// The tops of what no path reaches.
#[derive(Debug, Default)]
pub(crate) struct Unreached {
    /// Nodes to which no reference was found at all. They exist, so something refers to them, and Python knows nothing of it.
    pub(crate) orphans: Vec<u32>,
    /// Cycles that hang on nothing.
    pub(crate) cycles: Vec<Cycle>,
}

impl Unreached {
    /// Of the nodes that a search did not reach.
    pub(crate) fn of(kept: &Kept, names: &dyn Names, search: &Search<'_>) -> Self {
        if search.order.len() == kept.len() as usize {
            return Self::default();
        }
        let components = Components::of(&kept.graph, |node| !search.is_reached(node));
        let mut this = Self::default();
        let mut closing = Closing::new(kept, names, &components);
        for component in components.sources(&kept.graph) {
            if components.is_cycle(&kept.graph, component) {
                this.cycles.extend(closing.cycle(component));
            } else {
                this.orphans.extend(components.members(component));
            }
        }
        this
    }
}
