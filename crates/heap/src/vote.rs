//! Which of several stands for all: the one that most are like, by their newest.

use rustc_hash::FxHashMap;
use std::hash::Hash;

use crate::holders::{Holder, Holders};

/// The first of the candidates that most are like; of two groups of the same size, the one with the earlier first.
///
/// Candidates come newest first. What is newest is what leaks; the whole population is full of what has been there since the start (measured by
/// facebook/memlab, whose vote over all named a set that did not grow).
pub(crate) fn majority<K: Hash + Eq>(candidates: impl IntoIterator<Item = K>) -> Option<usize> {
    let mut groups: FxHashMap<K, usize> = FxHashMap::default();
    // Where each group was first met, and its votes.
    let mut votes: Vec<(usize, u32)> = Vec::new();
    for (at, candidate) in candidates.into_iter().enumerate() {
        let group = *groups.entry(candidate).or_insert_with(|| {
            votes.push((at, 0));
            votes.len() - 1
        });
        if let Some((_, n)) = votes.get_mut(group) {
            *n += 1;
        }
    }
    votes.into_iter().max_by_key(|&(first, n)| (n, std::cmp::Reverse(first))).map(|(first, _)| first)
}

/// The holder that most of some blocks have; of two with as many, that of the newest block. Blocks are given by an address within them, newest
/// first; those that are not known have no vote. The newest hundred or so are enough.
pub fn holder_of(holders: &Holders, newest_first: impl IntoIterator<Item = u64>) -> Option<&Holder> {
    let found: Vec<u32> = newest_first
        .into_iter()
        .filter_map(|address| {
            let behind = holders.blocks.partition_point(|block| block.address <= address);
            let block = holders.blocks.get(behind.checked_sub(1)?)?;
            (block.address == address || address - block.address < block.bytes.0).then_some(block.holder)
        })
        .collect();
    let winner = *found.get(majority(found.iter().copied())?)?;
    holders.holders.get(winner as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::holders::{Class, HeldBlock};
    use vramscope_model::Bytes;

    #[test]
    fn most_votes_win_and_the_newest_decides_ties() {
        let check = |votes: &str, want: Option<usize>| assert_eq!(majority(votes.chars()), want, "{votes}");
        check("", None);
        check("a", Some(0));
        check("abb", Some(1));
        check("abab", Some(0));
        check("cab", Some(0));
        check("abcbc", Some(1));
    }

    #[test]
    fn blocks_are_found_by_any_of_their_addresses() {
        let holder = |path: &str| Holder {
            path: path.into(),
            through: None,
            class: Class::UserHeld,
            bytes: Bytes(8),
            exclusive_bytes: Bytes(8),
            blocks: 1,
            also_held_by: Vec::new(),
            held_by_more: Bytes::ZERO,
            fingerprint: String::new(),
            chain: Vec::new(),
        };
        let block = |address, holder| HeldBlock { address, bytes: Bytes(8), device: Some(0), holder };
        let holders = Holders {
            holders: vec![holder("a"), holder("b")],
            blocks: vec![block(16, 0), block(24, 1), block(40, 1)],
            ..Holders::default()
        };
        let check = |addresses: &[u64], want: Option<&str>| {
            let found = holder_of(&holders, addresses.iter().copied());
            assert_eq!(found.map(|holder| &holder.path[..]), want, "{addresses:?}");
        };
        check(&[], None);
        check(&[15, 32, 48, u64::MAX], None);
        check(&[16], Some("a"));
        check(&[23, 24], Some("a"));
        check(&[31, 16], Some("b"));
        check(&[16, 24, 40], Some("b"));
    }
}
