//! Blocks that not even a storage refers to, but of which something is known by other means.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::fingerprint::fingerprint;
use crate::holders::{Class, HeldBlock, Holder, Holders, Link, NO_STORAGE, OTHER_HOLDERS, Status};
use vramscope_model::Bytes;

/// What is known of a block that nothing refers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Known {
    /// What it is, which becomes the path of its holder: `C++: workspaces of cuBLAS`.
    pub path: String,
    /// How that is known, and what it means for the user.
    pub reason: String,
}

impl Holders {
    /// Takes blocks out of the row of those without a storage ([`NO_STORAGE`]) into rows of their own, where `known` says what they are.
    ///
    /// They stay [`Class::CppHeld`], but are unexplained no longer. All sums hold as before.
    pub fn explain(&mut self, known: impl Fn(&HeldBlock) -> Option<Known>) {
        let Some(unexplained) = self.holders.iter().position(|holder| holder.path == NO_STORAGE) else {
            return;
        };
        let mut found: BTreeMap<Known, Vec<usize>> = BTreeMap::new();
        for (at, block) in self.blocks.iter().enumerate().filter(|(_, b)| b.holder as usize == unexplained) {
            if let Some(known) = known(block) {
                found.entry(known).or_default().push(at);
            }
        }
        for (known, blocks) in found {
            let number = self.holders.len() as u32;
            let mut bytes = Bytes::ZERO;
            for &at in &blocks {
                bytes += self.blocks[at].bytes;
                self.blocks[at].holder = number;
            }
            let rest = &mut self.holders[unexplained];
            rest.bytes -= bytes;
            rest.exclusive_bytes -= bytes;
            rest.blocks -= blocks.len() as u64;
            self.unexplained -= bytes;
            self.holders.push(row(known, bytes, blocks.len() as u64));
        }
        self.sort();
    }

    /// Rows in their order, without those that have nothing left.
    fn sort(&mut self) {
        let mut order: Vec<usize> =
            (0..self.holders.len()).filter(|&at| self.holders[at].blocks > 0).collect();
        let key = |holder: &Holder| (Reverse(holder.bytes), holder.through, holder.class);
        order.sort_by(|&a, &b| {
            let (a, b) = (&self.holders[a], &self.holders[b]);
            // The sums of what is small are in the order of their classes, and there is one for each.
            let small = |holder: &Holder| (holder.path == OTHER_HOLDERS).then_some(holder.class);
            small(a).cmp(&small(b)).then_with(|| key(a).cmp(&key(b))).then_with(|| a.path.cmp(&b.path))
        });
        let mut number = vec![0; self.holders.len()];
        for (new, &old) in (0..).zip(&order) {
            number[old] = new;
        }
        for block in &mut self.blocks {
            block.holder = number[block.holder as usize];
        }
        let mut rows: Vec<Option<Holder>> = std::mem::take(&mut self.holders).into_iter().map(Some).collect();
        self.holders = order.into_iter().filter_map(|old| rows[old].take()).collect();
    }
}

fn row(known: Known, bytes: Bytes, blocks: u64) -> Holder {
    let object = known.path.split_once(": ").map_or(&known.path[..], |(_, what)| what).to_owned();
    Holder {
        fingerprint: fingerprint([&known.path[..]]),
        chain: vec![Link {
            object,
            type_name: String::new(),
            reference: String::new(),
            suspect: false,
            status: Status::Alive,
            reason: known.reason,
        }],
        path: known.path,
        through: None,
        class: Class::CppHeld,
        bytes,
        exclusive_bytes: bytes,
        blocks,
        also_held_by: Vec::new(),
        held_by_more: Bytes::ZERO,
    }
}
