//! The best path to each node.
//!
//! A path costs, in this order of weight: whether it runs through the autograd graph, what kind of root it begins at, whether it passes what is to
//! be avoided, and how many references it has. All but the last take few values, so that a search breadth first for each of their combinations,
//! best first, is a search by cost. Paths that
//! begin at what C code holds come after all others, and what cycles of garbage hold comes last.

use std::ops::Range;

use crate::graph::RootKind;
use crate::kept::{Graph, NONE};
use crate::node_set::NodeSet;

/// Where the best path to a node begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// No path was found yet.
    Nowhere,
    /// At a root.
    Root(RootKind),
    /// At an object that C code holds too.
    Outside,
    /// At an object to which no reference was found at all.
    Orphan,
    /// At a cycle of garbage.
    Garbage,
}

/// How the best path reaches a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// Where it begins.
    pub(crate) origin: Origin,
    /// Whether it runs through the autograd graph.
    pub(crate) through: bool,
    /// Whether it may pass what is to be avoided.
    detour: bool,
}

/// The best paths that were found so far.
pub(crate) struct Search<'a> {
    graph: &'a Graph,
    autograd: &'a NodeSet,
    avoided: &'a NodeSet,
    /// The node before on the path; [`NONE`] where it begins.
    pub(crate) parent: Vec<u32>,
    /// How many references the path has.
    pub(crate) depth: Vec<u32>,
    /// How the path reaches the node.
    pub(crate) reach: Vec<Reach>,
    /// The nodes that were reached, each after the one before it on its path.
    pub(crate) order: Vec<u32>,
}

impl<'a> Search<'a> {
    /// Nothing is reached yet.
    pub(crate) fn new(graph: &'a Graph, autograd: &'a NodeSet, avoided: &'a NodeSet) -> Self {
        let n = graph.len() as usize;
        Self {
            graph,
            autograd,
            avoided,
            parent: vec![NONE; n],
            depth: vec![0; n],
            reach: vec![Reach { origin: Origin::Nowhere, through: false, detour: false }; n],
            order: Vec::new(),
        }
    }

    /// Whether a path to a node was found.
    #[inline]
    pub(crate) fn is_reached(&self, node: u32) -> bool {
        self.reach[node as usize].origin != Origin::Nowhere
    }

    /// Finds paths from roots, given in order of preference.
    pub(crate) fn enter_roots(&mut self, roots: &[(RootKind, u32)]) {
        let kinds: Vec<(Origin, Vec<u32>)> = roots
            .chunk_by(|a, b| a.0 == b.0)
            .filter_map(|kind| {
                Some((Origin::Root(kind.first()?.0), kind.iter().map(|root| root.1).collect()))
            })
            .collect();
        let mut found = Vec::new();
        for &(origin, ref nodes) in &kinds {
            let straight = self.spread(nodes, &[], Reach { origin, through: false, detour: false });
            let reach = Reach { origin, through: false, detour: true };
            let round = self.spread(nodes, std::slice::from_ref(&straight), reach);
            found.push([straight, round]);
        }
        for (&(origin, ref nodes), found) in kinds.iter().zip(found) {
            self.spread(nodes, &found, Reach { origin, through: true, detour: true });
        }
    }

    /// Finds paths from nodes of another origin.
    pub(crate) fn enter(&mut self, origin: Origin, nodes: &[u32]) {
        let found = self.spread(nodes, &[], Reach { origin, through: false, detour: true });
        self.spread(nodes, &[found], Reach { origin, through: true, detour: true });
    }

    /// Searches breadth first from new nodes, and from those that are in parts of the order already, which count for their depths. Returns the
    /// part of the order that is new.
    fn spread(&mut self, new: &[u32], found: &[Range<usize>], reach: Reach) -> Range<usize> {
        let start = self.order.len();
        let (graph, autograd, avoided) = (self.graph, self.autograd, self.avoided);
        let may_enter =
            |node| (reach.through || !autograd.contains(node)) && (reach.detour || !avoided.contains(node));
        let mut level: Vec<u32> = Vec::new();
        let mut next: Vec<u32> = Vec::new();
        for &node in new {
            if !self.is_reached(node) && may_enter(node) {
                self.reach(node, NONE, 0, reach);
                level.push(node);
            }
        }
        let mut depth = 0;
        // Each in order of depth.
        let mut found: Vec<_> = found.iter().map(|found| found.clone().peekable()).collect();
        loop {
            if level.is_empty() {
                let nearest = found.iter_mut().filter_map(|found| found.peek().copied());
                let Some(nearest) = nearest.map(|at| self.depth[self.order[at] as usize]).min() else {
                    break;
                };
                depth = nearest;
            }
            for found in &mut found {
                while let Some(at) = found.next_if(|&at| self.depth[self.order[at] as usize] <= depth) {
                    level.push(self.order[at]);
                }
            }
            for &node in &level {
                for &to in graph.out(node) {
                    let at = to as usize;
                    if !self.is_reached(to) {
                        if may_enter(to) {
                            self.reach(to, node, depth + 1, reach);
                            next.push(to);
                        }
                    } else if self.depth[at] == depth + 1 && self.reach[at] == reach && node < self.parent[at]
                    {
                        // As good, and the lower number decides. Both were met in this sweep: no two have the same reach.
                        self.parent[at] = node;
                    }
                }
            }
            std::mem::swap(&mut level, &mut next);
            next.clear();
            depth += 1;
        }
        start..self.order.len()
    }

    fn reach(&mut self, node: u32, parent: u32, depth: u32, reach: Reach) {
        let at = node as usize;
        self.parent[at] = parent;
        self.depth[at] = depth;
        self.reach[at] = reach;
        self.order.push(node);
    }
}
