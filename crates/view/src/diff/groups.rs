//! Blocks by the place that allocated them, or by size.

use std::collections::BTreeMap;

use vramscope_model::{PoolId, PoolKind, Symbols};
use vramscope_replay::change::{Fate, Held};

use super::GroupDiff;
use super::pairing::{Pairing, SiteKey, Source};
use crate::place;
use crate::quantity::exact_bytes;

/// What blocks are grouped by.
pub(super) enum Grouping {
    /// The line that allocated, with stacks of the two snapshots paired.
    Sites(Pairing),
    /// Size and pool.
    Sizes,
}

/// Bytes and blocks before and after, by fate.
#[derive(Clone, Copy, Default)]
struct Tally {
    born: (u64, u64),
    died: (u64, u64),
    persisted: (u64, u64),
}

impl Tally {
    fn add(&mut self, size: u64, fate: Fate) {
        let (bytes, blocks) = match fate {
            Fate::Born => &mut self.born,
            Fate::Died => &mut self.died,
            Fate::Persisted => &mut self.persisted,
        };
        // Damaged files state sizes that add up to more than there is.
        *bytes = bytes.saturating_add(size);
        *blocks += 1;
    }

    fn merge(&mut self, other: &Self) {
        let pairs = [
            (&mut self.born, other.born),
            (&mut self.died, other.died),
            (&mut self.persisted, other.persisted),
        ];
        for (mine, theirs) in pairs {
            mine.0 = mine.0.saturating_add(theirs.0);
            mine.1 += theirs.1;
        }
    }

    fn bytes(&self) -> (u64, u64) {
        (self.died.0.saturating_add(self.persisted.0), self.born.0.saturating_add(self.persisted.0))
    }

    fn blocks(&self) -> (u64, u64) {
        (self.died.1 + self.persisted.1, self.born.1 + self.persisted.1)
    }

    fn by_fate(&self) -> (u64, u64, u64) {
        (self.born.0, self.died.0, self.persisted.0)
    }
}

/// Groups the blocks of a device, largest change first.
pub(super) fn group(
    blocks: &[(Held, Fate)],
    grouping: &Grouping,
    show_fates: bool,
    symbols: &Symbols,
) -> Vec<GroupDiff> {
    let mut groups = match grouping {
        Grouping::Sites(pairing) => by_site(blocks, pairing, symbols),
        Grouping::Sizes => by_size(blocks),
    };
    if !show_fates {
        for group in &mut groups {
            group.born_died_persisted = None;
        }
    }
    groups.sort_by(|a, b| order(a.bytes, b.bytes).then_with(|| a.label.cmp(&b.label)));
    groups
}

/// Largest change first, then most bytes.
fn order(a: (u64, u64), b: (u64, u64)) -> std::cmp::Ordering {
    let key = |(before, after): (u64, u64)| (before.abs_diff(after), before.max(after));
    key(b).cmp(&key(a))
}

fn new_group(label: String, tally: &Tally) -> GroupDiff {
    GroupDiff {
        site: None,
        label,
        bytes: tally.bytes(),
        blocks: tally.blocks(),
        born_died_persisted: Some(tally.by_fate()),
        stacks: Vec::new(),
    }
}

fn by_site(blocks: &[(Held, Fate)], pairing: &Pairing, symbols: &Symbols) -> Vec<GroupDiff> {
    let mut by_stack: BTreeMap<Source, Tally> = BTreeMap::new();
    for (held, fate) in blocks {
        by_stack.entry(pairing.paired(Source::of(held), *fate)).or_default().add(held.size.0, *fate);
    }
    let mut by_site: BTreeMap<SiteKey, Vec<(Source, Tally)>> = BTreeMap::new();
    for (source, tally) in by_stack {
        by_site.entry(pairing.site(source, symbols)).or_default().push((source, tally));
    }
    by_site
        .into_values()
        .map(|mut members| {
            members.sort_by(|a, b| order(a.1.bytes(), b.1.bytes()));
            let mut sum = Tally::default();
            for (_, tally) in &members {
                sum.merge(tally);
            }
            // Paths may differ between runs: show the later one's.
            let shown = members.iter().find(|(_, t)| t.bytes().1 > 0).or(members.first()).map(|m| m.0);
            let mut group = new_group(shown.map(|s| s.label(symbols)).unwrap_or_default(), &sum);
            group.site = shown.and_then(|s| symbols.site(s.stack)).map(|f| place::location(symbols, f));
            group.stacks = members
                .iter()
                .map(|(source, tally)| {
                    let (before, after) = tally.bytes();
                    (place::stack(symbols, source.stack), before, after)
                })
                .collect();
            group
        })
        .collect()
}

fn by_size(blocks: &[(Held, Fate)]) -> Vec<GroupDiff> {
    let mut by_size: BTreeMap<(u64, PoolKind, bool), Tally> = BTreeMap::new();
    for (held, fate) in blocks {
        let key = (held.size.0, held.kind, held.pool != PoolId::DEFAULT);
        by_size.entry(key).or_default().add(held.size.0, *fate);
    }
    by_size
        .into_iter()
        .map(|((size, kind, private), tally)| {
            let kind = if kind == PoolKind::Small { "small" } else { "large" };
            let private = if private { "private " } else { "" };
            new_group(format!("{} blocks, {private}{kind} pool", exact_bytes(size)), &tally)
        })
        .collect()
}
