//! What the replays came to, put together as the answer.

use vramscope_detect::recommendation::{Doubt, Judgement, Trial, recommend};
use vramscope_detect::settings::Candidate;
use vramscope_detect::{Refusal, Room, RoomSource};
use vramscope_model::{DeviceRecording, EventIdx, Recording, StackId, Symbols};
use vramscope_replay::allocator::config::Rules;
use vramscope_replay::allocator::{Outcome, Reproduction};
use vramscope_replay::{Steps, Window};

use super::{
    self as view, Divergence, LimitSource, OtherDevice, OutOfMemory, SelfCheck, Setting, WhatIf, caveats,
    ending::Ending, grounds, words,
};
use crate::place;

/// All that was found out, before it is put into words.
pub(super) struct Found<'a> {
    pub(super) files: Vec<String>,
    pub(super) torch: String,
    pub(super) symbols: &'a Symbols,
    pub(super) recording: &'a Recording,
    pub(super) device: &'a DeviceRecording,
    pub(super) others: Vec<OtherDevice>,
    pub(super) recorded_peak: u64,
    pub(super) largest_request: u64,
    /// Blocks from before the recording.
    pub(super) blocks_before: u64,
    pub(super) rules: Rules,
    pub(super) room: Room,
    /// What the recording tells of it, where the user told more.
    pub(super) refusal: Option<Refusal>,
    pub(super) reproduction: &'a Reproduction,
    pub(super) candidates: Vec<Candidate>,
    /// One for each candidate; the first is of the recording's own settings.
    pub(super) trials: Vec<Trial>,
    /// How many settings the user named.
    pub(super) asked: usize,
    /// Whether others were tried, too.
    pub(super) swept: bool,
}

impl Found<'_> {
    pub(super) fn answer(self) -> Option<WhatIf> {
        let &Reproduction { recorded, reproduced, ref outcome, .. } = self.reproduction;
        let bytes = self.recorded_peak.abs_diff(outcome.peak_reserved);
        let ending = Ending::of(self.device, self.room, self.refusal, self.trials.first()?);
        let doubt = Doubt { bytes, recorded, reproduced, serves_what_failed: ending.served };
        let judgement = recommend(&self.trials, doubt)?;
        let whole = Window { from: EventIdx(0), to: EventIdx(self.device.events.len() as u32) };
        let steps = Steps::of(self.device, &self.recording.annotations, self.symbols, whole);
        let step_of = |event: EventIdx| (steps.count() > 0).then(|| steps.step_of(event) as u64 + 1);
        let settings: Vec<Setting> = self
            .trials
            .iter()
            .zip(&self.candidates)
            .enumerate()
            .map(|(i, (trial, candidate))| Setting {
                is_own: i == 0,
                warnings: candidate.warnings.clone(),
                ..self.setting(trial, step_of)
            })
            .collect();
        let self_check = self.self_check(step_of);
        let mut limits = self.limits(step_of);
        if let Some(below) = ending.told_beyond {
            limits.words = format!(
                "{}; but the recording failed with less than {}",
                limits.words,
                crate::quantity::mebibytes(below)
            );
        }
        let told = words::tell(
            &judgement,
            &settings,
            &limits,
            &self_check,
            ending,
            (!self.swept).then_some(self.asked),
        );
        let caveats = caveats::of(&self, &self_check, &limits, &settings, ending, step_of);
        let Judgement { choice, .. } = judgement;
        let own = self.trials.first().filter(|own| own.outcome.oom.is_none());
        let begun_anew =
            own.filter(|own| own.comparable_peak() < own.outcome.peak_reserved).map(Trial::comparable_peak);
        Some(WhatIf {
            files: self.files,
            torch: self.torch,
            device: self.device.ordinal,
            rank: self.recording.rank,
            others: self.others,
            events: self.device.events.len() as u64,
            self_check,
            limits,
            settings,
            failure_served: ending.served,
            swept: self.swept,
            begun_anew,
            recommended: choice,
            reason_kind: told.kind,
            headline: told.headline,
            reason: told.reason,
            trade_offs: told.trade_offs,
            caveats,
        })
    }

    fn setting(&self, trial: &Trial, step_of: impl Fn(EventIdx) -> Option<u64>) -> Setting {
        let Outcome { peak_reserved, peak_event, peak_allocated, .. } = trial.outcome;
        let held = peak_allocated.min(peak_reserved);
        Setting {
            conf: trial.conf.clone(),
            is_own: false,
            peak_reserved,
            peak_reserved_low: trial.spread.low,
            peak_reserved_high: trial.spread.high,
            peak_event: peak_event.0.into(),
            peak_step: step_of(peak_event),
            allocated_at_peak: trial.outcome.allocated_at_peak,
            final_reserved: trial.outcome.final_reserved,
            peak_allocated,
            peak_fragmentation: if peak_reserved == 0 {
                0.0
            } else {
                1.0 - held as f64 / peak_reserved as f64
            },
            segments_peak: trial.outcome.peak_segments,
            segment_allocs: trial.outcome.segment_allocs,
            segment_frees: trial.outcome.segment_frees,
            maps: trial.outcome.maps,
            unmaps: trial.outcome.unmaps,
            retries: trial.outcome.retries,
            collections: trial.outcome.collections,
            oom: trial.outcome.oom.as_ref().map(|oom| {
                let stack = self.device.events.stacks().get(oom.event.index()).copied();
                let stack = stack.unwrap_or(StackId::ABSENT);
                OutOfMemory {
                    event: oom.event.0.into(),
                    step: step_of(oom.event),
                    site: self.symbols.site(stack).map(|site| place::location(self.symbols, site)),
                    label: place::label(self.symbols, stack),
                    size: oom.size,
                    reserved: oom.reserved,
                    allocated: oom.allocated,
                    largest_free: oom.largest_free,
                    free: oom.free,
                }
            }),
            needed_without_limit: trial.unlimited.as_ref().map(|outcome| outcome.peak_reserved),
            rescued: trial.outcome.rescued.iter().map(|event| event.0.into()).collect(),
            warnings: Vec::new(),
        }
    }

    fn self_check(&self, step_of: impl Fn(EventIdx) -> Option<u64>) -> SelfCheck {
        let r = self.reproduction;
        let mut check = SelfCheck {
            exact: r.is_exact(),
            recorded: r.recorded,
            reproduced: r.reproduced,
            surplus: r.surplus,
            allocations: r.allocations,
            in_place: r.in_place,
            blocks: r.blocks,
            same_blocks: r.same_blocks,
            first_divergence: r.first_divergence.as_ref().map(|at| Divergence {
                event: at.event.0.into(),
                step: step_of(at.event),
                recorded: at.recorded.clone(),
                replayed: at.replayed.clone(),
            }),
            recorded_peak: self.recorded_peak,
            replayed_peak: r.outcome.peak_reserved,
            empty_cache_calls: r.flushes.len() as u64,
            cached_at_start: r.cached_at_start,
            private_peak: r.private_peak,
            summary: String::new(),
        };
        check.summary = grounds::self_check(&check);
        check
    }

    fn limits(&self, step_of: impl Fn(EventIdx) -> Option<u64>) -> view::Limits {
        let Some(own) = self.candidates.first().map(|c| &c.config) else { return view::Limits::none() };
        let limits = self.room.limits(own, self.rules);
        let fractions = caveats::fractions(self);
        let (source, below) = match self.room.source {
            RoomSource::Unknown => (LimitSource::Unknown, None),
            RoomSource::Told(_) => (LimitSource::Told, None),
            RoomSource::Recorded(Refusal { below, .. }) => (LimitSource::Recorded, Some(below)),
        };
        let mut view = view::Limits {
            capacity: limits.capacity,
            reserved_limit: limits.reserved,
            memory_fraction: self.room.fraction(own),
            below,
            fraction_binds_below: fractions.iter().map(|&(_, bytes)| bytes).max(),
            source,
            words: String::new(),
        };
        view.words = grounds::limits(&view, &self.room, &fractions, step_of);
        view
    }
}

impl view::Limits {
    pub(super) fn none() -> Self {
        Self {
            capacity: None,
            reserved_limit: None,
            memory_fraction: None,
            below: None,
            fraction_binds_below: None,
            source: LimitSource::Unknown,
            words: String::new(),
        }
    }
}
