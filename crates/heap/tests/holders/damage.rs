//! Heaps that are wrong.

use super::{check_sums, rows};
use insta::assert_snapshot;
use proptest::prelude::*;
use vramscope_heap::{
    Block, BlockState, Edges, Heap, Names, Object, ObjectKind, Options, Reference, Role, Root, RootKind,
    find_holders,
};
use vramscope_model::Bytes;

/// Names that say anything.
struct Anything(u32);

impl Names for Anything {
    fn object(&self, node: u32) -> Object {
        let kinds = [ObjectKind::Container, ObjectKind::Cell, ObjectKind::Instance, ObjectKind::Storage];
        let kind = kinds[((node ^ self.0) % 4) as usize];
        let type_name = ["T0", "tuple", "T2"][(node % 3) as usize];
        Object { kind, type_name: type_name.into(), detail: String::new() }
    }

    fn reference(&self, before: Option<u32>, from: u32, to: u32) -> Reference {
        let function = String::from("f");
        match (before.unwrap_or(7) ^ from ^ to ^ self.0) % 8 {
            0 | 1 => Reference::Hidden,
            2 => Reference::Item,
            3 => Reference::Closure { function, name: format!("v{to}") },
            4 => Reference::Unknown,
            5 => Reference::Attribute("next".into()),
            6 => Reference::Attribute(format!("a{}", to % 2)),
            _ => Reference::Defaults { function },
        }
    }
}

fn block(node: u32) -> Block {
    Block {
        node,
        address: 0x1000,
        bytes: Bytes(u64::MAX / 3),
        device: None,
        state: BlockState::Allocated,
        born: None,
    }
}

#[test]
fn what_lies_outside_is_left_out_and_said() {
    let heap = Heap {
        n_nodes: 2,
        edges: Edges { offsets: vec![0, 2, 3, 4], targets: vec![1, 9, 0, 1] },
        more_edges: vec![(0, 5), (u32::MAX, 0), (0, 1)],
        blocks: vec![block(1), block(2), block(u32::MAX)],
        roots: vec![Root { kind: RootKind::OwnModule, node: 0 }, Root { kind: RootKind::OwnClass, node: 2 }],
        held_outside: vec![3],
        roles: vec![(4, Role::Buffer)],
        storages: vec![5, 6],
        autograd: vec![7],
        dead: vec![(8, "gone".into())],
        hidden: vec![9],
        avoided: vec![10],
        registries: vec![10],
        modules: vec![2, 11],
    };
    let holders = find_holders(&heap, &Anything(7), &Options::default());
    check_sums(&heap, &holders);
    assert_snapshot!(rows(&holders), @"
    C++ (no storage found) | cpp_held 10.7 EiB, 10.7 EiB of it alone, 2 blocks
    T0 | user_held 5.3 EiB, 5.3 EiB of it alone, 1 blocks
    warning: left out for lying outside the heap of 2 nodes: references (3), roots (1), blocks (2), nodes held by C code (1), roles (1), storages (2), autograd nodes (1), modules (3), dead, avoided or hidden nodes (3)
    warning: 2 blocks have the address of another
    ");
}

#[test]
fn columns_that_do_not_fit_are_refused() {
    let check = |offsets: &[u32], targets: &[u32]| {
        let heap = Heap {
            n_nodes: 4,
            edges: Edges { offsets: offsets.into(), targets: targets.into() },
            blocks: vec![block(1)],
            roots: vec![Root { kind: RootKind::OwnModule, node: 0 }],
            ..Heap::default()
        };
        let holders = find_holders(&heap, &Anything(0), &Options::default());
        check_sums(&heap, &holders);
        let refused = holders.warnings.iter().any(|warning| warning.contains("do not fit"));
        (refused, holders.classes.user_held > Bytes::ZERO)
    };
    assert_eq!(check(&[0, 1, 1, 1, 1], &[1]), (false, true));
    assert_eq!(check(&[0, 1], &[1]), (false, true), "later nodes have no references");
    assert_eq!(check(&[], &[1]), (false, false));
    assert_eq!(check(&[0, 2, 2, 2, 2], &[1]), (true, false), "beyond the targets");
    assert_eq!(check(&[0, 1, 0, 1, 0], &[1]), (true, false), "the same again and again");
    assert_eq!(check(&[0, u32::MAX], &[1]), (true, false));
}

#[test]
fn an_empty_heap_has_no_holders() {
    let holders = find_holders(&Heap::default(), &Anything(0), &Options::default());
    assert_eq!(holders, vramscope_heap::Holders::default());
}

fn nodes() -> impl Strategy<Value = u32> {
    prop_oneof![30 => 0_u32..24, 1 => Just(u32::MAX), 1 => 24_u32..30]
}

fn some_nodes(most: usize) -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(nodes(), 0..most)
}

prop_compose! {
    fn heaps()(
        mut offsets in prop::collection::vec(0_u32..60, 0..30),
        is_sorted in prop::bool::weighted(0.95),
        targets in some_nodes(60),
        froms in some_nodes(20),
        tos in some_nodes(20),
        blocks in prop::collection::vec((nodes(), 0_u64..1 << 40, any::<bool>(), any::<Option<u64>>()), 0..12),
        roots in prop::collection::vec((nodes(), 0_usize..4), 0..5),
        lists in prop::collection::vec(some_nodes(5), 5),
        n_nodes in 0_u32..26,
    ) -> Heap {
        let kinds = [RootKind::OwnModule, RootKind::OwnClass, RootKind::Generator, RootKind::Exception];
        if is_sorted {
            for offset in &mut offsets {
                *offset = (*offset).min(targets.len() as u32);
            }
            offsets.sort_unstable();
        }
        Heap {
            n_nodes,
            edges: Edges { offsets, targets },
            more_edges: froms.into_iter().zip(tos).collect(),
            blocks: blocks.into_iter().map(|(node, bytes, pending, born)| Block {
                node,
                address: bytes ^ 0x5555,
                bytes: Bytes(bytes),
                device: Some(0),
                state: if pending && bytes % 3 == 0 { BlockState::PendingFree } else { BlockState::Allocated },
                born,
            }).collect(),
            roots: roots.into_iter().map(|(node, kind)| Root { kind: kinds[kind], node }).collect(),
            held_outside: lists[0].clone(),
            roles: lists[1].iter().map(|&node| (node, Role::Parameter)).collect(),
            storages: lists[2].clone(),
            autograd: lists[3].clone(),
            dead: lists[4].iter().map(|&node| (node, String::new())).collect(),
            avoided: lists[3].iter().map(|&node| node ^ 2).collect(),
            registries: lists[3].iter().map(|&node| node ^ 2).collect(),
            modules: lists[2].iter().map(|&node| node ^ 1).collect(),
            hidden: lists[4].iter().map(|&node| node ^ 1).collect(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn any_heap_gets_an_answer_that_adds_up(heap in heaps(), names in 0_u32..8, min_bytes in 0_u64..1 << 41) {
        let options = Options { min_bytes: Bytes(min_bytes), max_holders: None };
        for options in [options, Options::default()] {
            let holders = find_holders(&heap, &Anything(names), &options);
            check_sums(&heap, &holders);
            prop_assert_eq!(&find_holders(&heap, &Anything(names), &options), &holders, "the same again");
        }
    }
}
