//! Which of the roots really are.

use crate::graph::{Heap, RootKind};
use crate::kept::{Kept, keep};
use crate::node_set::NodeSet;

impl RootKind {
    /// Whether it is alive by itself. Classes and suspended generators begin paths, but die like other objects.
    fn is_certain(self) -> bool {
        !matches!(self, Self::OwnClass | Self::Generator | Self::LibraryClass)
    }
}

/// Keeps what can reach a block, and tells the roots among it, in order of preference.
///
/// A class or generator that is itself garbage is no root. Whether one is, is looked at only where it matters: where it can reach a block.
pub(crate) fn keep_from_roots(heap: &Heap, hidden: &NodeSet) -> (Kept, Vec<(RootKind, u32)>) {
    let mut given: Vec<(RootKind, u32)> = heap
        .roots
        .iter()
        .map(|root| (root.kind, root.node))
        .filter(|&(_, node)| node < heap.n_nodes && !hidden.contains(node))
        .collect();
    given.sort_unstable();
    let nodes = |given: &[(RootKind, u32)]| NodeSet::of(heap.n_nodes, given.iter().map(|&(_, node)| node)).0;
    let mut kept = keep(heap, &nodes(&given), hidden);

    let certain = NodeSet::of(heap.n_nodes, certain(&given)).0;
    let doubtful = |kept: &Kept, node: u32| !certain.contains(node) && kept.find(node).is_some();
    let in_doubt: Vec<u32> =
        given.iter().map(|&(_, node)| node).filter(|&node| doubtful(&kept, node)).collect();
    if let Some(alive) = alive_but_for(heap, hidden, certain.iter().collect(), &in_doubt) {
        given.retain(|&(_, node)| alive.contains(node));
        kept = keep(heap, &nodes(&given), hidden);
    }
    let roots = given.into_iter().filter_map(|(kind, node)| Some((kind, kept.find(node)?))).collect();
    (kept, roots)
}

fn certain(given: &[(RootKind, u32)]) -> impl Iterator<Item = u32> + '_ {
    given.iter().filter(|(kind, _)| kind.is_certain()).map(|&(_, node)| node)
}

/// What is alive, unless all that is in doubt is.
fn alive_but_for(heap: &Heap, hidden: &NodeSet, certain: Vec<u32>, in_doubt: &[u32]) -> Option<NodeSet> {
    let mut missing = NodeSet::of(heap.n_nodes, in_doubt.iter().copied()).0;
    let mut n_missing = missing.iter().count();
    if n_missing == 0 {
        return None;
    }
    let mut more = heap.more_edges.clone();
    more.sort_unstable();
    let mut alive = NodeSet::empty(heap.n_nodes);
    let mut level: Vec<u32> = Vec::new();
    let mut next: Vec<u32> = certain;
    next.extend(&heap.held_outside);
    // Level by level: classes lie near their modules.
    while !next.is_empty() {
        level.clear();
        for node in next.drain(..) {
            if !hidden.contains(node) && alive.insert(node) {
                level.push(node);
                if missing.contains(node) {
                    missing.remove(node);
                    n_missing -= 1;
                    if n_missing == 0 {
                        return None;
                    }
                }
            }
        }
        for &node in &level {
            let start = more.partition_point(|&(from, _)| from < node);
            let others = more.iter().skip(start).take_while(|&&(from, _)| from == node).map(|&(_, to)| to);
            let all = heap.edges.of(node).iter().copied().chain(others);
            next.extend(all.filter(|&to| !alive.contains(to)));
        }
    }
    Some(alive)
}
