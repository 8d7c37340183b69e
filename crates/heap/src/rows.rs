//! Blocks grouped by who holds them.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use vramscope_model::Bytes;

use crate::chain::Chain;
use crate::dominators::Dominated;
use crate::fingerprint::fingerprint;
use crate::graph::{Block, Heap};
use crate::holders::{Class, HeldBlock, Holder, OTHER_HOLDERS, Options, Through};
use crate::kept::NONE;
use crate::paths::{PathId, Paths};
use crate::vote::majority;

/// What is known of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) path: PathId,
    pub(crate) through: Option<Through>,
    pub(crate) class: Class,
    /// The holding object; [`NONE`] if nothing but the block itself is known.
    pub(crate) holding: u32,
}

/// How many blocks of a holder vote for the chain that stands for them.
const VOTERS: usize = 16;

struct Row {
    path: PathId,
    through: Option<Through>,
    class: Class,
    spelling: String,
    bytes: Bytes,
    blocks: Vec<u32>,
}

/// Groups blocks into holders. `held` is of the heap's blocks, in their order; `chain` draws the chain to one of them.
pub(crate) fn rows(
    heap: &Heap,
    held: &[Held],
    paths: &mut Paths,
    dominated: &Dominated,
    options: &Options,
    chain: impl Fn(usize) -> Option<Chain>,
) -> (Vec<Holder>, Vec<HeldBlock>) {
    let mut rows = group(heap, held, paths);
    let n_shown = rows
        .partition_point(|row| row.bytes >= options.min_bytes)
        .min(options.max_holders.unwrap_or(usize::MAX));
    let rest = rows.split_off(n_shown);

    let mut holder_of_block = vec![0_u32; heap.blocks.len()];
    let mut holders: Vec<Holder> = Vec::new();
    for row in rows {
        for &block in &row.blocks {
            holder_of_block[block as usize] = holders.len() as u32;
        }
        let (chain, fingerprint) = representative(heap, &row, &chain);
        holders.push(Holder {
            path: row.spelling,
            through: row.through,
            class: row.class,
            bytes: row.bytes,
            exclusive_bytes: exclusive(heap, held, dominated, &row.blocks),
            blocks: row.blocks.len() as u64,
            fingerprint,
            chain,
        });
    }
    for class in Class::ALL {
        let blocks: Vec<u32> =
            rest.iter().filter(|row| row.class == class).flat_map(|row| row.blocks.iter().copied()).collect();
        if blocks.is_empty() {
            continue;
        }
        for &block in &blocks {
            holder_of_block[block as usize] = holders.len() as u32;
        }
        holders.push(Holder {
            path: OTHER_HOLDERS.into(),
            through: None,
            class,
            bytes: blocks.iter().map(|&block| heap.blocks[block as usize].bytes).sum(),
            exclusive_bytes: exclusive(heap, held, dominated, &blocks),
            blocks: blocks.len() as u64,
            fingerprint: fingerprint([OTHER_HOLDERS, class.name()]),
            chain: Vec::new(),
        });
    }

    let mut blocks: Vec<HeldBlock> = heap
        .blocks
        .iter()
        .zip(holder_of_block)
        .map(|(&Block { address, bytes, device, .. }, holder)| HeldBlock { address, bytes, device, holder })
        .collect();
    blocks.sort_by_key(|block| (block.address, block.device));
    (holders, blocks)
}

/// Rows, most bytes first.
fn group(heap: &Heap, held: &[Held], paths: &mut Paths) -> Vec<Row> {
    let mut settled: FxHashMap<PathId, PathId> = FxHashMap::default();
    let mut numbers: FxHashMap<(PathId, Option<Through>, Class), usize> = FxHashMap::default();
    let mut rows: Vec<Row> = Vec::new();
    for (i, (held, block)) in (0..).zip(held.iter().zip(&heap.blocks)) {
        let path = *settled.entry(held.path).or_insert_with(|| paths.settled(held.path));
        let number = *numbers.entry((path, held.through, held.class)).or_insert_with(|| {
            let (through, class) = (held.through, held.class);
            rows.push(Row {
                path,
                through,
                class,
                spelling: String::new(),
                bytes: Bytes::ZERO,
                blocks: Vec::new(),
            });
            rows.len() - 1
        });
        rows[number].bytes += block.bytes;
        rows[number].blocks.push(i);
    }
    for row in &mut rows {
        row.spelling = paths.spelling(row.path);
    }
    rows.sort_by(|a, b| {
        let key = |row: &Row| (Reverse(row.bytes), row.through, row.class);
        key(a).cmp(&key(b)).then_with(|| a.spelling.cmp(&b.spelling))
    });
    rows
}

/// What would be freed with the holding objects of some blocks.
fn exclusive(heap: &Heap, held: &[Held], dominated: &Dominated, blocks: &[u32]) -> Bytes {
    let mut nodes = Vec::with_capacity(blocks.len());
    let mut alone = Bytes::ZERO;
    for &block in blocks {
        match held[block as usize].holding {
            NONE => alone += heap.blocks[block as usize].bytes,
            node => nodes.push(node),
        }
    }
    nodes.sort_unstable();
    nodes.dedup();
    alone + Bytes(dominated.by_all(&mut nodes))
}

/// The chain that stands for a row, and its fingerprint.
fn representative(
    heap: &Heap,
    row: &Row,
    chain: &impl Fn(usize) -> Option<Chain>,
) -> (Vec<crate::holders::Link>, String) {
    let newest_first = |&at: &u32| {
        let block = &heap.blocks[at as usize];
        Reverse((block.born, block.node, at))
    };
    let mut blocks = row.blocks.clone();
    if blocks.len() > VOTERS {
        blocks.select_nth_unstable_by_key(VOTERS, newest_first);
        blocks.truncate(VOTERS);
    }
    blocks.sort_unstable_by_key(newest_first);
    let mut chains: Vec<Chain> = blocks.into_iter().filter_map(|at| chain(at as usize)).collect();
    match majority(chains.iter().map(|chain| &chain.likeness)) {
        Some(winner) => {
            let chain = chains.swap_remove(winner);
            (chain.links, chain.fingerprint)
        }
        None => (Vec::new(), fingerprint([&row.spelling[..]])),
    }
}
