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
        Reason::LiveMemory { allocated, reserved } => format!(
            "no allocator setting helps: of the peak of {} reserved, {} were in use",
            Bytes(reserved),
            Bytes(allocated)
        ),
        Reason::TooMuchAtOnce { .. } | Reason::NoneFits { .. } if tried.perhaps.is_some() => {
            perhaps(tried, &n)?
        }
        Reason::TooMuchAtOnce { failed, limit } => {
            let (held, limit) = apart(Bytes(failed.allocated), Bytes(limit));
            format!(
                "none of {n} that were tried helps: at event {} a request for {} needs room beside {held} in use, and {limit} could be \
                 reserved",
                grouped(failed.event.0.into()),
                Bytes(failed.size)
            )
        }
        Reason::NoneFits { limit, .. } => {
            format!(
                "none of {n} that were tried helps: memory runs out under each, as {} could be reserved",
                Bytes(limit)
            )
        }
        Reason::NoGain { from, best: None } => {
            format!(
                "no allocator setting helps: none of {n} that were tried peaks lower than {}",
                Bytes(from)
            )
        }
        Reason::NoGain { from, best: Some(best) } => {
            let best = tried.trials.get(best)?;
            let (peak, from) = apart(Bytes(best.outcome.peak_reserved), Bytes(from));
            format!(
                "no allocator setting helps much: of {n} that were tried {} peaks lowest, at {peak} instead of {from}",
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
        "none of {n} that were tried surely helps; {} may: it reserves {}, and the limit lies between {least} and {most}",
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
