//! What other settings would have done for a recording: tried one after the other, and judged.

use rayon::prelude::*;

use crate::recommendation::{Doubt, Judgement, Reason, Trial, recommend};
use crate::rerun::Rerun;
use crate::room::Room;
use crate::settings::Candidate;
use crate::settings_in_words::{what_to_set, why_none};

/// The settings that were tried on a recording, and what is concluded from that.
#[derive(Clone, Debug)]
pub struct TriedSettings {
    /// What came of each; the recording's own are the first.
    pub trials: Vec<Trial>,
    /// The conclusion.
    pub judgement: Judgement,
    /// How much memory there is.
    pub room: Room,
    /// If memory runs out under each: the simplest under which it does not if there is as much as the recording does not exclude.
    pub perhaps: Option<Trial>,
    /// Whether the replay under the recording's own settings equals the recording.
    pub is_exact: bool,
    /// How far it is from the recording.
    pub doubt: Doubt,
    /// The most bytes that were reserved when it was recorded.
    pub recorded_peak: u64,
}

impl TriedSettings {
    /// Tries the settings that are worth it; none where that leads to no conclusion.
    ///
    /// `vramscope whatif` tries the same ones and concludes the same. What the conclusion does not depend on is left out here.
    pub fn of(rerun: &Rerun, room: Room) -> Option<Self> {
        let own = rerun.own_trial(room);
        let candidates = rerun.candidates(room);
        let mut others: Vec<(&Candidate, Trial)> =
            candidates.par_iter().map(|candidate| (candidate, rerun.trial(candidate, room))).collect();
        let runs_out = |trial: &Trial| trial.outcome.oom.is_some();
        let from = own.comparable_peak();
        others
            .par_iter_mut()
            .filter(|(_, trial)| !runs_out(trial) && (runs_out(&own) || trial.outcome.peak_reserved < from))
            .for_each(|(candidate, trial)| rerun.find_spread(trial, candidate, room));
        let none_fits = runs_out(&own) && others.iter().all(|(_, trial)| runs_out(trial));
        if none_fits {
            others.par_iter_mut().for_each(|(candidate, trial)| rerun.lift_limits(trial, candidate));
        }
        let perhaps = if none_fits {
            room.at_most().and_then(|most| {
                let trials: Vec<Trial> = candidates.par_iter().map(|c| rerun.trial(c, most)).collect();
                trials.into_iter().find(|trial| !runs_out(trial))
            })
        } else {
            None
        };
        let trials: Vec<Trial> =
            std::iter::once(own).chain(others.into_iter().map(|(_, trial)| trial)).collect();
        let doubt = rerun.doubt();
        let judgement = recommend(&trials, doubt)?;
        let (is_exact, recorded_peak) = (rerun.is_exact(), rerun.recorded_peak);
        Some(Self { trials, judgement, room, perhaps, is_exact, doubt, recorded_peak })
    }

    /// What to set and what comes of it, or why nothing helps: a sentence without a full stop.
    pub fn in_words(&self) -> String {
        what_to_set(self).or_else(|| why_none(self)).unwrap_or_default()
    }

    /// How many settings were tried beside the recording's own.
    pub fn count(&self) -> u64 {
        self.trials.len().saturating_sub(1) as u64
    }

    /// The setting that is recommended, if any is, and what came of it.
    pub fn recommended(&self) -> Option<&Trial> {
        self.trials.get(self.judgement.choice?)
    }

    /// The peak of reserved bytes under the recording's own settings that others are compared with: without what was left over
    /// from before the recording, and without limits if memory ran out.
    pub fn own_peak(&self) -> u64 {
        match (self.judgement.reason, self.trials.first()) {
            (Reason::Lower { from, .. } | Reason::NoGain { from, .. }, _) => from,
            (Reason::LiveMemory { reserved, .. }, _) => reserved,
            (_, Some(own)) => own.needed(),
            (_, None) => self.recorded_peak,
        }
    }

    /// What could be reserved at most, where that limits anything.
    pub fn limit(&self) -> Option<u64> {
        self.trials.first().and_then(|own| own.limit)
    }

    /// By how many bytes the recommended setting lowers the peak, however the driver places memory; 0 if none does.
    pub fn saved(&self) -> u64 {
        match (self.judgement.reason, self.recommended()) {
            (Reason::Lower { from, .. }, Some(choice)) => from.saturating_sub(choice.spread.high),
            _ => 0,
        }
    }

    /// Whether memory runs out under the recording's own settings.
    pub fn runs_out(&self) -> bool {
        self.trials.first().is_some_and(|own| own.outcome.oom.is_some())
    }

    /// How many requests that failed in the recording are served under the recommended setting. After the first of them the
    /// program would have gone another way.
    pub fn rescued(&self) -> u64 {
        self.recommended().map_or(0, |choice| choice.outcome.rescued.len() as u64)
    }

    /// Whether a request that fails under the recording's own settings is served under the recommended one.
    pub fn serves_what_failed(&self) -> bool {
        matches!(self.judgement.reason, Reason::Fits { .. })
    }
}
