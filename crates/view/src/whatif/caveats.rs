//! What to keep in mind when reading the figures.

use vramscope_model::EventIdx;

use super::ending::Ending;
use super::found::Found;
use super::words::{counted, name, times, when};
use super::{LimitSource, Limits, SelfCheck, Setting};
use crate::quantity::{bytes, mebibytes, percent};

/// Where more than this share of the peak was cached when the recording began, other settings are hard to tell.
const MUCH_CACHED: f64 = 0.1;
/// Peaks that may shift by more than this share are told.
const WIDE_SHARE: f64 = 0.02;

/// Each as one sentence, those that change the figures most first.
pub(super) fn of(
    found: &Found<'_>,
    check: &SelfCheck,
    limits: &Limits,
    settings: &[Setting],
    ending: Ending,
    step_of: impl Fn(EventIdx) -> Option<u64>,
) -> Vec<String> {
    let mut all = about_the_ending(ending, step_of);
    if !check.exact {
        let off = check.recorded_peak.abs_diff(check.replayed_peak);
        all.push(if off == 0 {
            "the replay parts from the recording, though both peak alike: a difference of a few segments between settings may be \
             none"
                .to_owned()
        } else {
            format!(
                "the replay parts from the recording and peaks at {} instead of {}: a difference between settings of less than {} ({}) \
                 may be none",
                bytes(check.replayed_peak),
                bytes(check.recorded_peak),
                bytes(off),
                percent(off, check.recorded_peak)
            )
        });
    }
    all.extend(about_limits(found, limits, settings));
    all.extend(about_the_beginning(found, check));
    all.extend(about_spreads(settings));
    if check.private_peak > 0 {
        all.push(format!(
            "up to {} in private pools (CUDA graphs, `MemPool`) are taken as recorded under every setting",
            bytes(check.private_peak)
        ));
    }
    let in_doubt = found.reproduction.flush_in_doubt.then(|| {
        let peak = || found.trials.first().map_or(0, |own| own.outcome.peak_reserved);
        found.reproduction.refused.unwrap_or_else(peak)
    });
    all.extend(about_flushes(check.empty_cache_calls, in_doubt));
    all.push(
        "the program is taken to ask for the same under every setting; autotuning, and code that looks at how much is free, \
         may not"
            .to_owned(),
    );
    all
}

/// Memory that went back without need. If it may have been short, `limit` is what could be reserved then.
fn about_flushes(calls: u64, limit: Option<u64>) -> Option<String> {
    if let Some(limit) = limit {
        return Some(format!(
            "once all unused memory went back right before a request: taken for `empty_cache()`, but it may be that memory was \
             short (then the limit is about {})",
            bytes(limit)
        ));
    }
    (calls > 0).then(|| {
        format!(
            "unused memory went back to the driver without need {}: that is taken for `empty_cache()`, and done under every \
             setting",
            times(calls)
        )
    })
}

fn about_the_ending(ending: Ending, step_of: impl Fn(EventIdx) -> Option<u64>) -> Vec<String> {
    let mut all = Vec::new();
    if ending.served {
        all.push(
            "a request failed when recorded that is served here under the recording's own setting: the replay does not show why, \
             so neither does it show what would help"
                .to_owned(),
        );
    }
    if let Some(below) = ending.told_beyond {
        all.push(format!(
            "a request failed when recorded though less than {} would have been reserved: the device had less left for this process \
             (others use it, too), or a memory fraction was set; all figures are for another device than that",
            mebibytes(below)
        ));
    }
    if let Some(event) = ending.survived {
        all.push(format!(
            "the program went on after the request that failed {}: what it asked for then is replayed as well where memory suffices",
            when(event.0.into(), step_of(event))
        ));
    }
    all
}

fn about_limits(found: &Found<'_>, limits: &Limits, settings: &[Setting]) -> Vec<String> {
    let mut all = Vec::new();
    let collects = |i: usize| {
        found.candidates.get(i).is_some_and(|candidate| candidate.config.garbage_collection_threshold > 0.0)
    };
    let unlimited = |i: usize| {
        found.candidates.get(i).is_some_and(|c| found.room.limits(&c.config, found.rules).reserved.is_none())
    };
    if (0..settings.len()).any(|i| collects(i) && unlimited(i) && fraction_of(found, i).is_none()) {
        all.push(
            "`garbage_collection_threshold` does nothing unless the process has a memory fraction: give `--memory-fraction` and \
             `--capacity` if it has"
                .to_owned(),
        );
    }
    if settings.iter().any(|setting| !setting.rescued.is_empty()) && limits.source != LimitSource::Unknown {
        all.push(
            "where a request is served that failed in the recording, what the program would have asked for next is not known"
                .to_owned(),
        );
    }
    all
}

/// Peaks that depend on what a recording does not tell, those that do most first.
fn about_spreads(settings: &[Setting]) -> Option<String> {
    const SHOWN: usize = 3;
    let width = |s: &Setting| s.peak_reserved_high - s.peak_reserved_low;
    let mut wide: Vec<&Setting> =
        settings.iter().filter(|s| width(s) as f64 > WIDE_SHARE * s.peak_reserved as f64).collect();
    wide.sort_by_key(|s| std::cmp::Reverse(width(s)));
    let words: Vec<String> = wide
        .iter()
        .take(SHOWN)
        .map(|s| format!("{} {} to {}", name(s), bytes(s.peak_reserved_low), bytes(s.peak_reserved_high)))
        .collect();
    let more = wide.len().saturating_sub(SHOWN);
    let others =
        if more > 0 { format!(" (and {} less so)", counted(more as u64, "other")) } else { String::new() };
    (!words.is_empty()).then(|| {
        format!(
            "where the driver puts memory and what was there before can shift a peak: {}{others}",
            words.join("; ")
        )
    })
}

fn about_the_beginning(found: &Found<'_>, check: &SelfCheck) -> Option<String> {
    if found.blocks_before == 0 {
        return None;
    }
    let blocks = counted(found.blocks_before, "block");
    let are = if found.blocks_before == 1 { "is" } else { "are" };
    let mut told = vec![format!(
        "the recording begins after the program did: under other settings the {blocks} from before it {are} asked for anew"
    )];
    if check.cached_at_start > 0 {
        told.push(format!(", without {} that were reserved but unused then", bytes(check.cached_at_start)));
    }
    let own = found.trials.first().filter(|own| own.outcome.oom.is_none());
    if let Some((own, anew)) = own.map(|own| (own.outcome.peak_reserved, own.comparable_peak()))
        && anew < own
    {
        let (own, anew) = (bytes(own), bytes(anew));
        told.push(format!(
            "; without what was there before, the recording's own setting would peak at {anew} instead of {own}, and with that others \
             are compared"
        ));
    }
    if check.cached_at_start as f64 > MUCH_CACHED * check.recorded_peak as f64 {
        told.push(
            ". What other settings would have cached by then is not known, so record from the program's beginning to be sure"
                .to_owned(),
        );
    }
    Some(told.concat())
}

/// Memory fractions that limit nothing in the replay because the device's memory is not known, each with the bytes that a
/// device must have for that to be right.
pub(super) fn fractions(found: &Found<'_>) -> Vec<(f64, u64)> {
    let mut all: Vec<(f64, u64)> = Vec::new();
    for (i, (candidate, trial)) in found.candidates.iter().zip(&found.trials).enumerate() {
        let Some(fraction) = fraction_of(found, i) else { continue };
        let config = &candidate.config;
        // Whether an expandable segment may grow is judged by all of the request, not by what must be mapped for it.
        let slack = if config.expandable_segments {
            let rounded = config.round(found.largest_request);
            rounded.and_then(|size| config.segment_size(size)).unwrap_or(u64::MAX)
        } else {
            0
        };
        let whole = trial.needed().saturating_add(slack) as f64 / fraction;
        let collecting = config.garbage_collection_threshold;
        let collected_above = trial.needed() as f64 / fraction / collecting;
        let least = if collecting > 0.0 { whole.max(collected_above) } else { whole };
        let least = least.ceil() as u64;
        match all.iter_mut().find(|(of, _)| of.total_cmp(&fraction).is_eq()) {
            Some((_, most)) => *most = least.max(*most),
            None => all.push((fraction, least)),
        }
    }
    all
}

fn fraction_of(found: &Found<'_>, i: usize) -> Option<f64> {
    found.room.fraction_of_unknown(&found.candidates.get(i)?.config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_memory_went_back_for_want_is_left_open_where_it_is_not_known() {
        assert_eq!(about_flushes(0, None), None);
        let check =
            |limit, want: &str| assert!(about_flushes(1, limit).is_some_and(|told| told.contains(want)));
        check(None, "without need once: that is taken for `empty_cache()`, and done under every setting");
        check(Some(376 << 20), "but it may be that memory was short (then the limit is about 376.0 MiB)");
    }
}
