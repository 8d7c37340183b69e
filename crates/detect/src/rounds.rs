//! The clock that detectors use: steps where the program has them, equal parts of the trace where not.

use vramscope_model::{Action, DeviceRecording, EventIdx};
use vramscope_replay::{Steps, Window};

/// Fewer steps than this are no clock: too little could be told apart.
const MIN_STEPS: usize = 6;
/// Into how many parts of equally many allocations a trace without steps is divided.
const PARTS: usize = 40;

/// The rounds of a window. Their numbers serve as ages.
pub(crate) struct Rounds {
    /// The end of each whole round, ascending.
    ends: Vec<EventIdx>,
    are_steps: bool,
}

impl Rounds {
    pub(crate) fn of(device: &DeviceRecording, steps: &Steps, window: Window) -> Self {
        if steps.count() >= MIN_STEPS {
            return Self { ends: with_tail(steps, window), are_steps: true };
        }
        let actions = device.events.actions();
        let range = window.from.index()..window.to.index().min(actions.len());
        let n = range.clone().filter(|&i| actions[i] == Action::Alloc).count();
        let parts = PARTS.min(n);
        let mut ends = Vec::with_capacity(parts);
        let mut seen = 0;
        for i in range {
            if actions[i] == Action::Alloc {
                seen += 1;
                if seen * parts >= (ends.len() + 1) * n {
                    ends.push(EventIdx(i as u32 + 1));
                }
            }
        }
        if let Some(last) = ends.last_mut() {
            *last = window.to;
        }
        Self { ends, are_steps: false }
    }

    /// How many whole rounds there are.
    pub(crate) fn count(&self) -> usize {
        self.ends.len()
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

    /// Whether rounds are the program's own steps.
    pub(crate) fn are_steps(&self) -> bool {
        self.are_steps
    }

    /// What to call one: "step" or "part of the trace".
    pub(crate) fn unit(&self, n: usize) -> &'static str {
        match (self.are_steps, n) {
            (true, 1) => "step",
            (true, _) => "steps",
            (false, 1) => "part of the trace",
            (false, _) => "parts of the trace",
        }
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
