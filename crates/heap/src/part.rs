//! The part of the graph that can still reach some blocks when a path to them is given up.

use rustc_hash::FxHashMap;

use crate::cuts::{Cut, Cuts};
use crate::cycles::Cycle;
use crate::entries::Entries;
use crate::graph::RootKind;
use crate::kept::{Graph, Kept};
use crate::node_set::NodeSet;
use crate::search::Search;
use crate::trace::{Ground, Kinds};

/// A part of the kept graph, with numbers of its own.
pub(crate) struct Part {
    pub(crate) kept: Kept,
    kinds: Kinds,
    entries: Entries,
    cycles: FxHashMap<u32, Cycle>,
}

/// What may be on the other paths.
#[derive(Clone, Copy)]
pub(crate) struct Allowed<'a> {
    /// Whether they are those of modules: by Python references from roots, not through optimizers.
    pub(crate) of_modules: bool,
    /// Where the paths that are given up begin: other running functions have modules as arguments, and will end.
    pub(crate) own_origins: &'a [u32],
}

impl Part {
    /// What can reach some nodes without what is cut. Nothing if more references than `limit` lead there.
    pub(crate) fn of(
        ground: &Ground<'_>,
        entries: &Entries,
        incoming: &Graph,
        nodes: impl Iterator<Item = u32>,
        cuts: &Cuts,
        allowed: Allowed<'_>,
        limit: usize,
    ) -> Option<Self> {
        let kinds = ground.kinds;
        let may_enter = |node| {
            let is_by_design = kinds.autograd.contains(node) || kinds.avoided.contains(node);
            !(cuts.takes_node(node) || allowed.of_modules && is_by_design)
        };
        let mut set = NodeSet::empty(ground.kept.len());
        let mut open: Vec<u32> = nodes.filter(|&node| may_enter(node) && set.insert(node)).collect();
        let mut n_followed = 0;
        while let Some(node) = open.pop() {
            let sources = incoming.out(node);
            n_followed += sources.len();
            if n_followed > limit {
                return None;
            }
            let others = sources.iter().filter(|&&from| may_enter(from) && !cuts.takes(from, node));
            open.extend(others.filter(|&&from| set.insert(from)));
        }
        let kept = ground.kept.part(set, |from, to| cuts.takes(from, to));
        let renumbered = |set: &NodeSet| kept.set_of(set.iter());
        let kinds = Kinds {
            autograd: renumbered(&kinds.autograd),
            storages: renumbered(&kinds.storages),
            avoided: renumbered(&kinds.avoided),
            modules: renumbered(&kinds.modules),
        };
        let mut all = entries.clone();
        if allowed.of_modules {
            all.outside.clear();
            all.orphans.clear();
            all.cycles.clear();
            let runs = |kind| matches!(kind, RootKind::OwnFrame | RootKind::LibraryFrame);
            all.roots.retain(|&(kind, node)| !runs(kind) || allowed.own_origins.contains(&node));
        }
        let entries = all.renumbered(|node| kept.find(node));
        let cycles = entries.cycles_by_end();
        Some(Self { kept, kinds, entries, cycles })
    }

    /// How much work it is to go through it once.
    pub(crate) fn size(&self) -> usize {
        self.kept.graph.n_references() + self.kept.len() as usize
    }

    /// The graph without what some cuts take.
    pub(crate) fn without(&self, cuts: &Cuts) -> Graph {
        self.kept.graph.without(|from, to| cuts.takes(from, to))
    }

    /// Searches a graph of it, as the whole was searched, from all entries that some cuts leave.
    pub(crate) fn search<'a>(&'a self, graph: &'a Graph, cuts: &Cuts) -> Search<'a> {
        let mut search = Search::new(graph, &self.kinds.autograd, &self.kinds.avoided);
        self.entries.renumbered(|node| (!cuts.takes_node(node)).then_some(node)).enter(&mut search);
        search
    }

    /// What takes away the cycles of garbage that are called like the one with an end here.
    pub(crate) fn garbage_like(&self, end: u32) -> impl Iterator<Item = Cut> {
        let path = self.cycles.get(&end).map(|cycle| &cycle.path);
        let alike = self.entries.cycles.iter().filter(move |cycle| Some(&cycle.path) == path);
        alike.flat_map(|cycle| [Cut::Node(cycle.start), Cut::Node(cycle.owner)])
    }

    /// What is asked for while the paths of a search are followed.
    pub(crate) fn ground<'a>(&'a self, of: &Ground<'a>, search: &'a Search<'a>) -> Ground<'a> {
        Ground { kept: &self.kept, names: of.names, kinds: &self.kinds, search, cycles: &self.cycles }
    }

    /// What the entries that some cuts leave lead to in a graph of it.
    pub(crate) fn reachable(&self, graph: &Graph, cuts: &Cuts) -> NodeSet {
        let ends = self.entries.cycles.iter().flat_map(|cycle| [cycle.start, cycle.owner]);
        let all = self.entries.all().into_iter().chain(ends);
        graph.reachable(all.filter(|&node| !cuts.takes_node(node)), |_| true)
    }

    /// What hangs on what some cuts take away: through the autograd graph or without.
    pub(crate) fn beyond<'a>(
        &self,
        graph: &Graph,
        cuts: impl Iterator<Item = &'a Cut>,
        reached: &NodeSet,
        through: bool,
    ) -> NodeSet {
        let from = cuts.map(|cut| cut.beyond()).filter(|&node| reached.contains(node));
        graph.reachable(from, |node| through || !self.kinds.autograd.contains(node))
    }
}
