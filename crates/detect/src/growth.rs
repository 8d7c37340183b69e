//! Whether what is left of a group of allocations grows, judged by when the survivors were born.
//!
//! Growth of a curve convicts nobody; a bounded cache grows too until it is full. What tells is that blocks of *all* ages
//! are still there, older ones than any block of the group that was ever given back, and that new ones keep coming.
//!
//! Source: the leak detection reference, §5 (survivors by birth; age spread of survivors, Šor & Srirama; `BLeak`'s round trips).

use vramscope_model::{Bytes, EventIdx};
use vramscope_replay::{AllocId, Death, Lifetimes, Window};

use crate::groups::Group;
use crate::rounds::Rounds;

/// What became of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Survivors of all ages, and ever more.
    Kept,
    /// The same, but too few births, or fewer and fewer, to exclude a cache that is not full yet.
    MaybeBounded,
    /// More come than go: the oldest are given back, but the number held keeps growing.
    Backlog,
    /// Nothing to report: freed, in flight, made once, or bounded.
    Settled,
}

/// What was seen of a group.
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    pub(crate) fate: Fate,
    /// The blocks held at the end of the window, oldest first.
    pub(crate) survivors: Vec<AllocId>,
    /// The rounds in which survivors were born that count as evidence: not the first, not the last.
    pub(crate) birth_rounds: Vec<u32>,
    /// Allocations in the window.
    pub(crate) births: usize,
    /// Those of them that are gone.
    pub(crate) freed: usize,
    /// The longest time that a freed block of the group was held, in rounds, leaving out a few odd ones.
    pub(crate) longest_life: usize,
    /// Survivors older than that.
    pub(crate) older_than_any_freed: usize,
    /// Separate bursts of births.
    pub(crate) bursts: usize,
}

/// Rounds that a survivor's birth must keep from the end, for the survivor not to be the step in flight.
pub(crate) const IN_FLIGHT: usize = 1;
/// Fewer separate births are no growth.
pub(crate) const MIN_BIRTHS: usize = 3;
/// Fewer separate births leave room for a cache that is not full yet.
pub(crate) const SURE_BIRTHS: usize = 6;
/// With fewer births an odd death may be all that tells a bounded store.
const MANY_BIRTHS: usize = 20;
/// Fewer separate bursts (where births come in bursts) do.
const SURE_BURSTS: usize = 4;

/// Looks at a group.
pub(crate) fn judge(group: &Group, lifetimes: &Lifetimes, rounds: &Rounds, window: Window) -> Growth {
    let members = group.members.as_slice();
    let n_rounds = rounds.count();
    // What the rest of the trace frees is not kept, though the window ends before.
    let is_kept = |&id: &AllocId| lifetimes.is_held_at(id, window.to) && lifetimes.death(id) == Death::Alive;
    let survivors: Vec<AllocId> = members.iter().copied().filter(is_kept).collect();
    let mut growth = Growth {
        fate: Fate::Settled,
        freed: members.len() - survivors.len(),
        survivors,
        birth_rounds: Vec::new(),
        births: members.len(),
        longest_life: 0,
        older_than_any_freed: 0,
        bursts: 0,
    };
    // The quick way out for nearly all groups.
    if growth.survivors.len() < MIN_BIRTHS || n_rounds < MIN_BIRTHS + 2 {
        return growth;
    }
    let round_of = |id: AllocId| lifetimes.birth(id).map_or(0, |b| rounds.of_event(b)).min(n_rounds);
    // Where the loop has ended, its last step is as whole as any; what came after it is no step.
    let last_whole = rounds.n_steps().min(n_rounds - IN_FLIGHT);
    let counted: Vec<usize> =
        growth.survivors.iter().map(|&id| round_of(id)).filter(|&r| r >= 1 && r < last_whole).collect();
    growth.birth_rounds = counted.iter().map(|&r| r as u32).collect();
    growth.birth_rounds.dedup();
    if growth.birth_rounds.len() < MIN_BIRTHS {
        return growth;
    }

    let deaths = Deaths::of(group, lifetimes, rounds, window);
    let held = held_at_ends(group, lifetimes, rounds, window);
    let first = growth.birth_rounds.first().copied().unwrap_or(0) as usize;
    let before = held.get(..first).and_then(|h| h.iter().max()).copied().unwrap_or(0);
    let is_record = held.last().copied().unwrap_or(0) * 4 >= before * 5;
    // A sawtooth rises too, but only to where it has been before: there no death is an odd one.
    growth.longest_life = deaths.longest_life(is_record && growth.birth_rounds.len() >= MANY_BIRTHS);
    let mut old: Vec<usize> = counted
        .iter()
        .copied()
        .filter(|&r| n_rounds - r > growth.longest_life + growth.longest_life / 10 + 1)
        .collect();
    growth.older_than_any_freed = old.len();
    old.dedup();

    let spacing = Spacing::of(&growth.birth_rounds, n_rounds);
    growth.bursts = spacing.bursts;
    if !keeps_rising(&held, first) {
        return growth;
    }
    let outlives = old.len() >= MIN_BIRTHS && old.len() * 4 >= growth.birth_rounds.len();
    if spacing.is_lasting && outlives {
        let enough = if spacing.bursts < growth.birth_rounds.len() {
            spacing.bursts >= SURE_BURSTS
        } else {
            growth.birth_rounds.len() >= SURE_BIRTHS
        };
        growth.fate = if enough && !spacing.is_slowing { Fate::Kept } else { Fate::MaybeBounded };
    } else if is_record && growth.birth_rounds.len() >= SURE_BIRTHS && deaths.are_outnumbered(&held) {
        // Blocks as old as the oldest survivor are given back, but more come than go.
        growth.fate = Fate::Backlog;
    }
    if growth.fate != Fate::Settled {
        leave_out_set_up(&mut growth.survivors, lifetimes, round_of);
    }
    growth
}

/// The deaths of a group, by round.
struct Deaths {
    /// For each round in which any block died: the round, and the longest time that one of them was held, in rounds.
    rounds: Vec<(usize, usize)>,
    /// Rounds in which blocks were born that were held for long or still are, one entry each.
    lasting_births: Vec<usize>,
}

impl Deaths {
    fn of(group: &Group, lifetimes: &Lifetimes, rounds: &Rounds, window: Window) -> Self {
        let n_rounds = rounds.count();
        let round = |event: EventIdx| rounds.of_event(event).min(n_rounds);
        let mut all: Vec<(usize, usize)> = Vec::new();
        let mut lives: Vec<(usize, Option<usize>)> = Vec::with_capacity(group.members.len());
        for &id in &group.members {
            let born = lifetimes.birth(id).map_or(0, round);
            match lifetimes.death(id) {
                Death::At(at) if at < window.to => {
                    all.push((round(at), round(at) - born));
                    lives.push((born, Some(round(at) - born)));
                }
                Death::Unrecorded => {}
                _ => lives.push((born, None)),
            }
        }
        // Of those older than the window at least this much of their time is known.
        all.extend(group.older_deaths.iter().map(|&at| (round(at), round(at))));
        all.sort_unstable();
        // What dies together is one observation: a list that was emptied, say.
        let mut deaths: Vec<(usize, usize)> = Vec::new();
        for (round, life) in all {
            match deaths.last_mut() {
                Some(last) if last.0 == round => last.1 = last.1.max(life),
                _ => deaths.push((round, life)),
            }
        }
        let long = deaths.iter().map(|d| d.1).max().unwrap_or(0) / 2;
        let lasting_births = lives
            .into_iter()
            .filter(|(_, life)| life.is_none_or(|l| l > long))
            .map(|(born, _)| born)
            .collect();
        Self { rounds: deaths, lasting_births }
    }

    /// The longest time that a block was held that is gone. Where it may, it leaves out a few odd ones.
    fn longest_life(&self, may_leave_out: bool) -> usize {
        let mut lives: Vec<usize> = self.rounds.iter().map(|d| d.1).collect();
        lives.sort_unstable_by(|a, b| b.cmp(a));
        let odd = if may_leave_out { (lives.len() / 20).max(1) } else { 0 };
        lives.get(odd).copied().unwrap_or(0)
    }

    /// Whether more blocks come than go ever since the first one went that had been held for long. Where something is full,
    /// as many go as come.
    fn are_outnumbered(&self, held: &[i64]) -> bool {
        let longest = self.rounds.iter().map(|d| d.1).max().unwrap_or(0);
        let long: Vec<usize> = self.rounds.iter().filter(|d| d.1 * 2 > longest).map(|d| d.0).collect();
        let Some(&first) = long.first() else { return false };
        let since = self.lasting_births.iter().filter(|&&born| born > first).count() as i64;
        let gained = held.last().copied().unwrap_or(0) - held.get(first).copied().unwrap_or(0);
        long.len() >= MIN_BIRTHS
            && self.rounds.len() >= SURE_BIRTHS
            && since >= SURE_BIRTHS as i64
            && gained * 5 >= since
    }
}

/// Takes out what the same line allocated once at the beginning and is meant to stay, such as a library's workspace: blocks
/// of the first round of a size of another order than the later survivors'.
fn leave_out_set_up(
    survivors: &mut Vec<AllocId>,
    lifetimes: &Lifetimes,
    round_of: impl Fn(AllocId) -> usize,
) {
    let later = survivors.iter().filter(|&&id| round_of(id) >= 1).map(|&id| lifetimes.size(id));
    let (Some(least), Some(most)) = (later.clone().min(), later.max()) else { return };
    // Sizes may grow or vary; a workspace is of another order.
    let is_alike = |size: Bytes| size.0 >= least.0 / 2 && size.0 <= most.0.saturating_mul(2);
    survivors.retain(|&id| round_of(id) >= 1 || is_alike(lifetimes.size(id)));
}

/// How births are spread in time.
struct Spacing {
    /// Separate bursts; as many as births where those come evenly.
    bursts: usize,
    /// No gap much larger than the typical one, the one to the end of the window included.
    is_lasting: bool,
    /// Births become fewer.
    is_slowing: bool,
}

impl Spacing {
    fn of(births: &[u32], end: usize) -> Self {
        let end = end as u32;
        let (even, max_gap) = is_even(births, end);
        let slowing = |births: &[u32]| {
            let (Some(&first), n) = (births.first(), births.len()) else { return false };
            let third = f64::from(end.saturating_sub(first)) / 3.0;
            let early = births.iter().filter(|&&b| f64::from(b - first) < third).count();
            let late = births.iter().filter(|&&b| f64::from(b - first) >= 2.0 * third).count();
            n >= SURE_BIRTHS && late * 2 < early
        };
        if even {
            return Self { bursts: births.len(), is_lasting: true, is_slowing: slowing(births) };
        }
        // Births in bursts: once an epoch, say.
        let apart = (max_gap / 3).max(1);
        let mut starts: Vec<u32> = Vec::new();
        let mut previous = None;
        for &b in births {
            if previous.is_none_or(|p| b - p > apart) {
                starts.push(b);
            }
            previous = Some(b);
        }
        let is_lasting = starts.len() >= MIN_BIRTHS && is_periodic(&starts, end);
        Self { bursts: starts.len(), is_lasting, is_slowing: false }
    }
}

/// Whether bursts come at about equal intervals, and did not stop.
fn is_periodic(starts: &[u32], end: u32) -> bool {
    let mut gaps: Vec<u32> = starts.windows(2).map(|w| w[1] - w[0]).collect();
    gaps.sort_unstable();
    let typical = gaps.get(gaps.len() / 2).copied().unwrap_or(0);
    let is_usual = |gap: u32| gap <= typical * 2 && gap * 2 >= typical;
    let tail = starts.last().map_or(0, |&last| end.saturating_sub(last));
    gaps.iter().all(|&gap| is_usual(gap)) && tail <= typical * 2
}

/// Whether no gap is much larger than the mean one; and the largest gap between births.
fn is_even(births: &[u32], end: u32) -> (bool, u32) {
    let (Some(&first), Some(&last)) = (births.first(), births.last()) else { return (false, 0) };
    let n = births.len();
    if n < 2 {
        return (false, end - first);
    }
    let max_gap = births.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
    let mean = f64::from(last - first) / (n - 1) as f64;
    // Random births have a largest gap that grows with the logarithm of their number.
    let allowed = mean * (2.5 + (n as f64).ln());
    let tail = end.saturating_sub(last + 1);
    let even = f64::from(max_gap) <= allowed.max(2.0) && f64::from(tail) <= allowed.max(2.0);
    (even, max_gap)
}

/// How many blocks of a group are held at the end of each round, counting those older than the window that die in it.
fn held_at_ends(group: &Group, lifetimes: &Lifetimes, rounds: &Rounds, window: Window) -> Vec<i64> {
    let n_rounds = rounds.count();
    let round = |event: EventIdx| rounds.of_event(event).min(n_rounds);
    let mut change = vec![0i64; n_rounds + 1];
    for &id in &group.members {
        let born = lifetimes.birth(id).map_or(0, round);
        let died = match lifetimes.death(id) {
            Death::At(at) if at < window.to => round(at),
            // Nobody knows how long it was held; it is gone, so it is no growth.
            Death::Unrecorded => born,
            _ => n_rounds,
        };
        change[born] += 1;
        change[died] -= 1;
    }
    for &at in &group.older_deaths {
        change[0] += 1;
        change[round(at)] -= 1;
    }
    change.truncate(n_rounds);
    let mut held = 0;
    for c in &mut change {
        held += *c;
        *c = held;
    }
    change
}

/// Whether the least number held rises from each quarter of the time since `first` to the next, up to the end.
fn keeps_rising(held: &[i64], first: usize) -> bool {
    const PARTS: usize = 4;
    /// With fewer births in the whole time, half a quarter may well go by without one.
    const MANY: i64 = 12;
    let span = held.len().saturating_sub(first);
    if span < PARTS {
        return false;
    }
    let least =
        |from: usize, to: usize| held.get(from..to).and_then(|h| h.iter().min()).copied().unwrap_or(0);
    let bound = |part: usize| first + span * part / PARTS;
    let floors: Vec<i64> = (0..PARTS).map(|part| least(bound(part), bound(part + 1))).collect();
    let rises = floors.windows(2).all(|w| w[1] > w[0]);
    // Within the last quarter too: a store that filled up stops there.
    let (from, to) = (bound(PARTS - 1), held.len());
    let middle = usize::midpoint(from, to);
    let rises_late = middle == from || least(middle, to) > least(from, middle);
    let total = floors.last().copied().unwrap_or(0) - floors.first().copied().unwrap_or(0);
    rises && (rises_late || total < MANY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn births_are_even_or_come_in_bursts() {
        let spacing = |births: &[u32], end| Spacing::of(births, end);
        let every: Vec<u32> = (1..60).collect();
        assert!(spacing(&every, 60).is_lasting);
        // Every 25th of 250.
        let rare: Vec<u32> = (1..10).map(|i| i * 25).collect();
        assert!(spacing(&rare, 250).is_lasting);
        // Twenty an epoch, eight epochs of 80.
        let epochs: Vec<u32> = (0..8).flat_map(|e| (0..20).map(move |i| e * 80 + 60 + i)).collect();
        let epochs = spacing(&epochs, 640);
        assert!(epochs.is_lasting);
        assert_eq!(epochs.bursts, 8);
        // Once at the beginning.
        let once: Vec<u32> = (1..5).collect();
        assert!(!spacing(&once, 100).is_lasting);
        // Filled up by half-time.
        let filled: Vec<u32> = (1..50).collect();
        assert!(!spacing(&filled, 100).is_lasting);
    }
}
