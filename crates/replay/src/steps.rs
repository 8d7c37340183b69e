//! The rounds of the program's loop.
//!
//! Told by our recorder where it ran, marked by the program where it is (`ProfilerStep#`, `Optimizer.step#`), inferred from allocations that recur
//! otherwise: in a loop stacks allocate once a round, or a whole number of times, so the number of rounds is the largest
//! count that divides nearly all others.

use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_model::{Action, Annotation, DeviceRecording, EventIdx, FrameId, StackId, Stage, Symbols};

use crate::lifetimes::Window;

/// How steps were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepSource {
    /// None were found.
    None,
    /// Our recorder wrote down when each step ended.
    Recorder,
    /// Marks of this name.
    Marks(String),
    /// Allocations that recur; with how many of the distinct stacks recur in that rhythm.
    Recurrence {
        /// Distinct stacks that allocate once a step.
        stacks: usize,
        /// Whether all that recurs does so within one and the same call of a module: then what recurs may be its layers.
        within_module: bool,
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

/// How the names of marks begin with which our recorder's steps end; the number of the step follows.
pub const RECORDED_STEP: &str = "vramscope.step#";

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
        let none = Self { bounds: Vec::new(), source: StepSource::None };
        match Self::by_marks(device, annotations, symbols, window) {
            // Where the recorder was stopped long before the trace ends, what recurs may tell more.
            Some(marked) if marked.stops_early(window) => Self::by_recurrence(device, symbols, window)
                .filter(|found| found.count() > marked.count())
                .unwrap_or(marked),
            Some(marked) => marked,
            None => Self::by_recurrence(device, symbols, window).unwrap_or(none),
        }
    }

    /// Whether the recorder's steps end long before the trace does.
    fn stops_early(&self, window: Window) -> bool {
        let (Some(first), Some(last)) = (self.bounds.first(), self.bounds.last()) else { return false };
        let usual = (last.0 - first.0) as usize / self.count().max(1);
        let rest = window.to.0.saturating_sub(last.0) as usize;
        self.source == StepSource::Recorder && rest > 3 * usual && rest * 10 > window.to.index()
    }

    fn by_marks(
        device: &DeviceRecording,
        annotations: &[Annotation],
        symbols: &Symbols,
        window: Window,
    ) -> Option<Self> {
        let marks =
            [(RECORDED_STEP, Stage::End), ("ProfilerStep#", Stage::Start), ("Optimizer.step#", Stage::End)];
        for (prefix, stage) in marks {
            let marks: Vec<(EventIdx, &str)> = annotations
                .iter()
                .filter(|a| a.stage == stage)
                .filter_map(|a| Some((a, symbols.str(a.name).strip_prefix(prefix)?)))
                .map(|(a, rest)| (device.events.at_or_after(a.time), rest))
                .filter(|&(b, _)| b >= window.from && b <= window.to)
                .collect();
            if prefix == RECORDED_STEP && passes_over(&marks, window) {
                continue;
            }
            let mut bounds: Vec<EventIdx> = marks.into_iter().map(|(bound, _)| bound).collect();
            bounds.dedup();
            match stage {
                // The first round began before its mark.
                Stage::End if bounds.first().is_some_and(|&b| b > window.from) => {
                    bounds.insert(0, window.from);
                }
                Stage::Start => {
                    let last_end = annotations
                        .iter()
                        .rev()
                        .find(|a| a.stage == Stage::End && symbols.str(a.name).starts_with(prefix))
                        .map(|a| device.events.at_or_after(a.time));
                    if let (Some(end), Some(&last)) = (last_end, bounds.last())
                        && end > last
                        && end <= window.to
                    {
                        bounds.push(end);
                    }
                }
                _ => {}
            }
            // Two optimizers make two marks a round.
            let period = period_of(device, &bounds);
            if period > 1 {
                bounds = bounds.into_iter().step_by(period).collect();
            }
            if bounds.len() > MIN_STEPS {
                let source = match prefix {
                    RECORDED_STEP => StepSource::Recorder,
                    _ => StepSource::Marks(prefix.to_owned()),
                };
                return Some(Self { bounds, source });
            }
        }
        None
    }

    fn by_recurrence(device: &DeviceRecording, symbols: &Symbols, window: Window) -> Option<Self> {
        // Repeats in a row are one: a line in an inner loop recurs as often as the loop does. But where one line does
        // everything, each time counts.
        let collapsed = Self::by_runs(device, symbols, window, true);
        if let Some((steps, true)) = collapsed {
            return Some(steps);
        }
        let each = Self::by_runs(device, symbols, window, false);
        if let Some((steps, true)) = each {
            return Some(steps);
        }
        // Rounds of very different length are better than none.
        collapsed.or(each).map(|(steps, _)| steps)
    }

    /// The rounds, and whether they come at regular intervals.
    fn by_runs(
        device: &DeviceRecording,
        symbols: &Symbols,
        window: Window,
        repeats_are_one: bool,
    ) -> Option<(Self, bool)> {
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
        // Of the numbers of rounds that fit, the largest that comes at regular intervals: what happens several times a
        // round, or now and then, does not.
        let counts: Vec<Recurring> = recurring.iter().map(|(_, g)| *g).collect();
        let candidates = rounds_that_fit(&counts);
        let births = |rounds: u32| -> Vec<EventIdx> {
            // The round begins with the earliest of those that recur once in it.
            let Some(&(anchor, _)) = recurring.iter().find(|(_, g)| g.runs == rounds) else {
                return Vec::new();
            };
            let mut previous = None;
            let mut births = Vec::new();
            for i in range.clone().filter(|&i| counted(i)) {
                let key = key(i);
                if key == anchor && (!repeats_are_one || previous != Some(anchor)) {
                    births.push(EventIdx(i as u32));
                }
                previous = Some(key);
            }
            births
        };
        let (rounds, mut bounds) = candidates
            .iter()
            .map(|&rounds| (rounds, births(rounds)))
            .find(|(_, births)| is_regular(births))
            .or_else(|| candidates.last().map(|&rounds| (rounds, births(rounds))))?;
        let regular = is_regular(&bounds);
        let n_stacks = recurring.iter().filter(|(_, g)| g.runs == rounds).count();
        let recurring_stacks = recurring.iter().filter(|_| has_stacks).map(|&(key, _)| StackId(key as u32));
        let within_module = is_within_module(symbols, recurring_stacks);
        // A last round as long as the others is whole; what is much longer is no round, the loop has ended.
        let mut lengths: Vec<u32> = bounds.windows(2).map(|w| w[1].0 - w[0].0).collect();
        lengths.sort_unstable();
        let typical = lengths.get(lengths.len() / 2).copied().unwrap_or(0);
        if let Some(&last) = bounds.last() {
            let rest = range.end as u32 - last.0;
            if rest * 10 >= typical * 9 {
                let longest = lengths.last().copied().unwrap_or(0).max(typical * 2);
                bounds.push(EventIdx(last.0 + rest.min(longest)));
            }
        }
        (bounds.len() > MIN_STEPS).then_some((
            Self { bounds, source: StepSource::Recurrence { stacks: n_stacks, within_module } },
            regular,
        ))
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

/// Whether the recorder read more than a few steps together, for they were faster than it reads: then what lies between
/// two of its marks is no step. What came before or after is no matter.
fn passes_over(marks: &[(EventIdx, &str)], window: Window) -> bool {
    let inside = marks.iter().filter(|&&(bound, _)| bound > window.from && bound < window.to);
    let numbers: Vec<u64> = inside.filter_map(|(_, number)| number.parse().ok()).collect();
    let passed = numbers.windows(2).filter(|pair| pair[1] != pair[0].saturating_add(1)).count();
    passed * 10 > numbers.len()
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

/// The counts of runs that divide most of the counts, weighted by allocations, largest first: what happens several times
/// a round has a multiple of the number of rounds. The last one divides most.
fn rounds_that_fit(groups: &[Recurring]) -> Vec<u32> {
    /// The share of the best candidate's weight that another must have.
    const SHARE: f64 = 0.6;
    /// More candidates are not looked at.
    const MOST: usize = 12;
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
    // Of equals the largest.
    let Some(&(best, most)) = weights.iter().max_by_key(|&&(runs, w)| (w, runs)) else { return Vec::new() };
    let mut candidates: Vec<u32> = weights
        .iter()
        .rev()
        .filter(|&&(runs, w)| runs != best && w as f64 >= SHARE * most as f64)
        .map(|&(runs, _)| runs)
        .take(MOST)
        .collect();
    candidates.retain(|&runs| runs > best);
    candidates.push(best);
    candidates
}

/// Whether the frames that all stacks share, from the outermost in, hold a call of a module.
fn is_within_module(symbols: &Symbols, stacks: impl Iterator<Item = StackId>) -> bool {
    let mut shared: Option<Vec<FrameId>> = None;
    for stack in stacks {
        let outermost_first = symbols.frames(stack).iter().rev();
        match &mut shared {
            None => shared = Some(outermost_first.copied().collect()),
            Some(shared) => {
                let n = shared.iter().zip(outermost_first).take_while(|(a, b)| a == b).count();
                shared.truncate(n);
            }
        }
    }
    shared.unwrap_or_default().iter().any(|&frame| {
        let frame = symbols.get_frame(frame);
        symbols.str(frame.name) == "_call_impl" && symbols.str(frame.file).ends_with("nn/modules/module.py")
    })
}

/// Whether births come at about equal intervals, measured in events.
fn is_regular(births: &[EventIdx]) -> bool {
    let mut gaps: Vec<u32> = births.windows(2).map(|w| w[1].0 - w[0].0).collect();
    gaps.sort_unstable();
    let at = |share: usize| gaps.get(gaps.len() * share / 10).copied().unwrap_or(0);
    let (short, typical, long) = (at(1), at(5), at(9));
    gaps.len() + 1 >= MIN_STEPS && long <= typical * 2 && short * 3 >= typical
}

/// How many marks make a round: the smallest number after which the same allocation follows a mark again.
fn period_of(device: &DeviceRecording, bounds: &[EventIdx]) -> usize {
    const MOST: usize = 4;
    let events = &device.events;
    let next_stack = |at: &EventIdx| {
        (at.index()..events.len()).find(|&i| events.actions()[i] == Action::Alloc).map(|i| events.stacks()[i])
    };
    let after: Vec<_> = bounds.iter().map(next_stack).collect();
    // A leak on every second step changes what follows a mark too, but not what happens between two.
    if share_stacks(device, bounds) {
        return 1;
    }
    (1..=MOST)
        .find(|&period| {
            let n = after.len().saturating_sub(period);
            let same = after.iter().zip(after.iter().skip(period)).filter(|(a, b)| a == b).count();
            n >= MIN_STEPS && same * 10 >= n * 9
        })
        .unwrap_or(1)
}

/// Whether neighbouring intervals mostly allocate from the same stacks, as rounds do, and the halves of a round do not.
fn share_stacks(device: &DeviceRecording, bounds: &[EventIdx]) -> bool {
    /// How many neighbours are looked at, after the first few, in which state is made.
    const LOOKED_AT: usize = 9;
    let events = &device.events;
    let stacks_of = |w: &[EventIdx]| -> FxHashSet<StackId> {
        let range = w[0].index()..w[1].index().min(events.len());
        range.filter(|&i| events.actions()[i] == Action::Alloc).map(|i| events.stacks()[i]).collect()
    };
    let from = bounds.len() / 3;
    let sets: Vec<FxHashSet<StackId>> =
        bounds.get(from..).unwrap_or(&[]).windows(2).take(LOOKED_AT).map(stacks_of).collect();
    let alike = sets
        .windows(2)
        .filter(|pair| {
            let shared = pair[0].intersection(&pair[1]).count();
            shared * 2 > pair[0].len().max(pair[1].len())
        })
        .count();
    alike * 2 > sets.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(groups: &[(u32, u32)], want: &[u32]) {
        let groups: Vec<Recurring> =
            groups.iter().map(|&(runs, events)| Recurring { runs, events, first: 0, last: 0 }).collect();
        assert_eq!(rounds_that_fit(&groups), want);
    }

    #[test]
    fn the_number_of_rounds_divides_the_counts() {
        // Once, twice and four times a round.
        check(&[(40, 400), (80, 800), (160, 800)], &[80, 40]);
        // One in flight.
        check(&[(41, 41), (42, 42), (84, 84)], &[42, 41]);
        // A training loop with an evaluation every ten steps.
        check(&[(200, 9000), (20, 300)], &[200, 20]);
        check(&[], &[]);
    }

    #[test]
    fn rounds_come_at_regular_intervals() {
        let at = |births: &[u32]| births.iter().map(|&b| EventIdx(b)).collect::<Vec<_>>();
        assert!(is_regular(&at(&[0, 10, 20, 31, 40, 50, 61, 70])));
        // Four times a round.
        assert!(!is_regular(&at(&[0, 1, 2, 3, 40, 41, 42, 43, 80, 81, 82, 83])));
        // Rarer and rarer.
        assert!(!is_regular(&at(&[0, 1, 2, 4, 8, 16, 32, 64, 128])));
    }
}
