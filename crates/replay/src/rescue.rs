//! Which blocks, had they been given back before, would have let a request pass that failed.
//!
//! There are two ways: neighbouring blocks go, so that a free block becomes large enough; or segments become wholly free, so
//! that the driver gets enough of them back to give new memory. Of the first the cheapest is found. Of the second a cheap
//! one is: the cheapest single segment, or several by how little of each is in use. So what is named would have been enough,
//! and less may have been, too.
//!
//! Source: the allocator reference, §4 (how a request is served), §5.3 (merging), §8.2 (releasing).

use vramscope_model::Bytes;

use crate::domain::{Domain, Portions};
use crate::ground::Stretch;
use crate::layout::{Layout, Placed};
use crate::units::releasable;

/// A request that failed.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// Which pool, kind and stream it was for.
    pub domain: Domain,
    /// What was asked for, rounded.
    pub request: Bytes,
    /// The bytes of whole segments that would have had to go back first.
    pub missing: Bytes,
    /// Free blocks of this size and more serve only requests of that size, if it is set.
    pub max_split: Option<u64>,
}

/// Blocks that would have been enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rescue {
    /// Their bytes.
    pub bytes: Bytes,
    /// How many they are.
    pub blocks: u64,
    /// Whether they leave a gap that is large enough, rather than whole segments for the driver.
    pub leaves_gap: bool,
}

/// A set of blocks and the bytes that come free by it.
#[derive(Clone, Copy)]
struct Set {
    bytes: u64,
    blocks: u64,
    gain: u64,
}

/// Finds few bytes that would have been enough, among the blocks that `may_go`.
pub fn rescue(
    layout: &Layout,
    portions: Portions,
    failed: &Failed,
    may_go: impl Fn(&Placed) -> bool,
) -> Option<Rescue> {
    let mut best: Option<Rescue> = None;
    let mut offer = |set: Set, leaves_gap| {
        let new = Rescue { bytes: Bytes(set.bytes), blocks: set.blocks, leaves_gap };
        if set.blocks > 0 && best.is_none_or(|b| (new.bytes, new.blocks) < (b.bytes, b.blocks)) {
            best = Some(new);
        }
    };
    let mut whole: Vec<Set> = Vec::new();
    for stretch in layout.stretches() {
        let blocks: Vec<&Placed> = layout.blocks_in(stretch).collect();
        for run in runs(&blocks, &may_go) {
            if stretch.domain == failed.domain {
                let fits = |gap: u64| serves(gap, failed);
                if let Some(set) = cheapest(stretch, &blocks, &run, &|start, end| end - start, &fits) {
                    offer(set, true);
                }
            }
            let goes_back = |start, end| releasable(stretch, portions, start, end);
            let enough = |gain: u64| gain >= failed.missing.0;
            if let Some(set) = cheapest(stretch, &blocks, &run, &goes_back, &enough) {
                offer(set, false);
            }
            if run.len() == blocks.len() && !blocks.is_empty() {
                let bytes = blocks.iter().map(|b| b.size).sum::<Bytes>().0;
                whole.push(Set { bytes, blocks: blocks.len() as u64, gain: stretch.size() });
            }
        }
    }
    if let Some(set) = several(whole, failed.missing.0) {
        offer(set, false);
    }
    best
}

/// Whether a free block of that size would serve the request.
fn serves(gap: u64, failed: &Failed) -> bool {
    let is_kept_whole = failed.max_split.is_some_and(|m| failed.request.0 < m && gap >= m);
    gap >= failed.request.0 && !is_kept_whole
}

/// Neighbours that may all go, as ranges of places.
fn runs(blocks: &[&Placed], may_go: &impl Fn(&Placed) -> bool) -> Vec<std::ops::Range<usize>> {
    let mut runs = Vec::new();
    let mut start = 0;
    for (i, block) in blocks.iter().enumerate() {
        if !may_go(block) {
            if start < i {
                runs.push(start..i);
            }
            start = i + 1;
        }
    }
    if start < blocks.len() {
        runs.push(start..blocks.len());
    }
    runs
}

/// Of a run the neighbours with fewest bytes that together with the gaps around them make enough.
fn cheapest(
    stretch: &Stretch,
    blocks: &[&Placed],
    run: &std::ops::Range<usize>,
    gain: &impl Fn(u64, u64) -> u64,
    is_enough: &impl Fn(u64) -> bool,
) -> Option<Set> {
    let start_of = |i: usize| match i.checked_sub(1).and_then(|i| blocks.get(i)) {
        Some(before) => before.end().clamp(stretch.start, stretch.end),
        None => stretch.start,
    };
    let end_of = |i: usize| blocks.get(i + 1).map_or(stretch.end, |next| next.addr);
    let made = |from: usize, to: usize| {
        let (start, end) = (start_of(from), end_of(to));
        if start < end { gain(start, end) } else { 0 }
    };
    let size = |i: usize| blocks.get(i).map_or(0, |b| b.size.0);
    let mut best: Option<Set> = None;
    let (mut from, mut bytes) = (run.start, 0u64);
    for to in run.clone() {
        bytes = bytes.saturating_add(size(to));
        // As long as it is enough without the first, leave that out.
        while from < to && is_enough(made(from + 1, to)) {
            bytes = bytes.saturating_sub(size(from));
            from += 1;
        }
        let gain = made(from, to);
        if is_enough(gain) && best.is_none_or(|b| bytes < b.bytes) {
            best = Some(Set { bytes, blocks: (to - from + 1) as u64, gain });
        }
    }
    best
}

/// Several segments of which little is in use, until they are enough.
fn several(mut sets: Vec<Set>, missing: u64) -> Option<Set> {
    sets.sort_by(|a, b| {
        let share = |s: &Set| s.bytes as f64 / s.gain.max(1) as f64;
        share(a).total_cmp(&share(b)).then(a.bytes.cmp(&b.bytes))
    });
    let mut gain = 0u64;
    let mut chosen: Vec<Set> = Vec::new();
    for set in sets {
        if gain >= missing {
            break;
        }
        gain = gain.saturating_add(set.gain);
        chosen.push(set);
    }
    if gain < missing {
        return None;
    }
    // The last may have made some of the earlier ones needless.
    chosen.sort_by_key(|s| std::cmp::Reverse(s.bytes));
    chosen.retain(|set| {
        let is_needed = gain - set.gain < missing;
        if !is_needed {
            gain -= set.gain;
        }
        is_needed
    });
    Some(chosen.iter().fold(Set { bytes: 0, blocks: 0, gain: 0 }, |sum, s| Set {
        bytes: sum.bytes.saturating_add(s.bytes),
        blocks: sum.blocks + s.blocks,
        gain: sum.gain.saturating_add(s.gain),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::drawing::{DOMAIN, MIB, layout};

    /// The bytes and blocks that would be enough for a request, and the way, in MiB.
    fn check(drawing: &str, request: u64, missing: u64, fixed: &str, want: Option<(u64, u64, bool)>) {
        let failed = Failed {
            domain: DOMAIN,
            request: Bytes(request * MIB),
            missing: Bytes(missing * MIB),
            max_split: None,
        };
        let may_go = |b: &Placed| b.id.is_some_and(|id| !fixed.bytes().any(|f| u32::from(f - b'a') == id.0));
        let found = rescue(&layout(drawing), Portions::of(None), &failed, may_go);
        let found = found.map(|r| (r.bytes.0 / MIB, r.blocks, r.leaves_gap));
        assert_eq!(found, want, "{request} in {drawing}, {missing} missing, {fixed} fixed");
    }

    #[test]
    fn the_cheapest_neighbours_make_a_gap() {
        check("aaa.b..ccc.d", 4, 99, "", Some((1, 1, true)));
        check("aaa.b..ccc.d", 4, 99, "b", Some((3, 1, true)));
        check("aaa.b..ccc.d", 9, 99, "", Some((5, 3, true)));
        check("aaa.b..ccc.d", 9, 99, "bd", None);
        check("aaa.b.. ccc.d", 8, 99, "", None);
    }

    #[test]
    fn cheap_segments_go_back() {
        check("aaa. b... cc..", 5, 4, "", Some((1, 1, false)));
        check("aaa. b... cc..", 5, 8, "", Some((3, 2, false)));
        check("aaa. b... cc..", 5, 8, "b", Some((5, 2, false)));
        check("aaa. b... cc..", 5, 13, "", None);
        // Giving back little that is dear may be needless once something else goes back.
        check("a..... bbbbb..... ccccccccc.", 11, 10, "", Some((5, 1, false)));
        // Part of an expandable segment.
        check(
            "~aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb....................",
            61,
            20,
            "a",
            Some((20, 1, false)),
        );
    }
}
