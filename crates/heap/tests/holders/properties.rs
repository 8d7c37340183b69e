//! Random heaps against plain definitions.

use super::check_sums;
use proptest::prelude::*;
use vramscope_heap::{
    Block, BlockState, Class, Edges, Heap, Holder, Holders, Names, Object, ObjectKind, Options, Reference,
    Root, RootKind, Through, find_holders,
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

    #[test]
    fn exclusive_bytes_are_what_nothing_reaches_without_the_holder(heap in heaps()) {
        let holders = find_holders(&heap, &ByNumber, &Options::default());
        let mut entries: Vec<u32> = heap.roots.iter().map(|root| root.node).collect();
        entries.extend(&heap.held_outside);
        entries.extend((0..N).filter(|node| !heap.edges.targets.contains(node)));
        let all = reachable(&heap, &entries, |_| false);
        // So does garbage, until it is collected.
        entries.extend((0..N).filter(|&node| !all[node as usize]));
        let all = reachable(&heap, &entries, |_| false);
        for holder in holders.holders.iter().filter(|holder| holder.class == Class::UserHeld) {
            let holding: u32 = holder.path.trim_start_matches('n').parse().unwrap();
            let rest = reachable(&heap, &entries, |node| node == holding);
            let blocks = heap.blocks.iter().filter(|block| all[block.node as usize] && !rest[block.node as usize]);
            let freed: Bytes = blocks.map(|block| block.bytes).sum();
            prop_assert_eq!(holder.exclusive_bytes, freed, "{}", holding);
        }
    }
}
