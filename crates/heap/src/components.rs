//! Strongly connected components: which nodes can reach each other.

use crate::kept::{Graph, NONE};

/// The strongly connected components of a part of a graph.
#[derive(Debug, Default)]
pub(crate) struct Components {
    /// The component of each node; [`NONE`] for nodes outside the part.
    pub(crate) of: Vec<u32>,
    /// The nodes of one component after the other, the lowest of each first.
    nodes: Vec<u32>,
    /// Where the nodes of each component end.
    ends: Vec<usize>,
}

impl Components {
    /// Of the nodes for which `takes_part` says so. Tarjan, *Depth-first search and linear graph algorithms* (1972), with a stack of its own, so
    /// that chains of any length are no trouble.
    pub(crate) fn of(graph: &Graph, takes_part: impl Fn(u32) -> bool) -> Self {
        let n = graph.len();
        let mut found = Self { of: vec![NONE; n as usize], ..Self::default() };
        // When each node was first seen; once its component is known, so high that it is never the lowest.
        let mut seen = vec![0_u32; n as usize];
        let mut low = vec![0_u32; n as usize];
        let mut clock = 0;
        let mut open: Vec<u32> = Vec::new();
        // A node, and how many of its references were followed.
        let mut path: Vec<(u32, usize)> = Vec::new();
        for start in (0..n).filter(|&node| takes_part(node)) {
            if seen[start as usize] != 0 {
                continue;
            }
            path.push((start, 0));
            while let Some((node, followed)) = path.last_mut() {
                let (node, at) = (*node, *node as usize);
                if *followed == 0 && seen[at] == 0 {
                    clock += 1;
                    seen[at] = clock;
                    low[at] = clock;
                    open.push(node);
                }
                if let Some(&to) = graph.out(node).get(*followed) {
                    *followed += 1;
                    if !takes_part(to) {
                        continue;
                    }
                    if seen[to as usize] == 0 {
                        path.push((to, 0));
                    } else {
                        low[at] = low[at].min(seen[to as usize]);
                    }
                    continue;
                }
                path.pop();
                if let Some(&(above, _)) = path.last() {
                    low[above as usize] = low[above as usize].min(low[at]);
                }
                if low[at] == seen[at] {
                    found.close(node, &mut open, &mut seen);
                }
            }
        }
        found
    }

    /// The component that a node is the first of is complete.
    fn close(&mut self, first: u32, open: &mut Vec<u32>, seen: &mut [u32]) {
        let number = self.ends.len() as u32;
        let start = self.nodes.len();
        while let Some(member) = open.pop() {
            seen[member as usize] = u32::MAX;
            self.of[member as usize] = number;
            self.nodes.push(member);
            if member == first {
                break;
            }
        }
        self.nodes[start..].sort_unstable();
        self.ends.push(self.nodes.len());
    }

    /// How many components there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The nodes of a component, the lowest first.
    pub(crate) fn members(&self, component: u32) -> &[u32] {
        let at = component as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.nodes[start..self.ends[at]]
    }

    /// Those that no other component refers to, the one with the lowest node first.
    pub(crate) fn sources(&self, graph: &Graph) -> Vec<u32> {
        let mut is_source = vec![true; self.ends.len()];
        for (from, component) in (0..).zip(&self.of).filter(|&(_, &component)| component != NONE) {
            for &to in graph.out(from) {
                let other = self.of[to as usize];
                if other != NONE && other != *component {
                    is_source[other as usize] = false;
                }
            }
        }
        let mut sources: Vec<u32> =
            (0..).zip(is_source).filter_map(|(component, is)| is.then_some(component)).collect();
        sources.sort_unstable_by_key(|&component| self.members(component).first().copied());
        sources
    }

    /// Whether the nodes of a component reach themselves.
    pub(crate) fn is_cycle(&self, graph: &Graph, component: u32) -> bool {
        match *self.members(component) {
            [only] => graph.out(only).contains(&only),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reaches(graph: &Graph, from: u32, to: u32) -> bool {
        let mut seen = vec![false; graph.len() as usize];
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            for &next in graph.out(node) {
                if next == to {
                    return true;
                }
                if !std::mem::replace(&mut seen[next as usize], true) {
                    open.push(next);
                }
            }
        }
        false
    }

    proptest! {
        #[test]
        fn nodes_of_a_component_reach_each_other(edges in prop::collection::vec((0_u32..12, 0_u32..12), 0..40)) {
            let mut nodes = vec![Vec::new(); 12];
            for (from, to) in edges {
                nodes[from as usize].push(to);
            }
            let graph = Graph::of(&nodes);
            let components = Components::of(&graph, |_| true);
            for a in 0..12 {
                for b in 0..12 {
                    let together = a == b || (reaches(&graph, a, b) && reaches(&graph, b, a));
                    prop_assert_eq!(components.of[a as usize] == components.of[b as usize], together);
                }
            }
            for component in 0..components.len() {
                let members = components.members(component);
                prop_assert_eq!(components.is_cycle(&graph, component), reaches(&graph, members[0], members[0]));
                let is_source = (0..12).all(|from| members.contains(&from) || !reaches(&graph, from, members[0]));
                prop_assert_eq!(components.sources(&graph).contains(&component), is_source);
            }
        }
    }

    #[test]
    fn long_cycles_need_no_recursion() {
        let n = 1_000_000;
        let nodes: Vec<Vec<u32>> = (0..n).map(|node| vec![(node + 1) % n]).collect();
        assert_eq!(Components::of(&Graph::of(&nodes), |_| true).len(), 1);
    }
}
