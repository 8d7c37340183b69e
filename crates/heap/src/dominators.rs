//! Dominators: which node every path to another must pass, and so what would be freed with it.

use crate::kept::{Graph, NONE};

/// What each node dominates, itself included: nothing of it can be reached but through the node.
#[derive(Debug)]
pub(crate) struct Dominated {
    /// The sum of the weights of what each node dominates.
    pub(crate) bytes: Vec<u64>,
    /// Numbers such that a node dominates those from its own up to, not including, `ends` of it.
    starts: Vec<u32>,
    ends: Vec<u32>,
}

impl Dominated {
    /// Whether nothing reaches a node but through another, or it is that one.
    #[inline]
    pub(crate) fn dominates(&self, above: u32, node: u32) -> bool {
        let (above, node) = (above as usize, node as usize);
        self.starts[above] <= self.starts[node] && self.starts[node] < self.ends[above]
    }

    /// The sum of what some nodes dominate, each weight counted once though one of the nodes dominates another. Sorts the nodes.
    pub(crate) fn by_all(&self, nodes: &mut [u32]) -> u64 {
        nodes.sort_unstable_by_key(|&node| self.starts[node as usize]);
        let mut covered = 0;
        let mut sum = 0_u64;
        for &node in nodes.iter() {
            let at = node as usize;
            if self.starts[at] >= covered {
                sum = sum.saturating_add(self.bytes[at]);
                covered = self.ends[at];
            }
        }
        sum
    }
}

/// The nodes of a graph in the order in which a search depth first meets them, from 1; 0 stands for what refers to all entries.
struct Preorder {
    /// The node at each place but the first.
    nodes: Vec<u32>,
    /// The place of each node; [`NONE`] if nothing leads to it.
    place: Vec<u32>,
    /// The place from which each was met.
    parent: Vec<u32>,
}

impl Preorder {
    fn of(graph: &Graph, entries: &[u32]) -> Self {
        let n = graph.len() as usize;
        let mut this = Self { nodes: vec![NONE], place: vec![NONE; n], parent: vec![0] };
        let mut path: Vec<(u32, usize)> = Vec::new();
        for &entry in entries {
            if this.place[entry as usize] != NONE {
                continue;
            }
            this.meet(entry, 0);
            path.push((entry, 0));
            while let Some((node, followed)) = path.last_mut() {
                let Some(&to) = graph.out(*node).get(*followed) else {
                    path.pop();
                    continue;
                };
                *followed += 1;
                if this.place[to as usize] == NONE {
                    let from = this.place[*node as usize];
                    this.meet(to, from);
                    path.push((to, 0));
                }
            }
        }
        this
    }

    fn meet(&mut self, node: u32, from: u32) {
        self.place[node as usize] = self.nodes.len() as u32;
        self.nodes.push(node);
        self.parent.push(from);
    }
}

/// The dominator of each place of a preorder, as a place.
///
/// Semi-NCA: Georgiadis, Tarjan, Werneck, *Finding dominators in practice* (2006). Semidominators as Lengauer and Tarjan find them, with path
/// compression only, and from them the dominators by climbing: the nearest ancestor at or above the semidominator.
fn dominators(graph: &Graph, entries: &[u32], order: &Preorder) -> Vec<u32> {
    let n = order.nodes.len();
    // References into each place, the one by which it was met left out: its place is where a semidominator starts from anyway.
    let mut starts = vec![0_u32; n + 1];
    let each = |call: &mut dyn FnMut(u32, u32)| {
        for &entry in entries {
            let to = order.place[entry as usize];
            if order.parent[to as usize] != 0 {
                call(0, to);
            }
        }
        for (from, &node) in (0..).zip(&order.nodes).skip(1) {
            for &to in graph.out(node) {
                let to = order.place[to as usize];
                // To itself, and the one of the search; of several from the same node all are left out.
                if from != to && order.parent[to as usize] != from {
                    call(from, to);
                }
            }
        }
    };
    each(&mut |_, to| starts[to as usize] += 1);
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    let mut sources = vec![0_u32; sum as usize];
    each(&mut |from, to| {
        let start = &mut starts[to as usize];
        *start -= 1;
        sources[*start as usize] = from;
    });

    let mut semi: Vec<u32> = order.parent.clone();
    let mut ancestor = order.parent.clone();
    let mut best: Vec<u32> = (0..n as u32).collect();
    let mut path: Vec<u32> = Vec::new();
    for place in (1..n as u32).rev() {
        let at = place as usize;
        let mut lowest = order.parent[at];
        for &source in &sources[starts[at] as usize..starts[at + 1] as usize] {
            let found = if source <= place {
                // Not linked yet, and so its own representative.
                source
            } else {
                semi[compress(source, place, &mut ancestor, &mut best, &semi, &mut path) as usize]
            };
            lowest = lowest.min(found);
        }
        semi[at] = lowest;
    }

    let mut dominator = order.parent.clone();
    for place in 1..n {
        let mut above = dominator[place];
        while above > semi[place] {
            above = dominator[above as usize];
        }
        dominator[place] = above;
    }
    dominator
}

/// The place with the lowest semidominator on the way from a place up to the last that is linked, all of which are above `limit`. Shortens the way.
fn compress(
    place: u32,
    limit: u32,
    ancestor: &mut [u32],
    best: &mut [u32],
    semi: &[u32],
    path: &mut Vec<u32>,
) -> u32 {
    let mut at = place;
    while ancestor[at as usize] > limit {
        path.push(at);
        at = ancestor[at as usize];
    }
    // From the top down: each takes over what is better above it.
    while let Some(below) = path.pop() {
        let (i, above) = (below as usize, ancestor[below as usize] as usize);
        if semi[best[above] as usize] < semi[best[i] as usize] {
            best[i] = best[above];
        }
        ancestor[i] = ancestor[above];
    }
    best[place as usize]
}

/// What each node dominates in a graph that is entered at some nodes. `bytes` are the nodes' own.
pub(crate) fn dominated(graph: &Graph, entries: &[u32], mut bytes: Vec<u64>) -> Dominated {
    let order = Preorder::of(graph, entries);
    let dominator = dominators(graph, entries, &order);
    let n = order.nodes.len();
    // Dominators come before what they dominate. First sums and sizes from below, then numbers from above.
    let mut sizes = vec![1_u32; n];
    for place in (1..n).rev() {
        let above = dominator[place] as usize;
        sizes[above] += sizes[place];
        if above != 0 {
            let sum = bytes[order.nodes[above] as usize].saturating_add(bytes[order.nodes[place] as usize]);
            bytes[order.nodes[above] as usize] = sum;
        }
    }
    let mut starts = vec![0_u32; graph.len() as usize];
    let mut ends = starts.clone();
    let mut free = vec![1_u32; n];
    for place in 1..n {
        let start = free[dominator[place] as usize];
        free[dominator[place] as usize] += sizes[place];
        free[place] = start + 1;
        let node = order.nodes[place] as usize;
        starts[node] = start;
        ends[node] = start + sizes[place];
    }
    Dominated { bytes, starts, ends }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What can be reached from the entries if one node is gone.
    fn reachable(graph: &Graph, entries: &[u32], without: u32) -> Vec<bool> {
        let mut seen = vec![false; graph.len() as usize];
        let mut open: Vec<u32> = entries.to_vec();
        while let Some(node) = open.pop() {
            if node != without && !std::mem::replace(&mut seen[node as usize], true) {
                open.extend(graph.out(node));
            }
        }
        seen
    }

    fn check(nodes: &[Vec<u32>], entries: &[u32]) {
        let graph = Graph::of(nodes);
        let own: Vec<u64> = (0..u64::from(graph.len())).map(|node| 1 << node).collect();
        let found = dominated(&graph, entries, own.clone());
        let all = reachable(&graph, entries, NONE);
        for node in 0..graph.len() {
            if !all[node as usize] {
                continue;
            }
            let rest = reachable(&graph, entries, node);
            for below in (0..graph.len()).filter(|&below| all[below as usize]) {
                assert_eq!(found.dominates(node, below), !rest[below as usize], "{node} of {nodes:?}");
            }
            let freed: u64 = (0..own.len()).filter(|&at| all[at] && !rest[at]).map(|at| own[at]).sum();
            assert_eq!(found.bytes[node as usize], freed, "{node} of {nodes:?} entered at {entries:?}");
        }
        let sum: u64 = (0..own.len()).filter(|&at| all[at]).map(|at| own[at]).sum();
        let mut reached: Vec<u32> = (0..graph.len()).filter(|&node| all[node as usize]).collect();
        assert_eq!(found.by_all(&mut reached), sum, "together all dominate all of {nodes:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn what_a_node_dominates_is_what_nothing_reaches_without_it(
            edges in prop::collection::vec((0_u32..14, 0_u32..14), 0..45),
            entries in prop::collection::vec(0_u32..14, 0..4),
        ) {
            let mut nodes = vec![Vec::new(); 14];
            for (from, to) in edges {
                nodes[from as usize].push(to);
            }
            check(&nodes, &entries);
        }

        #[test]
        fn a_union_counts_each_weight_once(
            edges in prop::collection::vec((0_u32..14, 0_u32..14), 0..45),
            chosen in prop::collection::vec(0_u32..14, 0..6),
        ) {
            let mut nodes = vec![Vec::new(); 14];
            for (from, to) in edges {
                nodes[from as usize].push(to);
            }
            let graph = Graph::of(&nodes);
            let all = reachable(&graph, &[0], NONE);
            let mut chosen: Vec<u32> = chosen.into_iter().filter(|&node| all[node as usize]).collect();
            let found = dominated(&graph, &[0], (0..14).map(|node| 1 << node).collect());
            let want = chosen.iter().fold(0, |bits, &node| bits | found.bytes[node as usize]);
            prop_assert_eq!(found.by_all(&mut chosen), want);
        }
    }

    #[test]
    fn long_chains_need_no_recursion() {
        // A chain that is entered at its head and tail, with a reference back from every node, and one forward over the next.
        let n = 1_000_000_u32;
        let nodes: Vec<Vec<u32>> = (0..n)
            .map(|node| vec![(node + 1).min(n - 1), node.saturating_sub(1), (node + 2).min(n - 1)])
            .collect();
        let found = dominated(&Graph::of(&nodes), &[0], vec![1; n as usize]);
        assert_eq!((found.bytes[0], found.bytes[1], found.bytes[n as usize - 2]), (u64::from(n), 1, 1));
    }
}
