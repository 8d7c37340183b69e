//! Heaps that would overflow a stack, or take forever if anything were looked at twice.

use insta::assert_snapshot;
use vramscope_heap::{
    AutogradEdge, Block, BlockState, Edges, Heap, Names, Object, ObjectKind, Options, Reference, Root,
    RootKind, find_holders,
};
use vramscope_model::Bytes;

const N: u32 = 1_000_000;

/// A chain of nodes below a root.
struct Chain {
    is_autograd: bool,
}

impl Names for Chain {
    fn object(&self, node: u32) -> Object {
        let (kind, type_name) = match node {
            0 => (ObjectKind::Module, "module"),
            1 => (ObjectKind::Instance, "Node"),
            N.. => (ObjectKind::Block, "block"),
            _ if self.is_autograd => (ObjectKind::Autograd, "MulBackward0"),
            _ => (ObjectKind::Instance, "Node"),
        };
        Object { kind, type_name: type_name.into(), detail: String::new() }
    }

    fn reference(&self, _: Option<u32>, from: u32, to: u32) -> Reference {
        match (from, to) {
            (0, _) => Reference::Global { module: "__main__".into(), name: "head".into() },
            (_, N..) => Reference::Attribute("value".into()),
            _ if self.is_autograd => Reference::Autograd(AutogradEdge::Next),
            _ => Reference::Attribute("next".into()),
        }
    }
}

/// Every object refers to the next, and every hundredth to a block. The last refers to the first.
fn chain() -> Heap {
    let mut heap = Heap { n_nodes: N + N / 100, ..Heap::default() };
    heap.edges.offsets.push(0);
    for node in 0..N {
        heap.edges.targets.push(if node + 1 == N { 1 } else { node + 1 });
        if node % 100 == 50 {
            heap.edges.targets.push(N + node / 100);
        }
        heap.edges.offsets.push(heap.edges.targets.len() as u32);
    }
    heap.blocks = (0..N / 100)
        .map(|i| Block {
            node: N + i,
            address: u64::from(i) << 20,
            bytes: Bytes(1 << 20),
            device: Some(0),
            state: BlockState::Allocated,
            born: Some(u64::from(i)),
        })
        .collect();
    heap
}

#[test]
fn a_linked_list_of_a_million() {
    let mut heap = chain();
    heap.roots = vec![Root { kind: RootKind::OwnModule, node: 0 }];
    let holders = find_holders(&heap, &Chain { is_autograd: false }, &Options::default());
    assert_snapshot!(super::rows(&holders), @"__main__.head.next….value | user_held 9.8 GiB, 9.8 GiB of it alone, 10000 blocks");
    assert!(holders.holders[0].chain.len() <= 64);
}

#[test]
fn a_graph_of_a_million_nodes() {
    let mut heap = chain();
    heap.roots = vec![Root { kind: RootKind::OwnModule, node: 0 }];
    heap.autograd = (2..N).collect();
    let holders = find_holders(&heap, &Chain { is_autograd: true }, &Options::default());
    assert_snapshot!(super::rows(&holders), @"__main__.head through the autograd graph | activations 9.8 GiB, 9.8 GiB of it alone, 10000 blocks");
    let objects: Vec<&str> = holders.holders[0].chain.iter().map(|link| &link.object[..]).collect();
    assert_snapshot!(objects.join("\n"), @"
    module
    Node
    999,949 autograd nodes, the last MulBackward0
    ");
}

#[test]
fn a_cycle_of_a_million() {
    let heap = Heap { hidden: vec![0], ..chain() };
    let holders = find_holders(&heap, &Chain { is_autograd: false }, &Options::default());
    assert_snapshot!(super::rows(&holders), @"unreachable: Node.next | cycle_garbage 9.8 GiB, 9.8 GiB of it alone, 10000 blocks");
}

#[test]
fn the_same_references_again_and_again() {
    // Many tensors with a role share one storage of many blocks; all of them are in all others.
    let n = 2000;
    let mut edges = Edges { offsets: vec![0], targets: Vec::new() };
    for node in 0..=n {
        edges.targets.extend(if node < n { vec![n, 0, n, n] } else { (n + 1..3 * n).collect() });
        edges.offsets.push(edges.targets.len() as u32);
    }
    let heap = Heap {
        n_nodes: 3 * n,
        edges,
        storages: vec![n],
        roles: (0..n).map(|node| (node, vramscope_heap::Role::Buffer)).collect(),
        blocks: (n + 1..3 * n).map(|node| Block { node, ..chain().blocks[0] }).take(100).collect(),
        roots: vec![Root { kind: RootKind::OwnModule, node: 0 }],
        ..Heap::default()
    };
    let holders = find_holders(&heap, &Chain { is_autograd: false }, &Options::default());
    assert_eq!(holders.classes.buffers, holders.total);
}

/// Counts what it is asked.
struct Counting<'a> {
    names: &'a dyn Names,
    asked: std::cell::Cell<u32>,
}

impl Names for Counting<'_> {
    fn object(&self, node: u32) -> Object {
        self.asked.set(self.asked.get() + 1);
        self.names.object(node)
    }

    fn reference(&self, before: Option<u32>, from: u32, to: u32) -> Reference {
        self.asked.set(self.asked.get() + 1);
        self.names.reference(before, from, to)
    }
}

#[test]
fn names_are_asked_once_for_each_object_on_a_path_and_for_no_others() {
    let mut text = String::from("root own-module m\nlist l\nm global(l) l\nlist deep\nl [*] deep\n");
    for i in 0..10_000 {
        text += &format!("tensor t{i} 1KiB\ndeep [*] t{i}\nlist other{i}\nm global(o{i}) other{i}\n");
    }
    let (heap, names) = vramscope_heap::script::read(&text).unwrap();
    let names = Counting { names: &names, asked: std::cell::Cell::new(0) };
    assert_eq!(find_holders(&heap, &names, &Options::default()).holders.len(), 1);
    // Besides, a few blocks vote on the chain that is shown.
    let asked = names.asked.get();
    assert!((10_003..10_250).contains(&asked), "{asked}");
}
