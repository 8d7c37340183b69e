//! A recording made ready to be run under any settings.

use vramscope_model::{Action, DeviceRecording, Event, EventIdx, PoolId, Settings, State};

use super::addresses::Direction;
use super::config::{Config, Rules, Tie};
use super::outcome::{Limits, Outcome, Reproduction, Spread};
use super::replay::{Beginning, replay};
use super::reproduce::reproduce;
use super::workload::{Unplayable, Workload};
use crate::lifetimes::Lifetimes;

/// What was asked of the allocator in a recording, and how well its replay equals the recording.
#[derive(Clone, Debug)]
pub struct Simulation {
    workload: Workload,
    config: Config,
    rules: Rules,
    reproduction: Reproduction,
}

/// How often a segment is taken for one of a private pool and everything begun again.
const MOST_GUESSES: usize = 24;

impl Simulation {
    /// Replays a recording under each of the settings and rules that it may have been made under, and keeps those under which it
    /// is equalled best; earlier ones are preferred.
    ///
    /// A segment that was obtained although a free block would have served is one of a private pool (of a captured graph, say)
    /// of which nothing is left at the end: it is taken as recorded.
    ///
    /// # Errors
    /// Where the recording does not hold enough to replay.
    pub fn of(
        device: &DeviceRecording,
        lifetimes: &Lifetimes,
        settings: Option<&Settings>,
        candidates: &[(Config, Rules)],
    ) -> Result<Self, Unplayable> {
        let mut best: Option<Self> = None;
        for (config, rules) in candidates {
            let this = Self::under(device, lifetimes, settings, config, *rules)?;
            let is_exact = this.reproduction.is_exact();
            if best
                .as_ref()
                .is_none_or(|best| this.reproduction.differences() < best.reproduction.differences())
            {
                best = Some(this);
            }
            if is_exact {
                break;
            }
        }
        best.ok_or(Unplayable::NoHistory)
    }

    fn under(
        device: &DeviceRecording,
        lifetimes: &Lifetimes,
        settings: Option<&Settings>,
        config: &Config,
        rules: Rules,
    ) -> Result<Self, Unplayable> {
        // Where the settings are a guess themselves, anything could be explained.
        let may_guess = settings.is_none_or(|s| s.expandable_segments == config.expandable_segments);
        let play = |private: &[EventIdx]| -> Result<Self, Unplayable> {
            let workload = Workload::of(device, lifetimes, settings, private)?;
            let reproduction = reproduce(device, &workload, config, rules);
            Ok(Self { workload, config: config.clone(), rules, reproduction })
        };
        let mut best = play(&[])?;
        let mut private = Vec::new();
        let mut last = best.reproduction.clone();
        while let Some(segment) = misplaced_segment(device, &last)
            && may_guess
            && private.len() < MOST_GUESSES
        {
            private.push(segment);
            let next = play(&private)?;
            last = next.reproduction.clone();
            if next.reproduction.differences() < best.reproduction.differences() {
                best = next;
            }
        }
        Ok(best)
    }

    /// Runs the recorded requests under some settings, from the beginning to the end or until memory runs out.
    ///
    /// Under the recording's own settings it begins with what was there when the recording began; under any others the blocks
    /// from before it are requested anew.
    pub fn run(&self, config: &Config, limits: &Limits) -> Outcome {
        if config != &self.config {
            return self.run_anew(config, limits);
        }
        if limits.are_none() {
            return self.reproduction.outcome.clone();
        }
        self.replay(config, limits, Beginning::AsRecorded)
    }

    /// Runs the recorded requests with the blocks from before the recording requested anew, under whatever settings: what the
    /// runs under others are to be compared with.
    pub fn run_anew(&self, config: &Config, limits: &Limits) -> Outcome {
        self.replay(config, limits, Beginning::Anew { direction: Direction::AsSeen, largest_first: false })
    }

    /// What may come of a run otherwise, by what a recording does not tell: where the driver puts new segments, which decides
    /// between equally large blocks; in which order blocks from before the recording came; and whether the only time that all free
    /// memory went back, that was `empty_cache()`. Under the recording's own settings all that is known.
    pub fn spread(&self, config: &Config, limits: &Limits, outcome: &Outcome) -> Spread {
        let mut spread = Spread {
            low: outcome.peak_reserved,
            high: outcome.peak_reserved,
            may_run_out: outcome.oom.is_some(),
        };
        if config == &self.config {
            return spread;
        }
        let flushes = self.reproduction.flushes.as_slice();
        let anew = |direction, largest_first| Beginning::Anew { direction, largest_first };
        let mut others = Vec::new();
        if self.rules.tie != Tie::Registration {
            let towards = |direction| (anew(direction, false), flushes);
            others.extend([Direction::Upwards, Direction::Downwards].map(towards));
        }
        if !self.workload.start.blocks.is_empty() {
            others.push((anew(Direction::AsSeen, true), flushes));
        }
        if self.reproduction.flush_in_doubt {
            others.push((anew(Direction::AsSeen, false), &[]));
        }
        for (beginning, flushes) in others {
            let other = replay(&self.workload, config, self.rules, limits, flushes, beginning);
            spread.low = spread.low.min(other.peak_reserved);
            spread.high = spread.high.max(other.peak_reserved);
            spread.may_run_out |= other.oom.is_some();
        }
        spread
    }

    fn replay(&self, config: &Config, limits: &Limits, beginning: Beginning) -> Outcome {
        replay(&self.workload, config, self.rules, limits, &self.reproduction.flushes, beginning)
    }

    /// The settings that the recording was made under.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The rules of the release that made it.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    /// How well a replay under them equals the recording.
    pub fn reproduction(&self) -> &Reproduction {
        &self.reproduction
    }
}

/// The memory at which replay and recording part because the replay needs none, or elsewhere, unless it is known to be of the
/// default pool.
fn misplaced_segment(device: &DeviceRecording, reproduction: &Reproduction) -> Option<EventIdx> {
    let at = reproduction.first_divergence.as_ref().filter(|d| d.is_elsewhere)?.event;
    let actions = device.events.actions();
    let before = actions.get(..at.index())?;
    let segment = before
        .iter()
        .rposition(|a| matches!(a, Action::SegmentAlloc | Action::SegmentMap | Action::Alloc))?;
    if actions[segment] == Action::Alloc {
        return None;
    }
    let addr = device.events.addrs()[segment];
    let is_shown = |state: &State| {
        let place = state.segments.partition_point(|s| s.addr <= addr).checked_sub(1);
        let shown = place.map(|i| &state.segments[i]).filter(|s| addr < s.end() && s.pool == PoolId::DEFAULT);
        // It may have been given back and obtained again before the state.
        shown.is_some() && !device.events.iter().skip(segment + 1).any(|event| gives_back(&event, addr))
    };
    (!device.states.iter().any(is_shown)).then_some(EventIdx(segment as u32))
}

fn gives_back(event: &Event, addr: u64) -> bool {
    matches!(event.action, Action::SegmentFree | Action::SegmentUnmap)
        && event.addr <= addr
        && addr < event.addr.saturating_add(event.size.0)
}
