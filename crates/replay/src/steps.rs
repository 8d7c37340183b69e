//! The rounds of the program's loop.
//!
//! Marked by the program where it is (`ProfilerStep#`, `Optimizer.step#`), inferred from allocations that recur
//! otherwise: in a loop stacks allocate once a round, or a whole number of times, so the number of rounds is the largest
//! count that divides nearly all others.

use rustc_hash::FxHashMap;
use vramscope_model::{Action, Annotation, DeviceRecording, EventIdx, Stage, Symbols};

use crate::lifetimes::Window;

/// How steps were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepSource {
    /// None were found.
    None,
    /// Marks of this name.
    Marks(String),
    /// Allocations that recur; with how many of the distinct stacks recur in that rhythm.
    Recurrence {
        /// Distinct stacks that allocate once a step.
        stacks: usize,
    },
}

/// The steps of a window.
#[derive(Clone, Debug)]
pub struct Steps {
    /// Step `i` goes from `bounds[i]` to `bounds[i + 1]`. Events before the first bound are set-up, events from the last
    /// bound on are the step in flight.
    bounds: Vec<EventIdx>,
    source: StepSource,
}

/// Fewer steps are none: nothing can be said to recur.
const MIN_STEPS: usize = 3;

impl Steps {
    /// Finds the steps of a device's trace within a window.
    pub fn of(
        device: &DeviceRecording,
        annotations: &[Annotation],
        symbols: &Symbols,
        window: Window,
    ) -> Self {
        let recurrence = Self::by_recurrence(device, window);
        let marks = Self::by_marks(device, annotations, symbols, window);
        match (marks, recurrence) {
            (Some(marks), Some(recurrence)) if marks.is_marked_often() => {
                // Two optimizers make two marks a round. The rhythm of the allocations tells.
                let per_round = marks.count() as f64 / recurrence.count().max(1) as f64;
                let whole = per_round.round();
                let is_several = (2.0..=4.0).contains(&whole) && (per_round - whole).abs() < 0.1;
                if is_several { recurrence } else { marks }
            }
            (Some(marks), _) => marks,
            (None, Some(recurrence)) => recurrence,
            (None, None) => Self { bounds: Vec::new(), source: StepSource::None },
        }
    }

    /// Whether the marks could come more than once a round.
    fn is_marked_often(&self) -> bool {
        matches!(&self.source, StepSource::Marks(name) if name.starts_with("Optimizer"))
    }

    fn by_marks(
        device: &DeviceRecording,
        annotations: &[Annotation],
        symbols: &Symbols,
        window: Window,
    ) -> Option<Self> {
        for (prefix, stage) in [("ProfilerStep#", Stage::Start), ("Optimizer.step#", Stage::End)] {
            let mut bounds: Vec<EventIdx> = annotations
                .iter()
                .filter(|a| a.stage == stage && symbols.str(a.name).starts_with(prefix))
                .map(|a| device.events.at_or_after(a.time))
                .filter(|&b| b >= window.from && b <= window.to)
                .collect();
            bounds.dedup();
            match stage {
                // The first round began before its mark.
                Stage::End if bounds.first().is_some_and(|&b| b > window.from) => {
                    bounds.insert(0, window.from)
                }
                Stage::Start => {
                    let last_end = annotations
                        .iter()
                        .rev()
                        .find(|a| a.stage == Stage::End && symbols.str(a.name).starts_with(prefix))
                        .map(|a| device.events.at_or_after(a.time));
                    if let (Some(end), Some(&last)) = (last_end, bounds.last()) {
                        if end > last && end <= window.to {
                            bounds.push(end);
                        }
                    }
                }
                _ => {}
            }
            if bounds.len() > MIN_STEPS {
                return Some(Self { bounds, source: StepSource::Marks(prefix.to_owned()) });
            }
        }
        None
    }

    fn by_recurrence(device: &DeviceRecording, window: Window) -> Option<Self> {
        // Repeats in a row are one: a line in an inner loop recurs as often as the loop does. But where one line does
        // everything, each time counts.
        Self::by_runs(device, window, true).or_else(|| Self::by_runs(device, window, false))
    }

    fn by_runs(device: &DeviceRecording, window: Window, repeats_are_one: bool) -> Option<Self> {
        let events = &device.events;
        let (actions, stacks, sizes) = (events.actions(), events.stacks(), events.sizes());
        let range = window.from.index()..window.to.index().min(events.len());
        // Without stacks the sizes have to tell allocations apart.
        let has_stacks = range.clone().any(|i| actions[i] == Action::Alloc && stacks[i].has_frames());
        let key = |i: usize| if has_stacks { u64::from(stacks[i].0) } else { sizes[i] };
        let counted = |i: usize| actions[i] == Action::Alloc && (!has_stacks || stacks[i].has_frames());
        let mut groups: FxHashMap<u64, Recurring> = FxHashMap::default();
        let mut previous = None;
        for i in range.clone().filter(|&i| counted(i)) {
            let key = key(i);
            let group =
                groups.entry(key).or_insert(Recurring { runs: 0, events: 0, first: i as u32, last: 0 });
            group.events += 1;
            group.last = i as u32;
            if !repeats_are_one || previous != Some(key) {
                group.runs += 1;
            }
            previous = Some(key);
        }
        // Only what recurs from early on to the end counts.
        let (start, length) = (range.start as u32, range.len() as u32);
        groups.retain(|_, g| {
            g.runs as usize >= MIN_STEPS && g.first - start < length / 2 && g.last - start >= length / 2
        });
        let mut recurring: Vec<(u64, Recurring)> = groups.into_iter().collect();
        recurring.sort_unstable_by_key(|(_, g)| g.first);
        let rounds = rounds_that_fit(recurring.iter().map(|(_, g)| *g))?;
        // The round begins with the earliest of those that recur once in it.
        let (anchor, _) = *recurring.iter().find(|(_, g)| g.runs == rounds)?;
        let n_stacks = recurring.iter().filter(|(_, g)| g.runs == rounds).count();
        let mut previous = None;
        let mut bounds: Vec<EventIdx> = Vec::new();
        for i in range.clone().filter(|&i| counted(i)) {
            let key = key(i);
            if key == anchor && (!repeats_are_one || previous != Some(anchor)) {
                bounds.push(EventIdx(i as u32));
            }
            previous = Some(key);
        }
        // A last round as long as the others is whole.
        let mut lengths: Vec<u32> = bounds.windows(2).map(|w| w[1].0 - w[0].0).collect();
        lengths.sort_unstable();
        let typical = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
        if let Some(&last) = bounds.last() {
            if (range.end as u32 - last.0) * 10 >= typical * 9 {
                bounds.push(EventIdx(range.end as u32));
            }
        }
        (bounds.len() > MIN_STEPS)
            .then_some(Self { bounds, source: StepSource::Recurrence { stacks: n_stacks } })
    }

    /// How many whole steps there are.
    pub fn count(&self) -> usize {
        self.bounds.len().saturating_sub(1)
    }

    /// How they were found.
    pub fn source(&self) -> &StepSource {
        &self.source
    }

    /// The end of each whole step.
    pub fn ends(&self) -> &[EventIdx] {
        self.bounds.get(1..).unwrap_or(&[])
    }

    /// The bounds: one more than steps, or none.
    pub fn bounds(&self) -> &[EventIdx] {
        &self.bounds
    }

    /// The step that an event lies in: 0 for the first and for set-up before it, the number of steps for the one in
    /// flight.
    pub fn step_of(&self, event: EventIdx) -> usize {
        self.bounds.partition_point(|&b| b <= event).saturating_sub(1)
    }
}

/// How often one stack recurs.
#[derive(Clone, Copy)]
struct Recurring {
    /// Times that it recurs, repeats in a row taken as one.
    runs: u32,
    /// Its allocations.
    events: u32,
    first: u32,
    last: u32,
}

/// The largest count of runs that divides nearly all the counts, weighted by allocations: what happens several times a
/// round has a multiple of the number of rounds, what happens only now and then weighs little.
fn rounds_that_fit(groups: impl Iterator<Item = Recurring>) -> Option<u32> {
    /// How much of the best candidate's weight a larger one must have.
    const NEARLY: f64 = 0.95;
    let mut by_runs: FxHashMap<u32, u64> = FxHashMap::default();
    for group in groups {
        *by_runs.entry(group.runs).or_default() += u64::from(group.events);
    }
    let mut counts: Vec<(u32, u64)> = by_runs.into_iter().collect();
    counts.sort_unstable();
    // Many different counts are no rhythm, and would take long to compare.
    counts.truncate(2000);
    let weight = |candidate: u32| -> u64 {
        let fits = |&&(runs, _): &&(u32, u64)| {
            let (times, rest) = (runs / candidate, runs % candidate);
            // A round in flight may have made some of its allocations already.
            times >= 1 && rest <= times.min(candidate / 8)
        };
        counts.iter().filter(fits).map(|(_, events)| events).sum()
    };
    let weights: Vec<(u32, u64)> = counts.iter().map(|&(runs, _)| (runs, weight(runs))).collect();
    let best = weights.iter().map(|&(_, w)| w).max()?;
    weights.iter().rev().find(|&&(_, w)| w as f64 >= NEARLY * best as f64).map(|&(runs, _)| runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(groups: &[(u32, u32)], want: Option<u32>) {
        let groups = groups.iter().map(|&(runs, events)| Recurring { runs, events, first: 0, last: 0 });
        assert_eq!(rounds_that_fit(groups), want);
    }

    #[test]
    fn the_number_of_rounds_divides_the_counts() {
        // Once, twice and four times a round.
        check(&[(40, 400), (80, 800), (160, 800)], Some(40));
        // One in flight.
        check(&[(41, 41), (42, 42), (84, 84)], Some(41));
        // A training loop with an evaluation every ten steps.
        check(&[(200, 9000), (20, 300)], Some(200));
        check(&[], None);
    }
}
