//! Finds memory that was reserved although enough was free.

use rustc_hash::FxHashMap;
use vramscope_model::{Action, Bytes, StackId};
use vramscope_replay::{Balance, FailedFit, failed_fits};

use crate::finding::{Finding, Kind};
use crate::{Context, Detector};

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
    let warm = cx.window.from.0 + (cx.window.to.0 - cx.window.from.0) / 3;
    let all: Vec<FailedFit> = failed_fits(cx.device, cx.lifetimes, cx.recording.settings.as_ref())
        .into_iter()
        .filter(|f| f.event >= cx.window.from && f.event < cx.window.to)
        .collect();
    let obtained = |fits: &[FailedFit]| fits.iter().map(|f| f.obtained).sum::<Bytes>();
    let late: Vec<FailedFit> = all.iter().copied().filter(|f| f.event.0 >= warm).collect();
    if (obtained(&late).0 as f64) < SHARE * reserved {
        return Vec::new();
    }
    let Some(largest) = late.iter().max_by_key(|f| (f.free - f.request, f.event)) else {
        return Vec::new();
    };
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
    let expandable = cx.recording.settings.as_ref().is_some_and(|s| s.expandable_segments);
    let excess = peak.max_reserved.saturating_sub(peak.level.allocated);
    let releasable = cx.device.last_state().map_or(Bytes::ZERO, |state| Balance::of(state).releasable);
    let mut advice = Vec::new();
    if !expandable {
        advice.push("try `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: segments that grow in place leave fewer holes".to_owned());
    }
    advice.push(
        "pad inputs to a few sizes, or run the largest size first, so that later ones fit into what is free"
            .to_owned(),
    );
    let mut evidence = vec![
        format!(
            "at most {} were reserved, but never more than {} were allocated",
            peak.max_reserved, peak.level.allocated
        ),
        format!(
            "{} times reserved memory grew although enough was free in the same pool; {} of them after the first third of the \
             run",
            all.len(),
            late.len()
        ),
        format!(
            "for example {} were asked for with {} free, none of it in one piece that large",
            largest.request, largest.free
        ),
    ];
    if releasable.0 * 2 >= excess.0 {
        evidence.push(format!(
            "at the end {releasable} lie in segments that are wholly free but of the wrong sizes: `empty_cache()` returns them, and \
             the next requests obtain new ones"
        ));
    }
    vec![Finding {
        code: DETECTOR.code,
        kind: Kind::Fragmentation,
        confidence: (0.6 + 0.15 * (reserved / allocated - EXCESS)).clamp(0.6, 0.95),
        title: format!("{} were reserved although enough was free, in pieces too small", obtained(&all)),
        site: cx.symbols.site(stack),
        stack,
        bytes: excess,
        blocks: 0,
        block_size: None,
        bytes_per_step: None,
        blocks_per_step: None,
        steps_to_oom: None,
        first: all.first().and_then(|f| cx.device.events.time(f.event)),
        last: all.last().and_then(|f| cx.device.events.time(f.event)),
        evidence,
        advice,
        companions: Vec::new(),
        shortage: None,
    }]
}
