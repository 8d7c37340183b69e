//! How fast holders are found in large heaps.
//!
//! `cargo bench -p vramscope-heap`
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use vramscope_heap::{
    Block, BlockState, Edges, Heap, Names, Object, ObjectKind, Options, Reference, Root, RootKind,
    find_holders,
};
use vramscope_model::Bytes;

/// Names that cost next to nothing: what is measured is the crate's own.
struct Plain;

impl Names for Plain {
    fn object(&self, node: u32) -> Object {
        let kind = if node < 1000 { ObjectKind::Module } else { ObjectKind::Container };
        Object { kind, type_name: "list".into(), detail: String::new() }
    }

    fn reference(&self, _: Option<u32>, from: u32, to: u32) -> Reference {
        match from {
            0..1000 => Reference::Global { module: "m".into(), name: format!("g{}", to % 64) },
            _ => Reference::Item,
        }
    }
}

/// Numbers that look random and are the same every time.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// A heap of `n` objects with two references each, most of them to objects made at about the same time, below a thousand modules. One in
/// `one_in` of the objects can reach a block; those refer to each other and to the others, the others only to others.
fn heap(n: u32, one_in: u32) -> Heap {
    let mut state = 88_172_645_463_325_252;
    let mut heap = Heap { n_nodes: n, ..Heap::default() };
    heap.edges.offsets.push(0);
    let reaching = |node: u64| node - node % u64::from(one_in);
    for node in 0..u64::from(n) {
        let near = node + 1 + random(&mut state) % 64;
        let far = node + random(&mut state) % (u64::from(n) - node);
        let reaches = node.is_multiple_of(u64::from(one_in));
        for to in [near, far] {
            let to = to.min(u64::from(n) - 1);
            let to = match (reaches, one_in) {
                (true, _) => reaching(to),
                (false, 1) => to,
                // What reaches nothing must not refer to what does.
                (false, _) => reaching(to) + 1 + random(&mut state) % u64::from(one_in - 1),
            };
            heap.edges.targets.push(to.min(u64::from(n) - 1) as u32);
        }
        heap.edges.offsets.push(heap.edges.targets.len() as u32);
    }
    // A hundredth of what reaches blocks is blocks: the last ones, so that everything comes to one.
    let last = (0..n).rev().filter(|node| node.is_multiple_of(one_in));
    let blocks = last.take((n / one_in / 100).max(1) as usize);
    heap.blocks = blocks
        .map(|node| Block {
            node,
            address: u64::from(node) << 12,
            bytes: Bytes(4096),
            device: Some(0),
            state: BlockState::Allocated,
            born: Some(u64::from(node)),
        })
        .collect();
    heap.roots = (0..1000).map(|node| Root { kind: RootKind::OwnModule, node: node * one_in }).collect();
    heap
}

/// All blocks hang on one list.
fn one_list(n: u32) -> Heap {
    let mut heap = heap(1000, 1);
    heap.n_nodes = n;
    heap.edges = Edges { offsets: vec![0, 1, n - 1], targets: (1..n).collect() };
    heap.roots.truncate(1);
    let block = heap.blocks.first().copied();
    heap.blocks =
        (2..n).filter_map(|node| Some(Block { node, address: u64::from(node) << 12, ..block? })).collect();
    heap
}

/// All blocks hang on two lists.
fn two_lists(n: u32) -> Heap {
    let mut heap = one_list(n);
    heap.n_nodes = n + 1;
    heap.edges.offsets = vec![0, 2, n];
    heap.edges.offsets.resize(n as usize + 1, n);
    heap.edges.offsets.push(2 * n - 2);
    heap.edges.targets = [1, n].into_iter().chain(2..n).chain(2..n).collect();
    heap
}

fn holders(c: &mut Criterion) {
    let mut group = c.benchmark_group("find holders");
    group.sample_size(10).measurement_time(Duration::from_secs(10));
    let heaps = [
        ("4 M objects, 8 M references, 1 % reach a block", heap(4_000_000, 100)),
        ("1 M objects, 2 M references, all reach a block", heap(1_000_000, 1)),
        ("1 M blocks in one list", one_list(1_000_000)),
        ("100,000 blocks in one list", one_list(100_000)),
        ("100,000 blocks in two lists", two_lists(100_000)),
    ];
    for (name, heap) in heaps {
        group.throughput(Throughput::Elements(heap.edges.targets.len() as u64));
        group
            .bench_function(name, |b| b.iter(|| find_holders(black_box(&heap), &Plain, &Options::default())));
    }
    group.finish();
}

criterion_group!(benches, holders);
criterion_main!(benches);
