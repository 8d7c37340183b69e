//! What other settings would have done, in sentences.

use vramscope_model::Bytes;
use vramscope_replay::allocator::Spread;

use crate::names::{apart, count, grouped};
use crate::recommendation::{Cost, Reason, Trial};
use crate::room::RoomSource;
use crate::tried::TriedSettings;

/// What to set, what comes of it, and what it costs; none where no setting is recommended.
pub(crate) fn what_to_set(tried: &TriedSettings) -> Option<String> {
    let choice = tried.recommended()?;
    let what = if choice.conf.is_empty() {
        "unset `PYTORCH_CUDA_ALLOC_CONF`".to_owned()
    } else {
        format!("set `PYTORCH_CUDA_ALLOC_CONF={}`", choice.conf)
    };
    let peak = Bytes(choice.outcome.peak_reserved);
    let shifts = shifts(choice);
    let result = match (tried.judgement.reason, tried.room.source) {
        (Reason::Lower { from, .. }, _) => {
            let (peak, from) = apart(peak, Bytes(from));
            format!("the run would have peaked at {peak} reserved{shifts} instead of {from}")
        }
        (_, RoomSource::Recorded(_)) => {
            let what =
                if tried.rescued() > 1 { "the first request that failed" } else { "the request that failed" };
            let room = match choice.limit.map(|limit| apart(peak, Bytes(limit))) {
                Some((peak, limit)) if Some(choice.outcome.peak_reserved) <= choice.limit => {
                    format!("{peak} of {limit} reserved at most{shifts}")
                }
                _ => format!("{peak} reserved at most{shifts}"),
            };
            format!(
                "{what} would have been served, with {room}; what the run would have asked for after it is not known"
            )
        }
        _ => format!("the run would have enough, with {peak} reserved at most{shifts}"),
    };
    let costs: Vec<String> = tried.judgement.costs.iter().map(|cost| cost_in_words(*cost)).collect();
    let costs = if costs.is_empty() { String::new() } else { format!("; {}", costs.join("; ")) };
    Some(format!("{what}: {result}{costs}{}", doubt(tried)))
}

/// Why no setting is recommended, where none is.
pub(crate) fn why_none(tried: &TriedSettings) -> Option<String> {
    let n = count(tried.count(), "setting");
    let why = match tried.judgement.reason {
        Reason::Lower { .. } | Reason::Fits { .. } => return None,
        Reason::LiveMemory { allocated, reserved } => {
            let (reserved, allocated) = apart(Bytes(reserved), Bytes(allocated));
            format!(
                "no allocator setting helps: at the peak {reserved} were reserved and {allocated} of them in use"
            )
        }
        Reason::TooMuchAtOnce { .. } | Reason::NoneFits { .. } if tried.perhaps.is_some() => {
            perhaps(tried, &n)?
        }
        Reason::TooMuchAtOnce { failed, limit } => {
            let (held, limit) = apart(Bytes(failed.allocated), Bytes(limit));
            format!(
                "none of the {n} that were tried helps: at event {} a request for {} needs room beside {held} in use, and {limit} could be \
                 reserved",
                grouped(failed.event.0.into()),
                Bytes(failed.size)
            )
        }
        Reason::NoneFits { limit, .. } => {
            // Recommended is only what helps wherever the driver puts memory.
            match tried.trials.iter().skip(1).find(|trial| trial.outcome.oom.is_none()) {
                Some(lucky) => format!(
                    "none of the {n} that were tried surely helps, as {} could be reserved; {} may, depending on where the driver puts \
                     memory",
                    Bytes(limit),
                    name(&lucky.conf)
                ),
                None => format!(
                    "none of the {n} that were tried helps: memory runs out under each, as {} could be reserved",
                    Bytes(limit)
                ),
            }
        }
        Reason::NoGain { from, best: None } => {
            format!(
                "no allocator setting helps: none of the {n} that were tried peaks lower than {}",
                Bytes(from)
            )
        }
        Reason::NoGain { from, best: Some(best) } => {
            let best = tried.trials.get(best)?;
            let (peak, from) = apart(Bytes(best.outcome.peak_reserved), Bytes(from));
            format!(
                "no allocator setting helps much: of the {n} that were tried {} peaks lowest, at {peak} instead of {from}",
                name(&best.conf)
            )
        }
        Reason::Unreliable => {
            return Some(format!(
                "what settings would do cannot be told: a replay under the recording's own settings peaks at {} where the recording \
                 peaks at {}, and makes {} of {}",
                Bytes(tried.trials.first().map_or(0, |own| own.outcome.peak_reserved)),
                Bytes(tried.recorded_peak),
                grouped(tried.doubt.reproduced),
                count(tried.doubt.recorded, "recorded segment event")
            ));
        }
    };
    Some(format!("{why}{}", doubt(tried)))
}

/// What would help if there was as much memory as the recording does not exclude.
fn perhaps(tried: &TriedSettings, n: &str) -> Option<String> {
    let trial = tried.perhaps.as_ref()?;
    let RoomSource::Recorded(refusal) = tried.room.source else { return None };
    let (least, most) = apart(Bytes(refusal.at_least), Bytes(refusal.least_refused()));
    Some(format!(
        "none of the {n} that were tried surely helps; {} may: it reserves {}, and the limit lies between {least} and {most}",
        name(&trial.conf),
        Bytes(trial.outcome.peak_reserved)
    ))
}

/// A setting in a sentence.
pub(crate) fn name(conf: &str) -> String {
    if conf.is_empty() { "the default setting".to_owned() } else { format!("`{conf}`") }
}

/// How far the peak of a trial may shift.
fn shifts(trial: &Trial) -> String {
    let Spread { low, high, .. } = trial.spread;
    let (least, most) = (Bytes(low).to_string(), Bytes(high).to_string());
    if least == most {
        return String::new();
    }
    format!(" ({least} to {most}, by what the recording does not tell)")
}

fn cost_in_words(cost: Cost) -> String {
    match cost {
        Cost::DriverCalls(calls, None) => format!("the driver is called {}", times(calls)),
        Cost::DriverCalls(calls, Some(before)) => {
            format!("the driver is called {} instead of {}", times(calls), grouped(before))
        }
        Cost::Rounding(more) => format!("{} more are lost to rounding at the peak", Bytes(more)),
        Cost::Flushes(flushes, before) => format!(
            "all unused memory goes back {} instead of {} to serve a request, for which the device is waited for",
            times(flushes),
            grouped(before)
        ),
        Cost::Collections(n) => format!("unused segments go back {}, to be obtained again", times(n)),
    }
}

/// "once", "3 times".
pub(crate) fn times(n: u64) -> String {
    if n == 1 { "once".to_owned() } else { count(n, "time") }
}

/// How far a replay that is not exact is from the recording.
fn doubt(tried: &TriedSettings) -> String {
    if tried.is_exact {
        return String::new();
    }
    if tried.doubt.bytes == 0 {
        " (the replay parts from the recording, though both peak alike, so figures may be a few segments off)"
            .to_owned()
    } else {
        format!(
            " (the replay parts from the recording, whose peak it misses by {}: figures may be as far off)",
            Bytes(tried.doubt.bytes)
        )
    }
}

#[cfg(test)]
mod tests {
    use vramscope_model::EventIdx;
    use vramscope_replay::allocator::{OutOfMemory, Outcome};

    use super::*;
    use crate::recommendation::{Doubt, recommend};
    use crate::room::{Refusal, Room};

    const MIB: u64 = 1 << 20;

    /// A setting with its peaks of reserved and allocated MiB.
    fn trial(conf: &str, reserved: u64, allocated: u64) -> Trial {
        let outcome = Outcome {
            peak_reserved: reserved * MIB,
            peak_allocated: allocated * MIB,
            segment_allocs: 46,
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

    /// The same where memory ran out at a request for 100 MiB, with 1,000 MiB to be had.
    fn in_vain(conf: &str, allocated: u64) -> Trial {
        let mut trial = trial(conf, 1000, allocated);
        trial.outcome.oom = Some(OutOfMemory {
            event: EventIdx(1234),
            size: 100 * MIB,
            reserved: 1000 * MIB,
            allocated: allocated * MIB,
            largest_free: 0,
            free: 0,
        });
        trial.limit = Some(1000 * MIB);
        trial
    }

    fn tried(trials: Vec<Trial>, off_by: u64) -> TriedSettings {
        let doubt = Doubt { bytes: off_by * MIB, recorded: 1000, reproduced: 1000, ..Doubt::default() };
        let judgement = recommend(&trials, doubt).unwrap();
        let source = if trials.iter().any(|trial| trial.limit.is_some()) {
            let (at_least, below) = (1000 * MIB, 1100 * MIB);
            RoomSource::Recorded(Refusal { event: None, by_fraction: true, at_least, most: below - 1, below })
        } else {
            RoomSource::Unknown
        };
        let room = Room { source, fraction: None };
        let (is_exact, recorded_peak) = (off_by == 0, 2550 * MIB);
        TriedSettings { trials, judgement, room, perhaps: None, is_exact, doubt, recorded_peak }
    }

    fn check(tried: &TriedSettings, want: &str) {
        assert_eq!(tried.in_words(), want);
    }

    #[test]
    fn what_to_set_is_told_with_both_peaks_and_the_cost() {
        let own = || trial("", 2550, 681);
        check(
            &tried(vec![own(), trial("e:1", 756, 679)], 0),
            "set `PYTORCH_CUDA_ALLOC_CONF=e:1`: the run would have peaked at 756.0 MiB reserved instead of 2.5 GiB; the driver is \
             called 46 times instead of 46",
        );
        check(
            &tried(vec![trial("e:1", 2550, 681), trial("", 2400, 695)], 0),
            "unset `PYTORCH_CUDA_ALLOC_CONF`: the run would have peaked at 2.3 GiB reserved instead of 2.5 GiB; the driver is called \
             46 times instead of 46; 14.0 MiB more are lost to rounding at the peak",
        );
        let shifting = Trial {
            spread: Spread { low: 700 * MIB, high: 800 * MIB, may_run_out: false },
            ..trial("e:1", 756, 679)
        };
        check(
            &tried(vec![own(), shifting], 20),
            "set `PYTORCH_CUDA_ALLOC_CONF=e:1`: the run would have peaked at 756.0 MiB reserved (700.0 MiB to 800.0 MiB, by what the \
             recording does not tell) instead of 2.5 GiB; the driver is called 46 times instead of 46 (the replay parts from the \
             recording, whose peak it misses by 20.0 MiB: figures may be as far off)",
        );
    }

    #[test]
    fn what_serves_a_request_that_failed_is_told_with_the_room_it_leaves() {
        let mut serves = Trial { limit: Some(1000 * MIB), ..trial("e:1", 980, 700) };
        check(
            &tried(vec![in_vain("", 700), serves.clone()], 0),
            "set `PYTORCH_CUDA_ALLOC_CONF=e:1`: the request that failed would have been served, with 980.0 MiB of 1000.0 MiB reserved \
             at most; what the run would have asked for after it is not known; the driver is called 46 times",
        );
        serves.outcome.rescued = vec![EventIdx(1234), EventIdx(1300)];
        check(
            &tried(vec![in_vain("", 700), serves.clone()], 0),
            "set `PYTORCH_CUDA_ALLOC_CONF=e:1`: the first request that failed would have been served, with 980.0 MiB of 1000.0 MiB \
             reserved at most; what the run would have asked for after it is not known; the driver is called 46 times",
        );
        serves.spread.may_run_out = true;
        check(
            &tried(vec![in_vain("", 700), serves], 0),
            "none of the 1 setting that were tried surely helps, as 1000.0 MiB could be reserved; `e:1` may, depending on where the \
             driver puts memory",
        );
    }

    #[test]
    fn why_nothing_helps_is_told() {
        check(
            &tried(vec![trial("", 2550, 681), trial("e:1", 2600, 681)], 0),
            "no allocator setting helps: none of the 1 setting that were tried peaks lower than 2.5 GiB",
        );
        check(
            &tried(vec![trial("", 2550, 681), trial("e:1", 2530, 681)], 0),
            "no allocator setting helps much: of the 1 setting that were tried `e:1` peaks lowest, at 2,530 MiB instead of 2,550 MiB",
        );
        check(
            &tried(vec![trial("", 1624, 1617), trial("e:1", 1626, 1617)], 0),
            "no allocator setting helps: at the peak 1,624 MiB were reserved and 1,617 MiB of them in use",
        );
        check(
            &tried(vec![in_vain("", 950), in_vain("e:1", 950)], 0),
            "none of the 1 setting that were tried helps: at event 1,234 a request for 100.0 MiB needs room beside 950.0 MiB in use, and \
             1000.0 MiB could be reserved",
        );
        check(
            &tried(vec![in_vain("", 600), in_vain("e:1", 600)], 0),
            "none of the 1 setting that were tried helps: memory runs out under each, as 1000.0 MiB could be reserved",
        );
        let mut perhaps = tried(vec![in_vain("", 950), in_vain("e:1", 950)], 0);
        perhaps.perhaps = Some(trial("e:1", 1060, 950));
        check(
            &perhaps,
            "none of the 1 setting that were tried surely helps; `e:1` may: it reserves 1.0 GiB, and the limit lies between 1000.0 MiB \
             and 1.1 GiB",
        );
        check(
            &tried(vec![trial("", 1000, 500), trial("e:1", 600, 500)], 300),
            "what settings would do cannot be told: a replay under the recording's own settings peaks at 1000.0 MiB where the recording \
             peaks at 2.5 GiB, and makes 1,000 of 1,000 recorded segment events",
        );
    }
}
