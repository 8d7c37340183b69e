//! The answer in sentences.

use vramscope_detect::recommendation::{Cost, Judgement, Reason, WORTH_BYTES};
use vramscope_detect::{Refusal, Room, RoomSource};
use vramscope_model::EventIdx;

use super::{LimitSource, Limits, ReasonKind, SelfCheck, Setting};
use crate::quantity::{bytes, count, grouped, mebibytes, percent};

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
    only_asked: Option<usize>,
) -> Told {
    let (kind, mut headline, reason) = conclusion(judgement, settings, limits, check);
    // Who asks about one setting wants to know about that one.
    if let (Some(1), [own, asked]) = (only_asked, settings)
        && matches!(kind, ReasonKind::LiveMemory | ReasonKind::NoGain)
    {
        headline = comparison(own, asked);
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
) -> (ReasonKind, String, String) {
    let named = |i: usize| settings.get(i).map(name).unwrap_or_default();
    let chosen = judgement.choice.map(named).unwrap_or_default();
    match judgement.reason {
        Reason::Lower { from, to } => {
            let saved = from.saturating_sub(to);
            let headline = format!(
                "{chosen} would have peaked at {} instead of {} ({} less)",
                bytes(to),
                bytes(from),
                percent(saved, from)
            );
            (ReasonKind::Lower, headline, why_this_one(settings, judgement, saved))
        }
        Reason::Fits { peak, limit } => {
            let headline = format!(
                "with {chosen} memory would not have run out: it peaks at {} of {}",
                mebibytes(peak),
                mebibytes(limit)
            );
            let left = mebibytes(limit.saturating_sub(peak));
            let reason = match limits.source {
                LimitSource::Recorded => {
                    format!(
                        "it leaves {left}, counted from the least that the recording shows to be possible"
                    )
                }
                _ => format!("it leaves {left} of what can be reserved"),
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
        Reason::NoneFits { least, needed, limit } => {
            let headline = format!(
                "memory runs out under every setting tried: the least that any needs is {}, and {} can be reserved",
                mebibytes(needed),
                mebibytes(limit)
            );
            let missing = mebibytes(needed.saturating_sub(limit));
            (
                ReasonKind::NoneFits,
                headline,
                format!("{} needs least, and {missing} are missing even so", named(least)),
            )
        }
        Reason::NoGain { best } => no_gain(settings, best),
        Reason::Unreliable => {
            let reason = format!(
                "under the recording's own setting it peaks at {} where the recording peaks at {}, and makes {} of {}",
                bytes(check.replayed_peak),
                bytes(check.recorded_peak),
                grouped(check.reproduced),
                count(check.recorded, "recorded segment event")
            );
            (
                ReasonKind::Unreliable,
                "the replay is too far from this recording to compare settings".to_owned(),
                reason,
            )
        }
    }
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
            count(own.retries, "time")
        ),
        _ => why,
    }
}

fn no_gain(settings: &[Setting], best: Option<usize>) -> (ReasonKind, String, String) {
    let tried = settings.len().saturating_sub(1) as u64;
    let own = settings.first();
    let from = own.map_or(0, |own| own.peak_reserved);
    let whole = bytes(from);
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
            let unused = own.map_or(0, |own| own.peak_reserved.saturating_sub(own.peak_allocated));
            let who =
                if tried == 1 { "it peaks no".to_owned() } else { format!("none of the {tried} peaks") };
            let reason = format!(
                "{who} lower, though {} of that peak were never in use at once",
                percent(unused, from)
            );
            (headline, reason)
        }
    };
    (ReasonKind::NoGain, headline, reason)
}

/// One setting beside the recording's own.
fn comparison(own: &Setting, asked: &Setting) -> String {
    let name = name(asked);
    if let Some(oom) = &asked.oom {
        return format!(
            "with {name} memory would have run out {}, at a request for {}: {} are needed",
            when(oom.event, oom.step),
            bytes(oom.size),
            bytes(asked.needed())
        );
    }
    let (to, from) = (asked.peak_reserved, own.peak_reserved);
    let change = match to.cmp(&from) {
        std::cmp::Ordering::Equal => return format!("{name} would have peaked at {} as well", bytes(to)),
        std::cmp::Ordering::Less => format!("{} less", percent(from - to, from)),
        std::cmp::Ordering::Greater => format!("{} more", percent_more(to - from, from)),
    };
    format!("{name} would have peaked at {} instead of {} ({change})", bytes(to), bytes(from))
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
        Cost::DriverCalls(calls, before) => {
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
        Cost::Flushes(times, before) => format!(
            "{} all unused memory is given back to serve a request, instead of {}; each time the device is waited for",
            count(times, "time"),
            grouped(before)
        ),
        Cost::Collections(times) => {
            format!(
                "{} unused segments are given back, and must be obtained again when needed",
                count(times, "time")
            )
        }
    }
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

/// How far the replay can be believed.
pub(super) fn self_check(check: &SelfCheck) -> String {
    let events = |n: u64| count(n, "segment event");
    if check.exact {
        let growth = if check.recorded == 0 {
            "no segment event was recorded".to_owned()
        } else {
            format!("{} of {}", grouped(check.reproduced), events(check.recorded))
        };
        return format!(
            "the replay reproduces the recording exactly: {growth}, all {} at the recorded address",
            count(check.allocations, "block")
        );
    }
    let mut told = vec![format!("{} of {}", grouped(check.reproduced), events(check.recorded))];
    if check.surplus > 0 {
        told.push(format!("{} of its own", grouped(check.surplus)));
    }
    let blocks = count(check.allocations, "block");
    told.push(format!("{} of {blocks} at the recorded address", grouped(check.in_place)));
    if check.same_blocks < check.blocks {
        let blocks = count(check.blocks, "block");
        told.push(format!("{} of the {blocks} at the end", grouped(check.same_blocks)));
    }
    let parts = check.first_divergence.as_ref().map_or_else(String::new, |at| {
        let when = when(at.event, at.step);
        format!("; they part {when}: recorded is {}, replayed {}", at.recorded, at.replayed)
    });
    format!("the replay does not reproduce the recording exactly: {}{parts}", told.join(", "))
}

/// What memory is limited to, and how that is known. `fractions` are those that limit nothing for want of a capacity, each
/// with the bytes of the smallest device for which that is right.
pub(super) fn limits(
    limits: &Limits,
    room: &Room,
    fractions: &[(f64, u64)],
    step_of: impl Fn(EventIdx) -> Option<u64>,
) -> String {
    let mut told = vec![source(limits, room, step_of)];
    told.extend(fractions.iter().map(|&(fraction, least)| {
        format!(
            "The figures hold for devices of {} or more, where the memory fraction of {fraction} is no limit; for smaller ones give \
             `--capacity`",
            at_least(least)
        )
    }));
    told.join(". ")
}

/// Bytes rounded up to what is shown, for a bound that must hold.
fn at_least(least: u64) -> String {
    const GIB: u64 = 1 << 30;
    let tenths = (u128::from(least) * 10).div_ceil(u128::from(GIB));
    format!("{}.{} GiB", grouped((tenths / 10) as u64), tenths % 10)
}

fn source(limits: &Limits, room: &Room, step_of: impl Fn(EventIdx) -> Option<u64>) -> String {
    match room.source {
        RoomSource::Unknown => {
            "no limit is known: no request failed in the recording, and no `--capacity` was given".to_owned()
        }
        RoomSource::Told(capacity) => match limits.reserved_limit {
            Some(limit) => {
                format!(
                    "the device has {} for this process, which may reserve {}",
                    bytes(capacity),
                    bytes(limit)
                )
            }
            None => format!("the device has {} for this process", bytes(capacity)),
        },
        RoomSource::Recorded(Refusal { event, by_fraction, at_least, below }) => {
            let who = match event.map(|event| when(event.0.into(), step_of(event))) {
                Some(when) if by_fraction => {
                    format!(
                        "a memory fraction was set: {when} a request failed though the device had memory left"
                    )
                }
                Some(when) => format!("{when} the driver refused a request"),
                None => "all unused memory was given back before more was obtained".to_owned(),
            };
            format!(
                "{who}. {} could be reserved, {} could not; the lower figure is taken",
                mebibytes(at_least),
                mebibytes(below)
            )
        }
    }
}
