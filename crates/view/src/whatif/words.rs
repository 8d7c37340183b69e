//! The answer in sentences: what is recommended, why, and what it costs.

use vramscope_detect::recommendation::{Cost, Judgement, Reason, WORTH_BYTES};

use super::ending::Ending;
use super::{LimitSource, Limits, ReasonKind, SelfCheck, Setting};
use crate::quantity::{bytes, grouped, mebibytes, percent};

/// The answer: what is recommended, why, and what it costs.
pub(super) struct Told {
    pub(super) kind: ReasonKind,
    pub(super) headline: String,
    pub(super) reason: String,
    pub(super) trade_offs: Vec<String>,
}

/// Says what was concluded. `only_asked` is how many settings the user named, if no others were tried.
pub(super) fn tell(
    judgement: &Judgement,
    settings: &[Setting],
    limits: &Limits,
    check: &SelfCheck,
    ending: Ending,
    only_asked: Option<usize>,
) -> Told {
    let (kind, mut headline, reason) = conclusion(judgement, settings, limits, check, ending);
    // Who asks about one setting wants to know about that one.
    if let (Some(1), [own, asked]) = (only_asked, settings)
        && matches!(kind, ReasonKind::LiveMemory | ReasonKind::NoGain)
    {
        let base = match judgement.reason {
            Reason::NoGain { from, .. } | Reason::LiveMemory { reserved: from, .. } => from,
            _ => own.needed(),
        };
        headline = comparison(base, own, asked);
    }
    if ending.goes_on && matches!(kind, ReasonKind::Fits | ReasonKind::TooMuchAtOnce | ReasonKind::NoneFits) {
        headline.push_str("; the program went on without it");
    }
    let trade_offs = judgement
        .choice
        .and_then(|choice| settings.first().zip(settings.get(choice)))
        .map(|(own, choice)| trade_offs(judgement, own, choice))
        .unwrap_or_default();
    Told { kind, headline, reason, trade_offs }
}

fn conclusion(
    judgement: &Judgement,
    settings: &[Setting],
    limits: &Limits,
    check: &SelfCheck,
    ending: Ending,
) -> (ReasonKind, String, String) {
    let named = |i: usize| settings.get(i).map(name).unwrap_or_default();
    let chosen = judgement.choice.map(named).unwrap_or_default();
    match judgement.reason {
        Reason::Lower { from, to } => {
            let saved = from.saturating_sub(to);
            let share = percent(saved, from);
            let headline = format!("{chosen} would have peaked at {} ({share} less)", instead(to, from));
            (ReasonKind::Lower, headline, why_this_one(settings, judgement, saved))
        }
        Reason::Fits { peak, limit } => {
            let served = if ending.is_last {
                "the request that failed would have been served"
            } else {
                "memory would not have run out"
            };
            let headline =
                format!("with {chosen} {served}: it peaks at {} of {}", mebibytes(peak), mebibytes(limit));
            let left = mebibytes(limit.saturating_sub(peak));
            let reason = match limits.source {
                LimitSource::Recorded => {
                    format!(
                        "it leaves {left}, counted from the least that the recording shows to be possible"
                    )
                }
                _ => format!("it leaves {left} of what can be reserved"),
            };
            let reason = match settings.first().and_then(|own| own.oom.as_ref()) {
                Some(oom) if ending.is_last && is_nearly(oom.allocated.saturating_add(oom.size), limit) => {
                    format!(
                        "{reason}. What is in use and asked for comes to {} of the limit, so this puts it off rather than solves it",
                        percent(oom.allocated.saturating_add(oom.size), limit)
                    )
                }
                _ => reason,
            };
            (ReasonKind::Fits, headline, reason)
        }
        Reason::LiveMemory { allocated, reserved } => {
            let share = percent(allocated, reserved);
            let headline =
                format!("no setting helps: {share} of the peak of {} is memory in use", bytes(reserved));
            let reason = format!(
                "the program held up to {} and {} were reserved for it; settings change only how the rest is laid out. {LESS}",
                bytes(allocated),
                bytes(reserved)
            );
            (ReasonKind::LiveMemory, headline, reason)
        }
        Reason::TooMuchAtOnce { failed, limit } => {
            let sum = failed.allocated.saturating_add(failed.size);
            let headline = format!(
                "no setting helps: {} are in use and {} more are asked for, but only {} can be reserved",
                mebibytes(failed.allocated),
                mebibytes(failed.size),
                mebibytes(limit)
            );
            let missing = mebibytes(sum.saturating_sub(limit));
            let reason = match limits.below {
                Some(below) if sum < below => format!(
                    "{missing} are missing, if no more can be reserved than the recording shows to be possible. {LESS}"
                ),
                _ => format!("{missing} are missing, however blocks are laid out. {LESS}"),
            };
            (ReasonKind::TooMuchAtOnce, headline, reason)
        }
        // Some fit, but not whatever a recording does not tell.
        Reason::NoneFits { least, needed, limit }
            if settings.get(least).is_some_and(|least| least.oom.is_none()) =>
        {
            let headline = format!(
                "no setting surely helps: with {} memory may suffice, at {} of {}",
                named(least),
                mebibytes(needed),
                mebibytes(limit)
            );
            let reason =
                "where the driver puts memory and what was there before decide whether it does".to_owned();
            (ReasonKind::NoneFits, headline, reason)
        }
        Reason::NoneFits { least, needed, limit } => {
            let headline = format!(
                "memory runs out under every setting tried: the least that any needs is {}, and {} can be reserved",
                mebibytes(needed),
                mebibytes(limit)
            );
            let reason = match needed.checked_sub(limit) {
                None | Some(0) => format!(
                    "{} needs least, and no more than that; but a limit is compared with all of a request, also where a part of it \
                     would do",
                    named(least)
                ),
                Some(missing) => {
                    format!("{} needs least, and {} are missing even so", named(least), mebibytes(missing))
                }
            };
            (ReasonKind::NoneFits, headline, reason)
        }
        Reason::NoGain { from, best } => no_gain(settings, from, best),
        Reason::Unreliable if ending.served => (
            ReasonKind::Unreliable,
            "the request that failed is served in the replay, so what would have helped cannot be told"
                .to_owned(),
            "under the recording's own setting and within the limits that it shows, memory suffices"
                .to_owned(),
        ),
        Reason::Unreliable => {
            let peaks = if check.replayed_peak == check.recorded_peak {
                format!("it peaks at {} as the recording does, but", bytes(check.replayed_peak))
            } else {
                format!("it peaks at {}, and", instead(check.replayed_peak, check.recorded_peak))
            };
            let reason = format!(
                "under the recording's own setting {peaks} makes {} of {}",
                grouped(check.reproduced),
                counted(check.recorded, "recorded segment event")
            );
            (
                ReasonKind::Unreliable,
                "the replay is too far from this recording to compare settings".to_owned(),
                reason,
            )
        }
    }
}

/// Whether so much is in use that a few requests more fill the rest.
fn is_nearly(used: u64, limit: u64) -> bool {
    const NEARLY: f64 = 0.9;
    used as f64 >= NEARLY * limit as f64
}

/// What to do where no setting helps.
const LESS: &str = "To need less, hold less at once: `vramscope analyze` shows which lines hold it";

/// Why a setting that peaks lower is recommended before others.
fn why_this_one(settings: &[Setting], judgement: &Judgement, saved: u64) -> String {
    let saved = bytes(saved);
    let tried = settings.len().saturating_sub(1);
    let of = |i: usize| settings.get(i);
    let choice = judgement.choice.and_then(of);
    let why = match (judgement.lower_still.and_then(of), choice) {
        _ if tried < 2 => format!("it saves {saved}"),
        (Some(lower), Some(choice)) => format!(
            "it saves {saved}, and of the {tried} settings tried no simpler one comes near; {} would save another {}",
            name(lower),
            bytes(choice.peak_reserved.saturating_sub(lower.peak_reserved))
        ),
        _ => format!("it saves {saved}, and none of the {tried} settings tried saves more"),
    };
    match (of(0), choice) {
        (Some(own), Some(choice)) if choice.retries < own.retries => format!(
            "{why}. The recording's own setting has to give back all unused memory {} to make room",
            times(own.retries)
        ),
        _ => why,
    }
}

fn no_gain(settings: &[Setting], from: u64, best: Option<usize>) -> (ReasonKind, String, String) {
    let tried = settings.len().saturating_sub(1) as u64;
    let own = settings.first();
    let whole = if own.is_some_and(|own| own.peak_reserved > from) {
        format!("{} (without what was left over from before the recording)", bytes(from))
    } else {
        bytes(from)
    };
    // Where memory runs out only for what was left over, anything else is as good.
    let over = if own.is_some_and(|own| own.oom.is_some()) {
        "; begun anew, without what was left over from before the recording, its own setting would do as well"
    } else {
        ""
    };
    let (headline, reason) = match best.and_then(|best| settings.get(best)) {
        Some(best) => {
            let saved = from.saturating_sub(best.peak_reserved);
            let headline = format!(
                "no setting saves much: {} lowers the peak of {whole} most, by {} ({})",
                name(best),
                bytes(saved),
                percent(saved, from)
            );
            let least = if saved < WORTH_BYTES {
                bytes(WORTH_BYTES)
            } else {
                "5 %, or what the replay is off by,".to_owned()
            };
            (headline, format!("less than {least} is not worth a setting"))
        }
        None if tried == 0 => {
            (format!("the recording's own setting peaks at {whole}"), "no other setting was tried".to_owned())
        }
        None => {
            let headline = format!("no setting tried peaks lower than the recording's own, at {whole}");
            let unused = own.map_or(0, |own| from.saturating_sub(own.peak_allocated));
            let who =
                if tried == 1 { "it peaks no".to_owned() } else { format!("none of the {tried} peaks") };
            let reason = format!(
                "{who} lower, though {} of that peak were never in use at once",
                percent(unused, from)
            );
            (headline, reason)
        }
    };
    (ReasonKind::NoGain, headline, format!("{reason}{over}"))
}

/// One setting beside the recording's own.
fn comparison(from: u64, own: &Setting, asked: &Setting) -> String {
    let name = name(asked);
    if let Some(oom) = &asked.oom {
        return format!(
            "with {name} memory would have run out {}, at a request for {}: {} are needed",
            when(oom.event, oom.step),
            bytes(oom.size),
            bytes(asked.needed())
        );
    }
    let to = asked.peak_reserved;
    let change = match to.cmp(&from) {
        std::cmp::Ordering::Equal => return format!("{name} would have peaked at {} as well", bytes(to)),
        std::cmp::Ordering::Less => format!("{} less", percent(from - to, from)),
        std::cmp::Ordering::Greater => format!("{} more", percent_more(to - from, from)),
    };
    let left_over = if own.oom.is_none() && from < own.peak_reserved {
        ", compared with the recording's own setting without what was left over from before the recording"
    } else {
        ""
    };
    format!("{name} would have peaked at {} ({change}){left_over}", instead(to, from))
}

/// Bytes instead of others, in a unit in which they differ.
fn instead(to: u64, from: u64) -> String {
    let (shown, before) = (bytes(to), bytes(from));
    if shown == before {
        format!("{} instead of {}", mebibytes(to), mebibytes(from))
    } else {
        format!("{shown} instead of {before}")
    }
}

/// Growth in percent, which may be more than 100.
fn percent_more(growth: u64, of: u64) -> String {
    if growth < of {
        percent(growth, of)
    } else {
        format!("{:.0} %", growth as f64 * 100.0 / of.max(1) as f64)
    }
}

/// A setting in a sentence.
pub(super) fn name(setting: &Setting) -> String {
    match (setting.is_own, setting.conf.as_str()) {
        (true, _) => "the recording's own setting".to_owned(),
        (false, "") => "the default setting".to_owned(),
        (false, conf) => format!("`{conf}`"),
    }
}

fn trade_offs(judgement: &Judgement, own: &Setting, choice: &Setting) -> Vec<String> {
    let mut told: Vec<String> =
        judgement.costs.iter().map(|cost| cost_in_words(*cost, own, choice)).collect();
    if choice.final_reserved > own.final_reserved && own.oom.is_none() {
        let more = bytes(choice.final_reserved - own.final_reserved);
        told.push(format!("{more} more stay reserved at the end"));
    }
    told
}

fn cost_in_words(cost: Cost, own: &Setting, choice: &Setting) -> String {
    match cost {
        Cost::DriverCalls(_, None) => format!("with the setting the driver is called: {}", calls_of(choice)),
        Cost::DriverCalls(calls, Some(before)) => {
            let verdict = if calls.saturating_mul(10) < before.saturating_mul(9) {
                "less often"
            } else if calls.saturating_mul(9) > before.saturating_mul(10) {
                "more often, which takes time"
            } else {
                "about as often"
            };
            format!("the driver is called {verdict}: {} instead of {}", calls_of(choice), calls_of(own))
        }
        Cost::Rounding(more) => {
            format!("blocks are rounded up further: {} more are in use at the peak", bytes(more))
        }
        Cost::Flushes(flushes, before) => format!(
            "{} all unused memory is given back to serve a request, instead of {}; each time the device is waited for",
            times(flushes),
            grouped(before)
        ),
        Cost::Collections(n) => {
            format!("{} unused segments are given back, and must be obtained again when needed", times(n))
        }
    }
}

/// A number of things: "1 block", "12,345 blocks".
pub(super) fn counted(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{} {one}s", grouped(n)) }
}

/// "once", "3 times".
pub(super) fn times(n: u64) -> String {
    if n == 1 { "once".to_owned() } else { counted(n, "time") }
}

/// The calls of the driver by kind.
fn calls_of(setting: &Setting) -> String {
    let kinds = [
        (setting.segment_allocs, "cudaMalloc"),
        (setting.segment_frees, "cudaFree"),
        (setting.maps, "map"),
        (setting.unmaps, "unmap"),
    ];
    let told: Vec<String> =
        kinds.iter().filter(|(n, _)| *n > 0).map(|(n, kind)| format!("{} × {kind}", grouped(*n))).collect();
    if told.is_empty() { "never".to_owned() } else { told.join(" and ") }
}

/// A moment: "in step 12 (event 3456)".
pub(super) fn when(event: u64, step: Option<u64>) -> String {
    step.map_or_else(
        || format!("at event {}", grouped(event)),
        |step| format!("in step {} (event {})", grouped(step), grouped(event)),
    )
}

#[cfg(test)]
mod tests {
    use vramscope_detect::recommendation::{Doubt, Trial, recommend};
    use vramscope_model::EventIdx;
    use vramscope_replay::allocator::{self, Outcome, Spread};

    use super::*;
    use crate::whatif::OutOfMemory;

    const MIB: u64 = 1 << 20;

    /// A setting with its peaks of reserved and allocated MiB; and if memory runs out, what would be needed.
    struct Case(&'static str, u64, u64, Option<u64>);

    fn trial(case: &Case, limit: Option<u64>) -> Trial {
        let &Case(conf, reserved, allocated, needed) = case;
        let outcome = |reserved: u64| Outcome {
            peak_reserved: reserved * MIB,
            peak_allocated: allocated * MIB,
            segment_allocs: 10,
            oom: needed.map(|_| allocator::OutOfMemory {
                event: EventIdx(7),
                size: 64 * MIB,
                reserved: reserved * MIB,
                allocated: allocated * MIB,
                largest_free: 0,
                free: 0,
            }),
            ..Outcome::default()
        };
        let unlimited = needed.map(outcome);
        let outcome = outcome(reserved);
        let spread = Spread::of(&outcome);
        Trial { conf: conf.to_owned(), outcome, spread, unlimited, limit, anew: None, anew_within: None }
    }

    fn setting(trial: &Trial, is_own: bool) -> Setting {
        let of = &trial.outcome;
        Setting {
            conf: trial.conf.clone(),
            is_own,
            peak_reserved: of.peak_reserved,
            peak_reserved_low: of.peak_reserved,
            peak_reserved_high: of.peak_reserved,
            peak_event: 0,
            peak_step: None,
            allocated_at_peak: 0,
            final_reserved: of.peak_reserved,
            peak_allocated: of.peak_allocated,
            peak_fragmentation: 0.0,
            segments_peak: 1,
            segment_allocs: of.segment_allocs,
            segment_frees: 0,
            maps: 0,
            unmaps: 0,
            retries: 0,
            collections: 0,
            oom: of.oom.map(|oom| OutOfMemory {
                event: oom.event.0.into(),
                step: Some(3),
                site: None,
                label: String::new(),
                size: oom.size,
                reserved: oom.reserved,
                allocated: oom.allocated,
                largest_free: 0,
                free: 0,
            }),
            needed_without_limit: trial.unlimited.as_ref().map(|outcome| outcome.peak_reserved),
            rescued: vec![],
            warnings: vec![],
        }
    }

    fn limits(limit: Option<u64>) -> Limits {
        Limits {
            capacity: limit,
            reserved_limit: None,
            memory_fraction: None,
            below: None,
            fraction_binds_below: None,
            source: LimitSource::Told,
            words: String::new(),
        }
    }

    fn told(cases: &[Case], limit: Option<u64>, only_asked: Option<usize>) -> Told {
        let limit = limit.map(|mib| mib * MIB);
        let trials: Vec<Trial> = cases.iter().map(|case| trial(case, limit)).collect();
        let settings: Vec<Setting> = trials.iter().enumerate().map(|(i, t)| setting(t, i == 0)).collect();
        let judgement = recommend(&trials, Doubt::default()).unwrap();
        tell(&judgement, &settings, &limits(limit), &SelfCheck::default(), Ending::default(), only_asked)
    }

    fn check(cases: &[Case], limit: Option<u64>, only_asked: Option<usize>, headline: &str, reason: &str) {
        let told = told(cases, limit, only_asked);
        assert_eq!((told.headline.as_str(), told.reason.as_str()), (headline, reason));
    }

    #[test]
    fn a_lower_peak_is_told_with_both_figures() {
        check(
            &[Case("", 2550, 681, None), Case("e:1", 756, 679, None), Case("e:1,r:8", 750, 679, None)],
            None,
            None,
            "`e:1` would have peaked at 756.0 MiB instead of 2.5 GiB (70 % less)",
            "it saves 1.8 GiB, and of the 2 settings tried no simpler one comes near; `e:1,r:8` would save another 6.0 MiB",
        );
        check(
            &[Case("e:1", 2560, 681, None), Case("", 2430, 679, None)],
            None,
            None,
            "the default setting would have peaked at 2.4 GiB instead of 2.5 GiB (5 % less)",
            "it saves 130.0 MiB",
        );
    }

    #[test]
    fn who_asks_about_one_setting_is_told_about_that_one() {
        let own = || Case("", 2550, 681, None);
        check(
            &[own(), Case("m:64", 6000, 681, None)],
            None,
            Some(1),
            "`m:64` would have peaked at 5.9 GiB instead of 2.5 GiB (135 % more)",
            "it peaks no lower, though 73 % of that peak were never in use at once",
        );
        check(
            &[own(), Case("m:64", 2550, 681, None)],
            None,
            Some(1),
            "`m:64` would have peaked at 2.5 GiB as well",
            "it peaks no lower, though 73 % of that peak were never in use at once",
        );
        check(
            &[own(), Case("m:64", 2551, 681, None)],
            None,
            Some(1),
            "`m:64` would have peaked at 2,551.0 MiB instead of 2,550.0 MiB (under 1 % more)",
            "it peaks no lower, though 73 % of that peak were never in use at once",
        );
        check(
            &[own(), Case("m:64", 2600, 681, Some(2700))],
            Some(2600),
            Some(1),
            "with `m:64` memory would have run out in step 3 (event 7), at a request for 64.0 MiB: 2.6 GiB are needed",
            "it peaks no lower, though 73 % of that peak were never in use at once",
        );
    }

    #[test]
    fn little_gain_is_told_as_such() {
        check(
            &[Case("", 202, 120, None), Case("r:4", 142, 120, None), Case("e:1", 222, 120, None)],
            None,
            None,
            "no setting saves much: `r:4` lowers the peak of 202.0 MiB most, by 60.0 MiB (30 %)",
            "less than 64.0 MiB is not worth a setting",
        );
        check(
            &[Case("", 202, 120, None), Case("r:4", 242, 120, None), Case("e:1", 222, 120, None)],
            None,
            None,
            "no setting tried peaks lower than the recording's own, at 202.0 MiB",
            "none of the 2 peaks lower, though 41 % of that peak were never in use at once",
        );
    }

    #[test]
    fn why_no_setting_helps_is_told() {
        check(
            &[Case("", 1624, 1617, None), Case("e:1", 1626, 1617, None)],
            None,
            None,
            "no setting helps: over 99 % of the peak of 1.6 GiB is memory in use",
            "the program held up to 1.6 GiB and 1.6 GiB were reserved for it; settings change only how the rest is laid out. \
             To need less, hold less at once: `vramscope analyze` shows which lines hold it",
        );
        check(
            &[Case("", 2848, 2848, Some(2912)), Case("e:1", 2848, 2848, Some(2920))],
            Some(2848),
            None,
            "no setting helps: 2,848.0 MiB are in use and 64.0 MiB more are asked for, but only 2,848.0 MiB can be reserved",
            "64.0 MiB are missing, however blocks are laid out. To need less, hold less at once: `vramscope analyze` shows \
             which lines hold it",
        );
        check(
            &[Case("", 1000, 600, Some(1100)), Case("e:1", 990, 600, Some(1060))],
            Some(1000),
            None,
            "memory runs out under every setting tried: the least that any needs is 1,060.0 MiB, and 1,000.0 MiB can be reserved",
            "`e:1` needs least, and 60.0 MiB are missing even so",
        );
    }

    #[test]
    fn a_setting_under_which_memory_suffices_is_told() {
        let cases = [Case("", 1000, 600, Some(1100)), Case("e:1", 980, 600, None)];
        check(
            &cases,
            Some(1000),
            None,
            "with `e:1` memory would not have run out: it peaks at 980.0 MiB of 1,000.0 MiB",
            "it leaves 20.0 MiB of what can be reserved",
        );
        assert_eq!(
            told(&cases, Some(1000), None).trade_offs,
            ["with the setting the driver is called: 10 × cudaMalloc"]
        );
    }

    #[test]
    fn the_request_that_failed_is_not_the_end_of_all_trouble() {
        let reason = |allocated: u64, ending: Ending| {
            let trials: Vec<Trial> =
                [Case("", 1000, allocated, Some(1100)), Case("e:1", 980, allocated, None)]
                    .iter()
                    .map(|case| trial(case, Some(1000 * MIB)))
                    .collect();
            let settings: Vec<Setting> = trials.iter().enumerate().map(|(i, t)| setting(t, i == 0)).collect();
            let judgement = recommend(&trials, Doubt::default()).unwrap();
            let told =
                tell(&judgement, &settings, &limits(Some(1000 * MIB)), &SelfCheck::default(), ending, None);
            format!("{}. {}", told.headline, told.reason)
        };
        let last = Ending { is_last: true, ..Ending::default() };
        assert_eq!(
            reason(600, last),
            "with `e:1` the request that failed would have been served: it peaks at 980.0 MiB of 1,000.0 MiB. it leaves 20.0 MiB \
             of what can be reserved"
        );
        assert_eq!(
            reason(900, last),
            "with `e:1` the request that failed would have been served: it peaks at 980.0 MiB of 1,000.0 MiB. it leaves 20.0 MiB \
             of what can be reserved. What is in use and asked for comes to 96 % of the limit, so this puts it off rather than \
             solves it"
        );
        assert!(reason(600, Ending { goes_on: true, ..last }).contains("; the program went on without it"));
    }

    #[test]
    fn a_replay_without_the_failure_is_told_as_such() {
        let trials: Vec<Trial> =
            [Case("", 1000, 600, None), Case("e:1", 700, 600, None)].iter().map(|c| trial(c, None)).collect();
        let settings: Vec<Setting> = trials.iter().enumerate().map(|(i, t)| setting(t, i == 0)).collect();
        let doubt = |serves_what_failed, recorded| Doubt { serves_what_failed, recorded, ..Doubt::default() };
        let told = |doubt, ending| {
            let check = SelfCheck {
                recorded: 113,
                reproduced: 1,
                recorded_peak: 40 * MIB,
                replayed_peak: 40 * MIB,
                ..SelfCheck::default()
            };
            let judgement = recommend(&trials, doubt).unwrap();
            tell(&judgement, &settings, &limits(None), &check, ending, None)
        };
        let served = told(doubt(true, 0), Ending { served: true, ..Ending::default() });
        assert_eq!(served.kind, ReasonKind::Unreliable);
        assert_eq!(
            served.headline,
            "the request that failed is served in the replay, so what would have helped cannot be told"
        );
        assert_eq!(
            told(doubt(false, 113), Ending::default()).reason,
            "under the recording's own setting it peaks at 40.0 MiB as the recording does, but makes 1 of 113 recorded segment \
             events"
        );
    }
}
