//! Finds memory that was reserved although enough was free.

use rustc_hash::FxHashMap;
use vramscope_model::{Action, Bytes, StackId};
use vramscope_replay::{Balance, FailedFit, Peak, PinOverTime};

use crate::finding::{Finding, Kind};
use crate::fragmentation::Fragmentation;
use crate::names::{count, list, place};
use crate::{Context, Detector, advice};

pub(crate) const DETECTOR: Detector = Detector {
    code: "failed-fits",
    summary: "memory was reserved although enough was free, in pieces too small",
    doc: "\
## What it finds
Memory that the allocator obtained from the driver although it had enough free already: in pieces, none of them large enough.

## Why it matters
Reserved memory climbs while what the program holds does not, until the device is full of holes.

## How it decides
At each moment when reserved memory grew, the trace tells what was asked for and what was free in the same pool and stream. If enough was free, the
request failed to fit. It is a finding if such growth makes up a quarter or more of what is reserved and went on after the first third of the run, when
warm-up is over, and if reserved memory is at least twice what the program ever held.

Free memory is *releasable* in segments that are wholly free (and in whole pages of expandable ones), and *stranded* in all others. A place *pins* a
segment if its blocks, kept for longer than a whole step, are all that is kept in it and take at most a quarter of it. Pinned bytes are given as averages over
the run, so what is pinned for long counts more.

## What to do
`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` usually helps with sizes that vary; so does padding to a few sizes, or allocating what
lives long first.
",
    check,
};

/// The share of reserved memory that must have come from failed fits.
const SHARE: f64 = 0.25;
/// How many times the peak of allocated bytes must be reserved.
const EXCESS: f64 = 2.0;

fn check(cx: &Context<'_>) -> Vec<Finding> {
    // Where nothing was obtained, nothing failed to fit.
    let grows = |a: &Action| matches!(a, Action::SegmentAlloc | Action::SegmentMap);
    if !cx.device.events.actions().iter().any(grows) {
        return Vec::new();
    }
    let Some(peak) = cx.peak() else { return Vec::new() };
    let (reserved, allocated) = (peak.max_reserved.0 as f64, peak.level.allocated.0 as f64);
    if allocated <= 0.0 || reserved < EXCESS * allocated {
        return Vec::new();
    }
    let found = Fragmentation::of(cx);
    let late: Vec<FailedFit> = found.late_fits().copied().collect();
    let obtained = late.iter().map(|f| f.obtained).sum::<Bytes>();
    if late.is_empty() || (obtained.0 as f64) < SHARE * reserved {
        return Vec::new();
    }
    let stack_of =
        |f: &FailedFit| cx.device.events.stacks().get(f.event.index()).copied().unwrap_or(StackId::ABSENT);
    // The place where most was obtained in vain.
    let mut by_stack: FxHashMap<StackId, Bytes> = FxHashMap::default();
    for fit in &late {
        *by_stack.entry(stack_of(fit)).or_default() += fit.obtained;
    }
    let mut by_stack: Vec<(StackId, Bytes)> = by_stack.into_iter().collect();
    by_stack.sort_unstable();
    let stack = by_stack.iter().max_by_key(|(_, b)| *b).map_or(StackId::ABSENT, |(s, _)| *s);
    let fits = &found.stranding.fits;
    vec![Finding {
        code: DETECTOR.code,
        kind: Kind::Fragmentation,
        confidence: (0.6 + 0.15 * (reserved / allocated - EXCESS)).clamp(0.6, 0.95),
        title: format!("{} were reserved although enough was free, in pieces too small", found.obtained),
        site: cx.symbols.site(stack),
        stack,
        bytes: peak.max_reserved.saturating_sub(peak.level.allocated),
        blocks: 0,
        block_size: None,
        bytes_per_step: None,
        blocks_per_step: None,
        steps_to_oom: None,
        first: fits.first().and_then(|f| cx.device.events.time(f.event)),
        last: fits.last().and_then(|f| cx.device.events.time(f.event)),
        evidence: evidence(cx, peak, &found),
        advice: advice::against_fragmentation(cx, &found),
        companions: Vec::new(),
        shortage: None,
        shortfall: None,
        fragmentation: Some(Box::new(found)),
    }]
}

/// How many places a sentence names.
const NAMED: usize = 3;

fn evidence(cx: &Context<'_>, peak: Peak, found: &Fragmentation) -> Vec<String> {
    let stranding = &found.stranding;
    let mut evidence = vec![
        format!(
            "at most {} were reserved, but never more than {} were allocated",
            peak.max_reserved, peak.level.allocated
        ),
        format!(
            "{} times reserved memory grew although enough was free in the same pool; {} of them after the first third of the \
             run",
            stranding.fits.len(),
            found.late
        ),
    ];
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
