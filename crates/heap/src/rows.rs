//! Blocks grouped by who holds them.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use vramscope_model::Bytes;

use crate::chain::Chain;
use crate::cuts::{Cut, is_of_module};
use crate::dominators::Dominated;
use crate::fingerprint::fingerprint;
use crate::graph::{Block, Heap};
use crate::holders::{Class, HeldBlock, Holder, OTHER_HOLDERS, Options, Through};
use crate::kept::NONE;
use crate::others::{Asked, Fate, others};
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
    /// What is cut when the path is given up, where it is asked who else holds the block.
    pub(crate) cut: Option<Cut>,
}

/// How many blocks of a holder vote for the chain that stands for them.
const VOTERS: usize = 16;

/// Blocks that are held by the same path.
pub(crate) struct Row {
    pub(crate) path: PathId,
    pub(crate) through: Option<Through>,
    pub(crate) class: Class,
    spelling: String,
    bytes: Bytes,
    /// By their places in the heap.
    pub(crate) blocks: Vec<u32>,
}

/// Groups blocks into holders. `chain` draws the chain to one of them.
pub(crate) fn rows(
    asked: &Asked<'_>,
    paths: &mut Paths,
    dominated: &Dominated,
    options: &Options,
    chain: impl Fn(usize) -> Option<Chain>,
) -> (Vec<Holder>, Vec<HeldBlock>) {
    let (heap, held) = (asked.heap, asked.held);
    let mut rows = group(heap, held, paths);
    let n_shown = rows
        .partition_point(|row| row.bytes >= options.min_bytes)
        .min(options.max_holders.unwrap_or(usize::MAX));
    let rest = rows.split_off(n_shown);
    let others = others(asked, &rows, paths);

    let mut holder_of_block = vec![0_u32; heap.blocks.len()];
    let mut holders: Vec<Holder> = Vec::new();
    for (row, others) in rows.into_iter().zip(others) {
        for &block in &row.blocks {
            holder_of_block[block as usize] = holders.len() as u32;
        }
        let (chain, fingerprint) = representative(heap, &row, &chain);
        holders.push(Holder {
            path: row.spelling,
            through: row.through,
            class: row.class,
            bytes: row.bytes,
            exclusive_bytes: exclusive(asked, dominated, &row.blocks, |at| others.fate(at)),
            blocks: row.blocks.len() as u64,
            also_held_by: others.also,
            held_by_more: others.more,
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
            exclusive_bytes: exclusive(asked, dominated, &blocks, |_| None),
            blocks: blocks.len() as u64,
            also_held_by: Vec::new(),
            held_by_more: Bytes::ZERO,
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

/// What would be freed if the paths of some blocks were given up. `fate` tells of the block at a place among them what came out when it was
/// asked who else holds it.
fn exclusive(
    asked: &Asked<'_>,
    dominated: &Dominated,
    blocks: &[u32],
    fate: impl Fn(usize) -> Option<Fate>,
) -> Bytes {
    let mut nodes = Vec::with_capacity(blocks.len());
    let mut alone = Bytes::ZERO;
    for (at, &block) in blocks.iter().enumerate() {
        let Held { holding, cut, class, .. } = asked.held[block as usize];
        if holding == NONE {
            alone += asked.heap.blocks[block as usize].bytes;
            continue;
        }
        let fate = fate(at);
        let stays = match cut {
            Some(_) if is_of_module(class) => fate == Some(Fate::Kept),
            Some(cut) => asked.sharing.is_kept(cut, holding),
            None => false,
        };
        if !stays {
            nodes.push(holding);
        }
        // Though others of the row hold it, too. Of modules not all that hold them were asked.
        let is_freed = fate == Some(Fate::Freed) && !is_of_module(class);
        nodes.extend(asked.nodes[block as usize].filter(|_| is_freed));
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
