//! The part of the heap that matters: what can reach a block.

use crate::graph::Heap;
use crate::node_set::{NodeSet, Numbered};

/// Stands for no node.
pub(crate) const NONE: u32 = u32::MAX;

/// References between nodes that are numbered from 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    /// Where the references of each node begin, and where the last ones end.
    offsets: Vec<u32>,
    targets: Vec<u32>,
}

impl Graph {
    /// Of the references of each node in turn.
    #[cfg(test)]
    pub(crate) fn of(nodes: &[Vec<u32>]) -> Self {
        let mut graph = Self { offsets: vec![0], targets: Vec::new() };
        for targets in nodes {
            graph.targets.extend(targets);
            graph.offsets.push(graph.targets.len() as u32);
        }
        graph
    }

    /// How many nodes there are.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.offsets.len().saturating_sub(1) as u32
    }

    /// How many references there are.
    pub(crate) fn n_references(&self) -> usize {
        self.targets.len()
    }

    /// The same with all references turned round.
    pub(crate) fn reversed(&self) -> Self {
        let mut offsets = vec![0_u32; self.offsets.len().max(1)];
        for &to in &self.targets {
            offsets[to as usize] += 1;
        }
        let mut sum = 0;
        for offset in &mut offsets {
            sum += *offset;
            *offset = sum;
        }
        let mut targets = vec![0_u32; self.targets.len()];
        for from in 0..self.len() {
            for &to in self.out(from) {
                let at = &mut offsets[to as usize];
                *at -= 1;
                targets[*at as usize] = from;
            }
        }
        Self { offsets, targets }
    }

    /// The same without some of the references.
    pub(crate) fn without(&self, is_taken: impl Fn(u32, u32) -> bool) -> Self {
        let mut graph = Self { offsets: Vec::with_capacity(self.offsets.len()), targets: Vec::new() };
        graph.offsets.push(0);
        for from in 0..self.len() {
            graph.targets.extend(self.out(from).iter().filter(|&&to| !is_taken(from, to)));
            graph.offsets.push(graph.targets.len() as u32);
        }
        graph
    }

    /// What some nodes lead to, themselves included, by way of nodes that may be entered.
    pub(crate) fn reachable(
        &self,
        from: impl IntoIterator<Item = u32>,
        may_enter: impl Fn(u32) -> bool,
    ) -> NodeSet {
        let mut reached = NodeSet::empty(self.len());
        let mut open: Vec<u32> = from.into_iter().filter(|&node| reached.insert(node)).collect();
        while let Some(node) = open.pop() {
            open.extend(self.out(node).iter().filter(|&&to| may_enter(to) && reached.insert(to)));
        }
        reached
    }

    /// What a node refers to.
    #[inline]
    pub(crate) fn out(&self, node: u32) -> &[u32] {
        let at = node as usize;
        &self.targets[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }
}

/// What can reach a block, numbered anew in the same order.
#[derive(Debug)]
pub(crate) struct Kept {
    numbered: Numbered,
    /// The heap's number of each node.
    nodes: Vec<u32>,
    /// References between them; none into roots.
    pub(crate) graph: Graph,
}

impl Kept {
    /// How many nodes there are.
    pub(crate) fn len(&self) -> u32 {
        self.numbered.len()
    }

    /// The number here of a node of the heap.
    #[inline]
    pub(crate) fn find(&self, heap_node: u32) -> Option<u32> {
        self.numbered.find(heap_node)
    }

    /// The number in the heap of a node from here.
    #[inline]
    pub(crate) fn heap_node(&self, node: u32) -> u32 {
        self.nodes[node as usize]
    }

    /// A part of it, numbered anew in the same order. In there, what is the heap's number to others is the number in here, except for
    /// [`heap_node`](Self::heap_node).
    pub(crate) fn part(&self, set: NodeSet, is_taken: impl Fn(u32, u32) -> bool) -> Self {
        let numbered = set.numbered();
        let within = numbered.nodes();
        let mut graph = Graph { offsets: Vec::with_capacity(within.len() + 1), targets: Vec::new() };
        graph.offsets.push(0);
        for &from in &within {
            let targets = self.graph.out(from).iter().filter(|&&to| !is_taken(from, to));
            graph.targets.extend(targets.filter_map(|&to| numbered.find(to)));
            graph.offsets.push(graph.targets.len() as u32);
        }
        let nodes = within.into_iter().map(|node| self.heap_node(node)).collect();
        Self { numbered, nodes, graph }
    }

    /// Those of some nodes of the heap that are here.
    pub(crate) fn set_of(&self, heap_nodes: impl IntoIterator<Item = u32>) -> NodeSet {
        NodeSet::of(self.len(), heap_nodes.into_iter().filter_map(|node| self.find(node))).0
    }
}

/// Whether the columns of the edges fit together: offsets grow, and end within the targets. Else a few offsets could claim the same targets again
/// and again.
pub(crate) fn edges_are_sound(heap: &Heap) -> bool {
    let offsets = &heap.edges.offsets;
    let most = u32::MAX as usize;
    offsets.is_sorted()
        && offsets.last().is_none_or(|&end| end as usize <= heap.edges.targets.len())
        && heap.edges.targets.len().saturating_add(heap.more_edges.len()) < most
}

/// Keeps what can reach a block without passing a root or a hidden node. Nothing else can lie on a path from a root to a block, and which of the
/// kept nodes dominate which does not change.
///
/// The references are turned round by chaining those into each node: one pass with one access out of order for each. Only the few that are
/// followed need their source, which is looked up then.
pub(crate) fn keep(heap: &Heap, roots: &NodeSet, hidden: &NodeSet) -> Kept {
    let n = heap.n_nodes;
    let incoming = Incoming::of(heap);
    let mut set = NodeSet::empty(n);
    let mut open: Vec<u32> = Vec::new();
    for block in &heap.blocks {
        if !hidden.contains(block.node) && set.insert(block.node) {
            open.push(block.node);
        }
    }
    while let Some(node) = open.pop() {
        if roots.contains(node) {
            continue;
        }
        incoming.each_source(heap, node, |source| {
            if !hidden.contains(source) && set.insert(source) {
                open.push(source);
            }
        });
    }
    drop(incoming);

    let numbered = set.numbered();
    let nodes = numbered.nodes();
    let mut more: Vec<(u32, u32)> = (heap.more_edges.iter())
        .filter_map(|&(from, to)| Some((numbered.find(from)?, numbered.find(to)?)))
        .collect();
    // Stable: the order among those of one node is that in which they were given.
    more.sort_by_key(|&(from, _)| from);
    let mut more = more.into_iter().peekable();
    let mut graph = Graph { offsets: Vec::with_capacity(nodes.len() + 1), targets: Vec::new() };
    graph.offsets.push(0);
    for (number, &node) in (0..).zip(&nodes) {
        let mut add = |to: u32| {
            if !roots.contains(nodes[to as usize]) {
                graph.targets.push(to);
            }
        };
        heap.edges.of(node).iter().filter_map(|&to| numbered.find(to)).for_each(&mut add);
        while let Some((_, to)) = more.next_if(|&(from, _)| from == number) {
            add(to);
        }
        graph.offsets.push(graph.targets.len() as u32);
    }
    Kept { numbered, nodes, graph }
}

/// References by what they lead to. References are numbered through: first those of the columns, then the others.
struct Incoming {
    /// The last reference into each node.
    last: Vec<u32>,
    /// The reference before each that leads to the same node.
    before: Vec<u32>,
    /// The node that the references of each stretch of the columns begin with.
    stretches: Vec<u32>,
}

/// References of a stretch.
const STRETCH: usize = 64;

impl Incoming {
    fn of(heap: &Heap) -> Self {
        let mut last = vec![NONE; heap.n_nodes as usize];
        let in_columns = &heap.edges.targets;
        let all = in_columns.iter().copied().chain(heap.more_edges.iter().map(|&(_, to)| to));
        let mut before = Vec::with_capacity(in_columns.len() + heap.more_edges.len());
        before.extend(
            (0_u32..).zip(all).map(|(edge, to)| {
                last.get_mut(to as usize).map_or(NONE, |last| std::mem::replace(last, edge))
            }),
        );
        let mut stretches = vec![0; in_columns.len() / STRETCH + 1];
        for (node, &end) in (0..).zip(heap.edges.offsets.iter().skip(1)) {
            // Stretches that begin behind this node's references begin with a later node.
            if let Some(stretch) = stretches.get_mut((end as usize).div_ceil(STRETCH)) {
                *stretch = node + 1;
            }
        }
        let mut at_least = 0;
        for stretch in &mut stretches {
            at_least = at_least.max(*stretch);
            *stretch = at_least;
        }
        Self { last, before, stretches }
    }

    /// Calls with every node that refers to a node.
    fn each_source(&self, heap: &Heap, node: u32, mut call: impl FnMut(u32)) {
        let mut edge = self.last.get(node as usize).copied().unwrap_or(NONE);
        while edge != NONE {
            if let Some(source) = self.source(heap, edge) {
                call(source);
            }
            edge = self.before.get(edge as usize).copied().unwrap_or(NONE);
        }
    }

    /// The node that a reference is of.
    fn source(&self, heap: &Heap, edge: u32) -> Option<u32> {
        let at = edge as usize;
        if let Some(more) = at.checked_sub(heap.edges.targets.len()) {
            let (from, _) = *heap.more_edges.get(more)?;
            return (from < heap.n_nodes).then_some(from);
        }
        let first = *self.stretches.get(at / STRETCH)? as usize;
        let end = self.stretches.get(at / STRETCH + 1).map_or(usize::MAX, |&node| node as usize + 1);
        let ends = heap.edges.offsets.get(first + 1..)?;
        let ends = ends.get(..end.saturating_sub(first)).unwrap_or(ends);
        let source = first + ends.partition_point(|&end| end <= edge);
        let is_of_it = heap.edges.offsets.get(source).is_some_and(|&start| start <= edge)
            && heap.edges.offsets.get(source + 1).is_some_and(|&end| edge < end);
        (is_of_it && source < heap.n_nodes as usize).then_some(source as u32)
    }
}
