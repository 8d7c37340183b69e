//! Finds memory that was reserved although enough was free.

use rustc_hash::FxHashMap;
use vramscope_model::{Action, Bytes, EventIdx, StackId};
use vramscope_replay::{Balance, FailedFit, Peak, PinOverTime};

use crate::finding::{Finding, Kind};
use crate::fragmentation::Fragmentation;
use crate::names::{count, grouped, list, place};
use crate::settings_in_words::why_none;
use crate::shortfall::Shortfall;
use crate::tried::TriedSettings;
use crate::{Context, Detector, advice};

pub(crate) const DETECTOR: Detector = Detector {
    code: "failed-fits",
    summary: "memory was reserved although enough was free, in pieces too small",
    finds: &[Kind::Fragmentation, Kind::Note],
    doc: "\
## What it finds
Memory that the allocator obtained from the driver although it had enough free already: in pieces, none of them large enough.

## Why it matters
Reserved memory climbs while what the program holds does not, until the device is full of holes.

## How it decides
At each moment when reserved memory grew, the trace tells what was asked for and what was free in the same pool and stream. If enough was free, the
request failed to fit. It is fragmentation if one of these is so:

- Such growth makes up a quarter or more of what is reserved and went on after the first third of the run, when warm-up is over, and reserved memory is at
  least twice what the program ever held.
- A request failed that would have been served under another setting, as a replay shows, and with the request less than 95 % of what could be had was in use: else a
  setting only puts off the end.
- Reserved memory is at least twice what the program ever held, and a replay shows that a setting saves a third of it. (Failed fits may lie before the recording.)

If a setting saves less, but a fifth of what is reserved and 256 MiB, that is a note. The recording is replayed only where one of these may be so: a fifth of what is
reserved was never in use at once, and expandable segments save as much. Then the settings of `vramscope whatif` are tried, and what is advised is what it recommends.

Free memory is *releasable* in segments that are wholly free (and in whole pages of expandable ones), and *stranded* in all others. A place *pins* a
segment if its blocks, kept for longer than a whole step, are all that is kept in it and take at most a quarter of it. Pinned bytes are given as averages over
the run, so what is pinned for long counts more.

## What to do
Set what the replay shows to help; `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` usually does where sizes vary. So does padding to a few sizes, or allocating what
lives long first.
",
    check,
};

/// The share of reserved memory that must have come from failed fits.
const SHARE: f64 = 0.25;
/// How many times the peak of allocated bytes must be reserved.
const EXCESS: f64 = 2.0;
/// If a setting would have saved this share of so much excess, no failed fit need have been seen.
const CURED: f64 = 1.0 / 3.0;
/// A setting that would have saved this share of what is reserved is worth a note,
const SAVED: f64 = 0.2;
/// and at least so many bytes.
const SAVED_BYTES: Bytes = Bytes(256 << 20);

/// By what fragmentation is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// A request failed, and a setting would have served it.
    Failure(EventIdx),
    /// Reserved memory kept growing because of failed fits, to a multiple of what was held.
    Fits,
    /// A setting would have saved much.
    Cure(Kind),
}

fn check(cx: &Context<'_>) -> Vec<Finding> {
    let Some(peak) = cx.peak() else { return Vec::new() };
    if peak.level.allocated == Bytes::ZERO {
        return Vec::new();
    }
    let mut found = None;
    let sign = failure(cx)
        .map(Sign::Failure)
        .or_else(|| {
            let fits = late_fits(cx, peak)?;
            found = Some(fits);
            Some(Sign::Fits)
        })
        .or_else(|| cure(cx, peak).map(Sign::Cure));
    let Some(sign) = sign else { return Vec::new() };
    let found = found.unwrap_or_else(|| Fragmentation::of(cx));
    vec![finding(cx, peak, sign, found)]
}

/// The first request that failed, if a setting would have served it, and would not just have put off the end.
fn failure(cx: &Context<'_>) -> Option<EventIdx> {
    let actions = cx.device.events.actions();
    let window = actions.get(cx.window.from.index()..cx.window.to.index().min(actions.len()))?;
    let first = window.iter().position(|&a| a == Action::Oom)?;
    let first = EventIdx(cx.window.from.0.saturating_add(first as u32));
    let found = Shortfall::of(cx, first);
    if found.no_setting_helps || found.is_of_live_memory() {
        return None;
    }
    let tried = cx.tried_settings().filter(|tried| tried.serves_what_failed())?;
    tried.recommended()?.outcome.rescued.contains(&first).then_some(first)
}

/// Failed fits, if they made reserved memory grow by much and for long.
fn late_fits(cx: &Context<'_>, peak: Peak) -> Option<Fragmentation> {
    // Where nothing was obtained, nothing failed to fit.
    let grows = |a: &Action| matches!(a, Action::SegmentAlloc | Action::SegmentMap);
    if !is_excess(peak) || !cx.device.events.actions().iter().any(grows) {
        return None;
    }
    let found = Fragmentation::of(cx);
    let obtained = found.late_fits().map(|f| f.obtained).sum::<Bytes>();
    (found.late > 0 && obtained.0 as f64 >= SHARE * peak.max_reserved.0 as f64).then_some(found)
}

fn is_excess(peak: Peak) -> bool {
    peak.max_reserved.0 as f64 >= EXCESS * peak.level.allocated.0 as f64
}

/// What kind of finding it is that a setting would have saved much, if one would have.
fn cure(cx: &Context<'_>, peak: Peak) -> Option<Kind> {
    let unused = peak.max_reserved - peak.level.allocated;
    let is_much = |bytes: Bytes, of: u64| bytes >= SAVED_BYTES && bytes.0 as f64 >= SAVED * of as f64;
    // What was never in use at once is the most that can be saved.
    if !cx.is_whole() || !is_much(unused, peak.max_reserved.0) {
        return None;
    }
    // All settings are tried only if the one that helps most often helps.
    if !is_much(Bytes(cx.rerun()?.saved_by_expandable()), peak.max_reserved.0) {
        return None;
    }
    let tried = cx.tried_settings()?;
    let (saved, from) = (Bytes(tried.saved()), tried.own_peak());
    if !is_much(saved, from) {
        return None;
    }
    let is_cured = is_excess(peak) && saved.0 as f64 >= CURED * from as f64;
    Some(if is_cured { Kind::Fragmentation } else { Kind::Note })
}

fn finding(cx: &Context<'_>, peak: Peak, sign: Sign, found: Fragmentation) -> Finding {
    let (reserved, allocated) = (peak.max_reserved.0 as f64, peak.level.allocated.0 as f64);
    let late: Vec<FailedFit> = found.late_fits().copied().collect();
    let stack = match sign {
        Sign::Failure(event) => stack_of(cx, event),
        Sign::Fits => place_of_most(cx, &late),
        Sign::Cure(_) => StackId::ABSENT,
    };
    let tried = cx.tried_settings();
    let by_fits = (0.6 + 0.15 * (reserved / allocated - EXCESS)).clamp(0.6, 0.95);
    let is_cured = tried.is_some_and(|t| t.is_exact && t.recommended().is_some());
    let saved = Bytes(tried.map_or(0, |tried| tried.saved()));
    let fits = &found.stranding.fits;
    let time = |fit: Option<&FailedFit>| fit.and_then(|f| cx.device.events.time(f.event));
    Finding {
        code: DETECTOR.code,
        kind: if let Sign::Cure(kind) = sign { kind } else { Kind::Fragmentation },
        confidence: match sign {
            Sign::Fits if !is_cured => by_fits,
            _ if is_cured => 0.95,
            _ => 0.8,
        },
        title: match sign {
            Sign::Failure(_) => {
                "a request failed although there was enough for it, in pieces too small".to_owned()
            }
            Sign::Fits => {
                format!("{} were reserved although enough was free, in pieces too small", found.obtained)
            }
            Sign::Cure(_) => format!("{saved} less would have been reserved under another setting"),
        },
        site: cx.symbols.site(stack),
        stack,
        bytes: if let Sign::Cure(_) = sign { saved } else { peak.max_reserved - peak.level.allocated },
        blocks: 0,
        block_size: None,
        bytes_per_step: None,
        blocks_per_step: None,
        steps_to_oom: None,
        first: time(fits.first()),
        last: time(fits.last()),
        evidence: evidence(cx, peak, &found, tried.map(AsRef::as_ref)),
        advice: advice::against_fragmentation(cx, &found.stranding, tried.map(AsRef::as_ref)),
        companions: Vec::new(),
        members: Vec::new(),
        shortage: None,
        shortfall: None,
        fragmentation: Some(Box::new(found)),
        settings: tried.cloned(),
    }
}

fn stack_of(cx: &Context<'_>, event: EventIdx) -> StackId {
    cx.device.events.stacks().get(event.index()).copied().unwrap_or(StackId::ABSENT)
}

/// The place where most was obtained in vain.
fn place_of_most(cx: &Context<'_>, fits: &[FailedFit]) -> StackId {
    let mut by_stack: FxHashMap<StackId, Bytes> = FxHashMap::default();
    for fit in fits {
        *by_stack.entry(stack_of(cx, fit.event)).or_default() += fit.obtained;
    }
    let mut by_stack: Vec<(StackId, Bytes)> = by_stack.into_iter().collect();
    by_stack.sort_unstable();
    by_stack.iter().max_by_key(|(_, b)| *b).map_or(StackId::ABSENT, |(s, _)| *s)
}

/// How many places a sentence names.
const NAMED: usize = 3;

fn evidence(
    cx: &Context<'_>,
    peak: Peak,
    found: &Fragmentation,
    tried: Option<&TriedSettings>,
) -> Vec<String> {
    let stranding = &found.stranding;
    let mut evidence = vec![format!(
        "at most {} were reserved, but never more than {} were allocated",
        peak.max_reserved, peak.level.allocated
    )];
    if !stranding.fits.is_empty() {
        evidence.push(format!(
            "{} times reserved memory grew although enough was free in the same pool; {} of them after the first third of the \
             run",
            grouped(stranding.fits.len() as u64),
            grouped(found.late)
        ));
    }
    if let Some(fit) = found.example {
        let largest = fit.largest.map_or_else(
            || "none of it in one piece that large".to_owned(),
            |largest| format!("the largest piece of it {largest}"),
        );
        evidence
            .push(format!("for example {} were asked for with {} free, {largest}", fit.request, fit.free));
    }
    evidence.push(format!(
        "on average {} lay in segments that were wholly free but of the wrong sizes, and {} were stranded in segments partly in use",
        stranding.average(stranding.releasable),
        stranding.average(stranding.stranded)
    ));
    // What pins a twentieth of the most is not worth a word.
    let most = stranding.places.first().map_or(0.0, |pin| pin.alone + pin.shared);
    let named: Vec<String> = stranding
        .places
        .iter()
        .filter(|pin| (pin.alone + pin.shared) * 20.0 >= most)
        .take(NAMED)
        .map(|pin| pin_in_words(cx, found, pin))
        .collect();
    if !named.is_empty() {
        evidence.push(format!("segments that are mostly free are kept by {}", list(&named)));
    }
    let settings = cx.recording.settings.as_ref();
    let releasable =
        cx.device.last_state().map_or(Bytes::ZERO, |state| Balance::of(state, settings).releasable);
    if releasable.0 * 2 >= peak.max_reserved.saturating_sub(peak.level.allocated).0 {
        evidence.push(format!(
            "at the end {releasable} lie in segments that are wholly free but of the wrong sizes: `empty_cache()` returns them, and \
             the next requests obtain new ones"
        ));
    }
    evidence.extend(tried.and_then(why_none));
    evidence
}

/// "train.py:17 (67 blocks, 10 of them never freed, strand 2.2 MiB on average)".
fn pin_in_words(cx: &Context<'_>, found: &Fragmentation, pin: &PinOverTime) -> String {
    let bytes = found.stranding.average(pin.alone + pin.shared);
    let never = match pin.survivors {
        0 => "all freed later".to_owned(),
        n if n == pin.blocks => "never freed".to_owned(),
        n => format!("{n} of them never freed"),
    };
    format!(
        "{} ({}, {never}, strand {bytes} on average)",
        place(cx.symbols, pin.place),
        count(pin.blocks, "block")
    )
}
