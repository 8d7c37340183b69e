//! The clock that detectors use: the program's steps, and, where its loop has ended, as many more rounds of their length.

use vramscope_model::EventIdx;
use vramscope_replay::{Steps, Window};

/// Fewer steps than this are no clock: too little could be told apart.
const MIN_STEPS: usize = 6;

/// The rounds of a window. Their numbers serve as ages. Where nothing recurs there are none: without a loop nothing can be said
/// to grow.
pub(crate) struct Rounds {
    /// The end of each whole round, ascending.
    ends: Vec<EventIdx>,
    /// How many of them are steps; the rest only measures how long ago the loop ended.
    n_steps: usize,
}

impl Rounds {
    pub(crate) fn of(steps: &Steps, window: Window) -> Self {
        if steps.count() < MIN_STEPS {
            return Self { ends: Vec::new(), n_steps: 0 };
        }
        Self { ends: with_tail(steps, window), n_steps: steps.count() }
    }

    /// How many whole rounds there are.
    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    /// How many of them are the program's steps.
    pub(crate) fn n_steps(&self) -> usize {
        self.n_steps
    }

    /// The round of an event; the number of rounds for what comes after the last whole one.
    #[inline]
    pub(crate) fn of_event(&self, event: EventIdx) -> usize {
        self.ends.partition_point(|&end| end <= event)
    }

    /// The events of the shortest round.
    pub(crate) fn shortest(&self) -> u32 {
        self.ends.windows(2).map(|w| w[1].0 - w[0].0).min().unwrap_or(0)
    }
}

/// The ends of steps, and, where the trace goes on much longer than the step in flight would, of as many more rounds of the
/// usual length: a loop that has ended must not seem to go on to the end.
fn with_tail(steps: &Steps, window: Window) -> Vec<EventIdx> {
    let mut ends = steps.ends().to_vec();
    let mut lengths: Vec<u32> = steps.bounds().windows(2).map(|w| w[1].0 - w[0].0).collect();
    lengths.sort_unstable();
    let usual = lengths.get(lengths.len() / 2).copied().unwrap_or(0).max(1);
    let last = ends.last().map_or(0, |e| e.0);
    let more = window.to.0.saturating_sub(last) / usual;
    if more >= 3 {
        ends.extend((1..=more).map(|i| EventIdx(last + i * usual)));
    }
    ends
}
