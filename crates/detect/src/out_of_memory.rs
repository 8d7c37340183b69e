//! Reports requests that failed.

use vramscope_model::{Action, Bytes, EventIdx};
use vramscope_replay::levels_at;

use crate::finding::{Finding, Kind};
use crate::{Context, Detector};

pub(crate) const DETECTOR: Detector = Detector {
    code: "out-of-memory",
    summary: "a request for memory failed",
    doc: "\
## What it finds
Requests that the allocator could not serve, even after giving all free segments back to the driver.

## Why it matters
It is the error your run died of; where it happened is rarely where the memory went.

## How it decides
The trace says so. Whether something else explains it (a leak, fragmentation) is for the other detectors: this finding is the verdict only if none does,
and then too much is needed at once.

## What to do
See what holds memory at the peak; use a smaller batch, activation checkpointing, a sharded optimizer, or a lower precision.
",
    check,
};

fn check(cx: &Context<'_>) -> Vec<Finding> {
    let range = cx.window.from.index()..cx.window.to.index().min(cx.device.events.len());
    let ooms: Vec<usize> = range.filter(|&i| cx.device.events.actions()[i] == Action::Oom).collect();
    // A program that catches the error and tries again makes many; the last is the one that counts.
    let Some(&last) = ooms.last() else { return Vec::new() };
    let event = cx.device.events.get(last);
    let at = EventIdx(last as u32);
    let level = levels_at(cx.device, cx.lifetimes, &[at]).first().copied().unwrap_or_default();
    // What this process may have: what it has and, unless the driver refused in spite of having enough, what the driver has.
    let is_limited = event.addr > event.size.0;
    let most = if is_limited { level.reserved } else { level.reserved + Bytes(event.addr) };
    let shortage = (level.allocated + event.size) - most;
    let free_inside = level.reserved.saturating_sub(level.allocated);
    let mut evidence = vec![format!(
        "a request for {} failed with {} allocated and {} reserved; the driver said that {} were free on the device",
        event.size,
        level.allocated,
        level.reserved,
        Bytes(event.addr),
    )];
    if is_limited {
        evidence.push("the driver had more free than was asked for, so a limit was set for this process (a memory fraction)".to_owned());
    }
    if free_inside >= event.size {
        evidence.push(format!("{free_inside} were free inside the allocator, but not in one piece"));
    }
    if ooms.len() > 1 {
        evidence.push(format!("{} requests failed in all; this is the last one", ooms.len()));
    }
    vec![Finding {
        code: DETECTOR.code,
        kind: Kind::Oom,
        confidence: 0.99,
        title: "a request for memory failed".to_owned(),
        site: cx.symbols.site(event.stack),
        stack: event.stack,
        bytes: event.size,
        blocks: 1,
        block_size: Some(event.size),
        bytes_per_step: None,
        blocks_per_step: None,
        steps_to_oom: None,
        first: event.time.known(),
        last: event.time.known(),
        evidence,
        advice: vec![
            "see what was held at the peak; this line is where memory ran out, not where it went".to_owned(),
        ],
        companions: Vec::new(),
        shortage: Some(shortage),
    }]
}
