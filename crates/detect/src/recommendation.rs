//! Which of the tried settings is worth setting, and what it costs; or why none is.
//!
//! The simplest setting that gets most of what is to be had wins: few keys can be understood, and each setting costs
//! something that a replay of memory does not show.

use std::cmp::Reverse;

use vramscope_replay::allocator::{OutOfMemory, Outcome, Spread};

use crate::settings::n_keys;

/// A setting and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The text to set it with; empty for the defaults.
    pub conf: String,
    /// What came of it within the limits.
    pub outcome: Outcome,
    /// What may come of it otherwise, by what the recording does not tell.
    pub spread: Spread,
    /// What came of it without limits, if memory ran out.
    pub unlimited: Option<Outcome>,
    /// The most bytes that could be reserved; none where that is not known.
    pub limit: Option<u64>,
    /// Of the recording's own settings: what would come of them without limits if the run began as it does under all
    /// others, without what was cached when the recording began. None where nothing was there.
    pub anew: Option<Outcome>,
    /// The same within the limits; none where nothing was there or nothing is limited.
    pub anew_within: Option<Outcome>,
}

impl Trial {
    /// The peak of reserved bytes, or what it would be if memory had not run out.
    pub fn needed(&self) -> u64 {
        self.unlimited.as_ref().unwrap_or(&self.outcome).peak_reserved
    }

    /// The peak of reserved bytes that other settings are compared with, if this is the recording's own: what was left
    /// over from before the recording no setting can be credited with.
    pub fn comparable_peak(&self) -> u64 {
        let peak = self.outcome.peak_reserved;
        self.anew.as_ref().map_or(peak, |anew| anew.peak_reserved.min(peak))
    }
}

/// How often the driver was called.
fn driver_calls(outcome: &Outcome) -> u64 {
    let &Outcome { segment_allocs, segment_frees, maps, unmaps, .. } = outcome;
    [segment_allocs, segment_frees, maps, unmaps].into_iter().fold(0, u64::saturating_add)
}

/// The conclusion from some trials, of which the first is of the recording's own settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The trial whose setting is recommended, if any is.
    pub choice: Option<usize>,
    /// Why, or why none.
    pub reason: Reason,
    /// What the choice costs.
    pub costs: Vec<Cost>,
    /// The trial of the lowest peak, if that is not the choice.
    pub lower_still: Option<usize>,
}

/// Why a setting is recommended, or none. Bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// It peaks lower.
    Lower {
        /// The peak of reserved bytes under the recording's own settings.
        from: u64,
        /// And under the recommended one.
        to: u64,
    },
    /// Memory does not run out.
    Fits {
        /// The peak of reserved bytes.
        peak: u64,
        /// What could be reserved.
        limit: u64,
    },
    /// No setting can help: what is reserved at the peak is nearly all held by the program.
    LiveMemory {
        /// The most that the program held, as blocks.
        allocated: u64,
        /// The peak of reserved bytes.
        reserved: u64,
    },
    /// No setting can help: what the program holds and asks for at once is more than there is.
    TooMuchAtOnce {
        /// The request, and what was held then.
        failed: OutOfMemory,
        /// What could be reserved.
        limit: u64,
    },
    /// Memory runs out under every setting, though it would suffice for what the program holds.
    NoneFits {
        /// The trial that needs least.
        least: usize,
        /// What it needs.
        needed: u64,
        /// What could be reserved.
        limit: u64,
    },
    /// No setting lowers the peak by enough to be worth it.
    NoGain {
        /// The peak of reserved bytes that they are compared with.
        from: u64,
        /// The trial of the lowest peak, if lower than the recording's own settings.
        best: Option<usize>,
    },
    /// The replay under the recording's own settings is too far from the recording to compare others.
    Unreliable,
}

/// What a recommended setting costs, beside the recording's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Calls of the driver: how many, and how many under the recording's own settings, if that can be compared.
    DriverCalls(u64, Option<u64>),
    /// More bytes are allocated at the peak, as blocks are rounded up further.
    Rounding(u64),
    /// All unused memory is given back to serve a request, so often; and under the recording's own settings.
    Flushes(u64, u64),
    /// Unused segments are given back, so often.
    Collections(u64),
}

/// How far the replay under the recording's own settings is from the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubt {
    /// By how many bytes its peak misses the recorded one.
    pub bytes: u64,
    /// Segment events in the recording.
    pub recorded: u64,
    /// How many of them the replay made, too.
    pub reproduced: u64,
    /// Whether a request that failed is served in that replay, within limits that the recording gives away.
    pub serves_what_failed: bool,
}

impl Doubt {
    /// Whether a replay says something about other settings. It peaks at so many bytes under the recording's own.
    pub(crate) fn is_bearable(self, peak: u64) -> bool {
        !self.serves_what_failed
            && self.bytes as f64 <= MOST_DOUBT * peak as f64
            && self.reproduced as f64 >= LEAST_REPRODUCED * self.recorded as f64
    }
}

/// A lower peak by less than this share is not worth a setting.
pub const WORTH_SHARE: f64 = 0.05;
/// Nor is one by less than these bytes.
pub const WORTH_BYTES: u64 = 64 << 20;
/// Within limits that no peak exceeds, a peak is clearly lower by this share.
const CLEAR_SHARE: f64 = 0.02;
/// A simpler setting wins if it gets this share of what the best one saves.
const NEARLY_ALL: f64 = 0.9;
/// Where this share of the peak is held by the program, it is the program that needs it.
pub const LIVE_SHARE: f64 = 0.95;
/// A replay whose own peak is off by more than this share says nothing about other settings.
const MOST_DOUBT: f64 = 0.2;
/// Nor does one that makes less than this share of the recorded segment events.
const LEAST_REPRODUCED: f64 = 0.5;
/// More bytes lost to rounding are worth a word.
const ROUNDING_BYTES: u64 = 1 << 20;

/// Judges trials; none without one of the recording's own settings.
pub fn recommend(trials: &[Trial], doubt: Doubt) -> Option<Judgement> {
    let own = trials.first()?;
    let none = |reason| Some(Judgement { choice: None, reason, costs: Vec::new(), lower_still: None });
    if !doubt.is_bearable(own.needed()) {
        return none(Reason::Unreliable);
    }
    let others = || trials.iter().enumerate().skip(1);
    let fitting = || others().filter(|(_, trial)| trial.outcome.oom.is_none());
    if let Some(failed) = own.outcome.oom {
        let limit = own.limit.unwrap_or(failed.reserved);
        // Where only what was left over from before the recording is in the way, any setting seems to help.
        let fits_anew =
            own.anew_within.as_ref().filter(|anew| anew.oom.is_none()).map(|anew| anew.peak_reserved);
        let helps = |trial: &Trial| {
            let Some(within) = fits_anew else { return !trial.spread.may_run_out };
            // What nothing was given back for is compared with what would be without limits.
            let is_unhindered = trial.outcome.retries == 0 && trial.outcome.collections == 0;
            let without = own.anew.as_ref().filter(|_| is_unhindered).map(|anew| anew.peak_reserved);
            let from = without.unwrap_or(within);
            let saved = from.saturating_sub(trial.spread.high);
            !trial.spread.may_run_out && saved as f64 >= CLEAR_SHARE * from as f64
        };
        let lowest = fitting()
            .min_by_key(|&(i, trial)| (trial.outcome.peak_reserved, i))
            .map(|(i, trial)| (i, trial.outcome.peak_reserved));
        let fitting: Vec<usize> = fitting().filter(|(_, trial)| helps(trial)).map(|(i, _)| i).collect();
        // What is saved counts against what would be needed, else a little room more would outweigh being simple.
        let Some(choice) = simplest(trials, own.needed().max(limit), &fitting) else {
            if let Some(from) = fits_anew {
                return none(Reason::NoGain {
                    from,
                    best: lowest.filter(|&(_, to)| to < from).map(|(i, _)| i),
                });
            }
            if failed.allocated.saturating_add(failed.size) > limit {
                return none(Reason::TooMuchAtOnce { failed, limit });
            }
            let (least, needed) = trials.iter().map(Trial::needed).enumerate().min_by_key(|&(_, n)| n)?;
            return none(Reason::NoneFits { least, needed, limit });
        };
        let chosen_trial = trials.get(choice)?;
        // A setting may bring a limit of its own.
        let (peak, limit) = (chosen_trial.outcome.peak_reserved, chosen_trial.limit.unwrap_or(limit));
        return chosen(trials, choice, Reason::Fits { peak, limit });
    }
    let from = own.comparable_peak();
    let worth = WORTH_BYTES.max((WORTH_SHARE * from as f64).ceil() as u64).max(doubt.bytes.saturating_mul(2));
    let saved = |trial: &Trial| from.saturating_sub(trial.outcome.peak_reserved);
    // It must be worth it wherever the driver puts segments.
    let saved_surely = |trial: &Trial| from.saturating_sub(trial.spread.high);
    let gains: Vec<usize> =
        fitting().filter(|(_, trial)| saved_surely(trial) >= worth).map(|(i, _)| i).collect();
    if let Some(choice) = simplest(trials, from, &gains) {
        let to = trials.get(choice)?.outcome.peak_reserved;
        return chosen(trials, choice, Reason::Lower { from, to });
    }
    let allocated = own.outcome.peak_allocated;
    if allocated as f64 >= LIVE_SHARE * from as f64 {
        return none(Reason::LiveMemory { allocated, reserved: from });
    }
    let lowest = fitting().filter(|(_, trial)| saved(trial) > 0).max_by_key(|&(i, t)| (saved(t), Reverse(i)));
    none(Reason::NoGain { from, best: lowest.map(|(i, _)| i) })
}

/// Of some trials the simplest that saves nearly as much of `from` bytes as the best one: fewest keys, then fewest calls
/// of the driver, then the lowest peak.
fn simplest(trials: &[Trial], from: u64, candidates: &[usize]) -> Option<usize> {
    let of = |i: &usize| trials.get(*i).map(|trial| (*i, trial));
    let saved = |trial: &Trial| from.saturating_sub(trial.outcome.peak_reserved) as f64;
    let best = candidates.iter().filter_map(of).map(|(_, trial)| saved(trial)).fold(0.0, f64::max);
    candidates
        .iter()
        .filter_map(of)
        .filter(|(_, trial)| saved(trial) >= NEARLY_ALL * best)
        .min_by_key(|&(i, trial)| {
            (n_keys(&trial.conf), driver_calls(&trial.outcome), trial.outcome.peak_reserved, i)
        })
        .map(|(i, _)| i)
}

fn chosen(trials: &[Trial], choice: usize, reason: Reason) -> Option<Judgement> {
    let (own, other) = (trials.first()?, trials.get(choice)?);
    let (before, after) = (&own.outcome, &other.outcome);
    let calls = driver_calls(before);
    // Where memory ran out, calls are those until then; and what was there when the recording began took none.
    let most_was_there = own.anew.as_ref().is_some_and(|anew| driver_calls(anew) > calls.saturating_mul(2));
    let is_comparable = before.oom.is_none() && !most_was_there;
    let mut costs = vec![Cost::DriverCalls(driver_calls(after), is_comparable.then_some(calls))];
    // Where memory ran out, only a part of the recording was replayed.
    let before_peak = own.unlimited.as_ref().unwrap_or(before).peak_allocated;
    let rounding = after.peak_allocated.saturating_sub(before_peak);
    if rounding >= ROUNDING_BYTES {
        costs.push(Cost::Rounding(rounding));
    }
    if after.retries > before.retries {
        costs.push(Cost::Flushes(after.retries, before.retries));
    }
    if after.collections > 0 {
        costs.push(Cost::Collections(after.collections));
    }
    let lowest = trials
        .iter()
        .enumerate()
        .filter(|(_, trial)| trial.outcome.oom.is_none())
        .min_by_key(|&(i, trial)| (trial.outcome.peak_reserved, i))
        .filter(|(_, trial)| trial.outcome.peak_reserved < after.peak_reserved);
    Some(Judgement { choice: Some(choice), reason, costs, lower_still: lowest.map(|(i, _)| i) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_model::EventIdx;

    const MIB: u64 = 1 << 20;

    /// A setting, its peak of reserved and of allocated MiB, and how often it calls the driver.
    fn trial(conf: &str, reserved: u64, allocated: u64, calls: u64) -> Trial {
        let outcome = Outcome {
            peak_reserved: reserved * MIB,
            peak_allocated: allocated * MIB,
            segment_allocs: calls,
            ..Outcome::default()
        };
        let spread = Spread::of(&outcome);
        Trial {
            conf: conf.to_owned(),
            outcome,
            spread,
            unlimited: None,
            limit: None,
            anew: None,
            anew_within: None,
        }
    }

    /// The same, but memory ran out at a request for so many MiB.
    fn out_of_memory(conf: &str, needed: u64, held: u64, request: u64, limit: u64) -> Trial {
        let mut trial = trial(conf, limit, held, 9);
        trial.unlimited = Some(Outcome { peak_reserved: needed * MIB, ..Outcome::default() });
        trial.limit = Some(limit * MIB);
        trial.outcome.oom = Some(OutOfMemory {
            event: EventIdx(7),
            size: request * MIB,
            reserved: limit * MIB,
            allocated: held * MIB,
            largest_free: 0,
            free: 0,
        });
        trial
    }

    fn check(trials: &[Trial], off_by: u64, choice: Option<usize>, reason: Reason) -> Judgement {
        let doubt = Doubt { bytes: off_by * MIB, ..Doubt::default() };
        let judgement = recommend(trials, doubt).unwrap();
        assert_eq!((judgement.choice, &judgement.reason), (choice, &reason));
        judgement
    }

    fn no_gain(from: u64, best: Option<usize>) -> Reason {
        Reason::NoGain { from: from * MIB, best }
    }

    #[test]
    fn the_simplest_setting_that_saves_nearly_all_wins() {
        let trials = [
            trial("", 2550, 681, 80),
            trial("expandable_segments:True", 756, 679, 40),
            trial("max_split_size_mb:64", 4122, 701, 90),
            trial("roundup_power2_divisions:8", 1578, 697, 60),
            trial("expandable_segments:True,roundup_power2_divisions:8", 750, 696, 20),
        ];
        let reason = Reason::Lower { from: 2550 * MIB, to: 756 * MIB };
        let judgement = check(&trials, 0, Some(1), reason);
        assert_eq!(judgement.costs, [Cost::DriverCalls(40, Some(80))]);
        assert_eq!(judgement.lower_still, Some(4));
    }

    #[test]
    fn equally_simple_settings_are_told_apart_by_calls_of_the_driver() {
        let trials = [trial("", 1000, 500, 10), trial("a:1", 600, 501, 50), trial("b:1", 620, 505, 20)];
        let judgement = check(&trials, 0, Some(2), Reason::Lower { from: 1000 * MIB, to: 620 * MIB });
        assert_eq!(judgement.costs, [Cost::DriverCalls(20, Some(10)), Cost::Rounding(5 * MIB)]);
    }

    #[test]
    fn what_saves_little_is_not_worth_a_setting() {
        let small = [trial("", 700, 300, 10), trial("a:1", 637, 300, 10)];
        check(&small, 0, None, no_gain(700, Some(1)));
        let small_share = [trial("", 10_000, 3000, 10), trial("a:1", 9501, 300, 10)];
        check(&small_share, 0, None, no_gain(10_000, Some(1)));
        let worse = [trial("", 700, 300, 10), trial("a:1", 800, 300, 10)];
        check(&worse, 0, None, no_gain(700, None));
        let just_worth_it = [trial("", 700, 300, 10), trial("a:1", 636, 300, 10)];
        check(&just_worth_it, 0, Some(1), Reason::Lower { from: 700 * MIB, to: 636 * MIB });
        check(&just_worth_it, 33, None, no_gain(700, Some(1)));
        check(&just_worth_it, 141, None, Reason::Unreliable);
    }

    #[test]
    fn what_saves_enough_only_by_luck_is_not_recommended() {
        let lucky = Trial {
            spread: Spread { low: 500 * MIB, high: 950 * MIB, may_run_out: false },
            ..trial("a:1", 600, 500, 10)
        };
        check(&[trial("", 1000, 500, 10), lucky.clone()], 0, None, no_gain(1000, Some(1)));
        let sure = trial("b:1", 700, 500, 10);
        let reason = Reason::Lower { from: 1000 * MIB, to: 700 * MIB };
        check(&[trial("", 1000, 500, 10), lucky, sure], 0, Some(2), reason);
    }

    #[test]
    fn no_setting_is_credited_with_what_is_left_over_from_before() {
        let own = Trial { anew: Some(trial("", 700, 500, 30).outcome), ..trial("", 1000, 500, 10) };
        check(&[own.clone(), trial("a:1", 690, 500, 5)], 0, None, no_gain(700, Some(1)));
        let lower = [own, trial("a:1", 600, 500, 5)];
        let judgement = check(&lower, 0, Some(1), Reason::Lower { from: 700 * MIB, to: 600 * MIB });
        assert_eq!(judgement.costs, [Cost::DriverCalls(5, None)]);
    }

    #[test]
    fn a_replay_that_makes_few_of_the_segment_events_says_nothing() {
        let trials = [trial("", 1000, 500, 10), trial("a:1", 600, 500, 50)];
        let reason = |reproduced| {
            recommend(&trials, Doubt { recorded: 10, reproduced, ..Doubt::default() }).unwrap().reason
        };
        assert_eq!(reason(4), Reason::Unreliable);
        assert_eq!(reason(5), Reason::Lower { from: 1000 * MIB, to: 600 * MIB });
    }

    #[test]
    fn no_setting_lowers_a_peak_that_the_program_holds() {
        let trials = [trial("", 1624, 1617, 10), trial("expandable_segments:True", 1626, 1617, 10)];
        let reason = Reason::LiveMemory { allocated: 1617 * MIB, reserved: 1624 * MIB };
        check(&trials, 0, None, reason);
    }

    #[test]
    fn a_setting_under_which_memory_suffices_is_recommended_whatever_it_saves() {
        let trials = [
            out_of_memory("", 1100, 700, 100, 1000),
            out_of_memory("b:1", 1050, 700, 100, 1000),
            Trial { limit: Some(1000 * MIB), ..trial("a:1", 980, 900, 12) },
        ];
        check(&trials, 0, Some(2), Reason::Fits { peak: 980 * MIB, limit: 1000 * MIB });
    }

    #[test]
    fn what_may_run_out_is_no_rescue() {
        let fits = |conf: &str, may_run_out| {
            let trial = Trial { limit: Some(1000 * MIB), ..trial(conf, 980, 650, 20) };
            Trial { spread: Spread { may_run_out, ..trial.spread }, ..trial }
        };
        let own = || out_of_memory("", 1100, 700, 100, 1000);
        let reason = Reason::Fits { peak: 980 * MIB, limit: 1000 * MIB };
        check(&[own(), fits("a:1", true), fits("b:1", false)], 0, Some(2), reason);
        let none = Reason::NoneFits { least: 1, needed: 980 * MIB, limit: 1000 * MIB };
        check(&[own(), fits("a:1", true)], 0, None, none);
    }

    #[test]
    fn what_the_own_settings_do_as_well_when_begun_anew_is_no_rescue() {
        let own = Trial {
            anew_within: Some(trial("", 990, 700, 30).outcome),
            ..out_of_memory("", 1100, 700, 100, 1000)
        };
        let fits = |conf: &str, peak| Trial { limit: Some(1000 * MIB), ..trial(conf, peak, 650, 20) };
        check(&[own.clone(), fits("a:1", 980)], 0, None, no_gain(990, Some(1)));
        check(&[own.clone(), fits("a:1", 990)], 0, None, no_gain(990, None));
        let reason = Reason::Fits { peak: 900 * MIB, limit: 1000 * MIB };
        check(&[own.clone(), fits("a:1", 980), fits("b:1", 900)], 0, Some(2), reason);
        // Without limits they would need more; the one gets by without giving memory back.
        let own = Trial { anew: Some(trial("", 1300, 700, 30).outcome), ..own };
        let flushing = |retries| {
            let trial = fits("a:1", 980);
            Trial { outcome: Outcome { retries, ..trial.outcome.clone() }, ..trial }
        };
        check(&[own.clone(), flushing(1)], 0, None, no_gain(990, Some(1)));
        check(&[own, flushing(0)], 0, Some(1), Reason::Fits { peak: 980 * MIB, limit: 1000 * MIB });
    }

    #[test]
    fn a_setting_is_judged_by_its_own_limit() {
        let trials = [
            out_of_memory("", 1100, 700, 100, 1000),
            Trial { limit: Some(1200 * MIB), ..trial("f:1", 1150, 700, 12) },
        ];
        check(&trials, 0, Some(1), Reason::Fits { peak: 1150 * MIB, limit: 1200 * MIB });
    }

    #[test]
    fn a_failure_that_is_not_reproduced_says_nothing() {
        let trials = [trial("", 1000, 500, 10), trial("a:1", 600, 500, 50)];
        let doubt = Doubt { serves_what_failed: true, ..Doubt::default() };
        assert_eq!(recommend(&trials, doubt).unwrap().reason, Reason::Unreliable);
    }

    #[test]
    fn of_settings_under_which_memory_suffices_the_simplest_wins_over_a_little_more_room() {
        let own = out_of_memory("", 2400, 700, 100, 1000);
        let fits = |conf: &str, peak| Trial { limit: Some(1000 * MIB), ..trial(conf, peak, 650, 20) };
        let trials = [own.clone(), fits("e:1,r:8", 900), fits("e:1", 980)];
        check(&trials, 0, Some(2), Reason::Fits { peak: 980 * MIB, limit: 1000 * MIB });
        // Where little is to be had, it counts.
        let trials = [out_of_memory("", 1100, 700, 100, 1000), fits("e:1,r:8", 900), fits("e:1", 980)];
        check(&trials, 0, Some(1), Reason::Fits { peak: 900 * MIB, limit: 1000 * MIB });
    }

    #[test]
    fn too_much_at_once_is_told_from_too_much_in_pieces() {
        let live = [out_of_memory("", 1100, 950, 100, 1000), out_of_memory("a:1", 1060, 950, 100, 1000)];
        let failed = live[0].outcome.oom.unwrap();
        check(&live, 0, None, Reason::TooMuchAtOnce { failed, limit: 1000 * MIB });
        let pieces = [out_of_memory("", 1100, 600, 100, 1000), out_of_memory("a:1", 1060, 600, 100, 1000)];
        check(&pieces, 0, None, Reason::NoneFits { least: 1, needed: 1060 * MIB, limit: 1000 * MIB });
    }

    #[test]
    fn nothing_is_said_of_no_trials() {
        assert_eq!(recommend(&[], Doubt::default()), None);
    }
}
