//! Random heaps against plain definitions.

use super::check_sums;
use proptest::prelude::*;
use vramscope_heap::{
    Block, BlockState, Class, Edges, Heap, Holder, Holders, NO_STORAGE, Names, Object, ObjectKind, Options,
    Reference, Root, RootKind, Through, find_holders,
};
use vramscope_model::Bytes;

/// Each path tells the last node on it, so that every block has a holder of its own.
struct ByNumber;

impl Names for ByNumber {
    fn object(&self, node: u32) -> Object {
        Object { kind: ObjectKind::Instance, type_name: format!("n{node}"), detail: String::new() }
    }

    fn reference(&self, _: Option<u32>, _: u32, to: u32) -> Reference {
        Reference::Named(format!("n{to}"))
    }
}

const N: u32 = 16;

/// What can be reached from some nodes without entering others.
fn reachable(heap: &Heap, from: &[u32], without: impl Fn(u32) -> bool) -> Vec<bool> {
    let mut seen = vec![false; N as usize];
    let mut open = from.to_vec();
    while let Some(node) = open.pop() {
        if !without(node) && !std::mem::replace(&mut seen[node as usize], true) {
            open.extend(heap.edges.of(node));
        }
    }
    seen
}

prop_compose! {
    fn heaps()(
        edges in prop::collection::vec((0..N, 0..N), 0..50),
        roots in prop::collection::btree_set(0..N, 0..4),
        outside in prop::collection::btree_set(0..N, 0..2),
        autograd in prop::collection::btree_set(0..N, 0..4),
        blocks in prop::collection::btree_set(0..N, 1..6),
    ) -> Heap {
        let mut edges: Vec<(u32, u32)> = edges;
        edges.sort_unstable();
        Heap {
            n_nodes: N,
            edges: Edges {
                offsets: (0..=N).map(|node| edges.partition_point(|&(from, _)| from < node) as u32).collect(),
                targets: edges.iter().map(|&(_, to)| to).collect(),
            },
            blocks: blocks.iter().map(|&node| Block {
                node,
                address: u64::from(node) << 12,
                bytes: Bytes(1 << node),
                device: None,
                state: BlockState::Allocated,
                born: None,
            }).collect(),
            roots: roots.iter().map(|&node| Root { kind: RootKind::OwnModule, node }).collect(),
            held_outside: outside.into_iter().collect(),
            autograd: autograd.into_iter().filter(|node| !blocks.contains(node)).collect(),
            ..Heap::default()
        }
    }
}

/// References from the nearest of some nodes to each.
fn distances(heap: &Heap, from: &[u32], without: impl Fn(u32) -> bool) -> Vec<Option<usize>> {
    let mut found = vec![None; N as usize];
    let mut level: Vec<u32> = from.to_vec();
    for distance in 0..=N as usize {
        level.retain(|&node| !without(node) && found[node as usize].is_none());
        for &node in &level {
            found[node as usize] = Some(distance);
        }
        level = level.iter().flat_map(|&node| heap.edges.of(node)).copied().collect();
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn paths_are_the_cheapest(
        mut heap in heaps(),
        kinds in prop::collection::vec(0_usize..3, 4),
        avoided in prop::collection::vec(0..N, 0..4),
    ) {
        let by_rank = [RootKind::OwnModule, RootKind::OwnFrame, RootKind::Interpreter];
        for (root, kind) in heap.roots.iter_mut().zip(kinds) {
            root.kind = by_rank[kind];
        }
        heap.avoided = avoided;
        let holders = find_holders(&heap, &ByNumber, &Options::default());
        for holder in &holders.holders {
            let roots_of = |kind| -> Vec<u32> {
                heap.roots.iter().filter(|root| root.kind == kind).map(|root| root.node).collect()
            };
            let number = |name: &str| name.trim_start_matches('n').parse::<u32>().unwrap();
            if holder.class != Class::UserHeld {
                continue;
            }
            // No path runs through two roots.
            let is_other_root =
                |kind, node| heap.roots.iter().any(|root| root.node == node && root.kind != kind);
            let first = number(&holder.chain[0].type_name);
            let found = heap.roots.iter().find(|root| root.node == first).unwrap().kind;
            let best = by_rank.into_iter().find(|&kind| {
                let is_shut = |node| is_other_root(kind, node) || heap.autograd.contains(&node);
                let distances = distances(&heap, &roots_of(kind), is_shut);
                holder_blocks(&heap, &holders, holder).all(|node| distances[node as usize].is_some())
            });
            prop_assert_eq!(Some(found), best);
            let is_shut = |node| {
                is_other_root(found, node) || heap.autograd.contains(&node) || heap.avoided.contains(&node)
            };
            let straight = distances(&heap, &roots_of(found), is_shut);
            let block = holder_blocks(&heap, &holders, holder).next().unwrap();
            if let Some(distance) = straight[block as usize] {
                prop_assert_eq!(holder.chain.len(), distance + 1);
                prop_assert!(holder.chain.iter().all(|link| !heap.avoided.contains(&number(&link.type_name))));
            }
        }
    }
}

/// The nodes of a holder's blocks.
fn holder_blocks<'a>(
    heap: &'a Heap,
    holders: &'a Holders,
    holder: &Holder,
) -> impl Iterator<Item = u32> + 'a {
    let at = holders.holders.iter().position(|other| other == holder);
    let held = heap.blocks.iter().zip(&holders.blocks);
    held.filter(move |(_, held)| Some(held.holder as usize) == at).map(|(block, _)| block.node)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn classes_are_what_reachability_says(heap in heaps()) {
        let holders = find_holders(&heap, &ByNumber, &Options::default());
        check_sums(&heap, &holders);
        let roots: Vec<u32> = heap.roots.iter().map(|root| root.node).collect();
        let by_python = reachable(&heap, &roots, |node| heap.autograd.contains(&node));
        let by_roots = reachable(&heap, &roots, |_| false);
        // Nodes that nothing refers to are held by something that was not found.
        let mut tops = heap.held_outside.clone();
        tops.extend((0..N).filter(|node| !heap.edges.targets.contains(node)));
        let by_outside = reachable(&heap, &tops, |_| false);
        for (block, held) in heap.blocks.iter().zip(&holders.blocks) {
            let at = block.node as usize;
            let holder = &holders.holders[held.holder as usize];
            let want = if by_python[at] {
                Class::UserHeld
            } else if by_roots[at] {
                Class::Activations
            } else if by_outside[at] {
                Class::CppHeld
            } else {
                Class::CycleGarbage
            };
            prop_assert_eq!(holder.class, want, "{}", at);
            if by_roots[at] {
                prop_assert_eq!(holder.through == Some(Through::Autograd), !by_python[at]);
            }
            prop_assert_eq!(holder.path.starts_with("unreachable: "), want == Class::CycleGarbage);
        }
    }
}

/// Each path tells the last reference on it, so that giving up a path cuts that one. Some nodes are containers. References that
/// the heap has more than once have as many names.
struct ByReference<'a>(&'a Heap);

/// Containers do not nest, so that a path tells which of them holds.
fn is_item(from: u32, to: u32) -> bool {
    from % 4 == 3 && to % 4 != 3
}

impl Names for ByReference<'_> {
    fn object(&self, node: u32) -> Object {
        ByNumber.object(node)
    }

    fn reference(&self, _: Option<u32>, from: u32, to: u32) -> Reference {
        if is_item(from, to) { Reference::Item } else { Reference::Named(format!("n{from}>n{to}")) }
    }

    fn names(&self, before: Option<u32>, from: u32, to: u32) -> Vec<Reference> {
        let first = self.reference(before, from, to);
        let more = (1..count(self.0, from, to)).map(|i| match &first {
            Reference::Named(name) => Reference::Named(format!("{name}#{i}")),
            item => item.clone(),
        });
        std::iter::once(first.clone()).chain(more).collect()
    }
}

/// How many references lead from one node to another.
fn count(heap: &Heap, from: u32, to: u32) -> usize {
    heap.edges.of(from).iter().filter(|&&node| node == to).count()
}

/// What is gone when a path is given up.
#[derive(Clone, Copy, Debug)]
enum Gone {
    Node(u32),
    /// One of those from one node to another.
    Reference(u32, u32),
}

impl Gone {
    fn of(path: &str) -> Self {
        let number = |name: &str| {
            let name = name.trim_start_matches("C code: ").trim_start_matches('n');
            name.split('#').next().unwrap().parse::<u32>().unwrap()
        };
        match (path.strip_suffix("[*]"), path.split_once('>')) {
            (Some(container), _) => Self::Node(number(container.split('>').next_back().unwrap())),
            (None, Some((from, to))) => Self::Reference(number(from), number(to)),
            (None, None) => Self::Node(number(path)),
        }
    }

    fn beyond(self) -> u32 {
        match self {
            Self::Node(node) | Self::Reference(_, node) => node,
        }
    }
}

/// Whether nothing is left of the references from one node to another.
fn is_taken(heap: &Heap, gone: &[Gone], from: u32, to: u32) -> bool {
    let nodes = gone.iter().any(|gone| matches!(gone, Gone::Node(node) if *node == from || *node == to));
    let names = gone.iter().filter(|gone| matches!(gone, Gone::Reference(a, b) if (*a, *b) == (from, to)));
    nodes || names.count() >= count(heap, from, to)
}

/// What some nodes lead to when some is gone. No reference into a root counts.
fn reached(heap: &Heap, from: &[u32], gone: &[Gone], may_enter: impl Fn(u32) -> bool) -> Vec<bool> {
    let is_root = |node| heap.roots.iter().any(|root| root.node == node);
    let mut seen = vec![false; N as usize];
    let is_gone = |node| gone.iter().any(|gone| matches!(gone, Gone::Node(other) if *other == node));
    let mut open: Vec<u32> = from.iter().copied().filter(|&node| !is_gone(node)).collect();
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut seen[node as usize], true) {
            let left = |&&to: &&u32| !is_root(to) && may_enter(to) && !is_taken(heap, gone, node, to);
            open.extend(heap.edges.of(node).iter().filter(left));
        }
    }
    seen
}

/// A heap without what is gone.
fn without(heap: &Heap, gone: Gone) -> Heap {
    let mut heap = heap.clone();
    let all: Vec<Vec<u32>> = (0..N)
        .map(|from| {
            let mut targets = heap.edges.of(from).to_vec();
            match gone {
                Gone::Node(node) => targets.retain(|&to| node != from && node != to),
                Gone::Reference(a, b) if a == from => {
                    let one = targets.iter().position(|&to| to == b).unwrap();
                    targets.remove(one);
                }
                Gone::Reference(..) => {}
            }
            targets
        })
        .collect();
    heap.edges = Edges { offsets: vec![0], targets: Vec::new() };
    for targets in all {
        heap.edges.targets.extend(targets);
        heap.edges.offsets.push(heap.edges.targets.len() as u32);
    }
    let is_left = |node: u32| !matches!(gone, Gone::Node(other) if other == node);
    heap.roots.retain(|root| is_left(root.node));
    heap.held_outside.retain(|&node| is_left(node));
    heap
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]
    #[test]
    fn what_a_path_alone_holds_and_who_holds_the_rest(
        mut heap in heaps(),
        avoided in prop::collection::vec(0..N, 0..3),
    ) {
        heap.avoided = avoided;
        let mut entries: Vec<u32> = heap.roots.iter().map(|root| root.node).collect();
        entries.extend(&heap.held_outside);
        // C code holds what nothing else does: garbage has no path that could be taken apart here.
        let seen = reached(&heap, &entries, &[], |_| true);
        let unseen = (0..N).filter(|&node| !seen[node as usize]);
        heap.held_outside.extend(unseen.clone());
        entries.extend(unseen);

        let holders = find_holders(&heap, &ByReference(&heap), &Options::default());
        check_sums(&heap, &holders);
        for (number, holder) in (0..).zip(&holders.holders) {
            if !matches!(holder.class, Class::UserHeld | Class::Activations) {
                prop_assert!(holder.also_held_by.is_empty());
                continue;
            }
            let own = Gone::of(&holder.path);
            let left = reached(&heap, &entries, &[own], |_| true);
            let sum = |among: &dyn Fn(u32) -> bool| -> Bytes {
                heap.blocks.iter().filter(|block| among(block.node)).map(|block| block.bytes).sum()
            };
            prop_assert_eq!(holder.exclusive_bytes, sum(&|node| !left[node as usize]), "{}", holder.path);

            let blocks: Vec<u32> = heap.blocks.iter().zip(&holders.blocks)
                .filter(|(_, held)| held.holder == number)
                .map(|(block, _)| block.node)
                .collect();
            let is_shared = blocks.iter().any(|&node| left[node as usize]);
            let is_told = !holder.also_held_by.is_empty() || holder.held_by_more > Bytes::ZERO;
            prop_assert_eq!(is_shared, is_told, "{}", holder.path);
            let mut gone = vec![own];
            for also in &holder.also_held_by {
                let other = Gone::of(&also.path);
                prop_assert!(left[other.beyond() as usize], "{} holds nothing", also.path);
                let may_enter = |node| also.through.is_some() || !heap.autograd.contains(&node);
                let beyond = reached(&heap, &[other.beyond()], &[own], may_enter);
                let held = |node: u32| blocks.contains(&node) && beyond[node as usize];
                prop_assert_eq!(also.bytes, sum(&held), "{} beside {}", also.path, holder.path);
                prop_assert_eq!(also.blocks, blocks.iter().filter(|&&node| held(node)).count() as u64);
                gone.push(other);
            }
            let rest = reached(&heap, &entries, &gone, |_| true);
            let more = sum(&|node| blocks.contains(&node) && rest[node as usize]);
            prop_assert_eq!(holder.held_by_more, more, "{}", holder.path);

            // The best path when the row's own is given up is one of them.
            let left_heap = without(&heap, own);
            let then = find_holders(&left_heap, &ByReference(&left_heap), &Options::default());
            for &node in blocks.iter().filter(|&&node| left[node as usize] && holder.also_held_by.len() < 5) {
                let block = then.blocks.iter().find(|block| block.address == u64::from(node) << 12).unwrap();
                let next = &then.holders[block.holder as usize];
                // A block that C code alone holds has no path.
                if next.path == NO_STORAGE {
                    continue;
                }
                // What is left of several names is called by the first.
                let plain = |path: &str| path.split('#').next().unwrap().to_owned();
                let known = (holder.also_held_by.iter())
                    .any(|also| plain(&also.path) == plain(&next.path) && also.through == next.through);
                prop_assert!(known, "{} is next to {}", next.path, holder.path);
            }
        }
    }
}
