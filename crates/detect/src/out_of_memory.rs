//! Reports requests that failed.

use vramscope_model::{Action, Bytes, EventIdx};

use crate::finding::{Finding, Kind};
use crate::names::{apart, grouped};
use crate::shortfall::{EmptyCache, Shortfall, sentences};
use crate::tried::TriedSettings;
use crate::{Context, Detector, advice, settings_in_words};

pub(crate) const DETECTOR: Detector = Detector {
    code: "out-of-memory",
    summary: "a request for memory failed",
    finds: &[Kind::Oom],
    doc: "\
## What it finds
Requests that the allocator could not serve, even after giving all free segments back to the driver.

## Why it matters
It is the error your run died of; where it happened is rarely where the memory went.

## How it decides
The trace says so. Whether something else explains it (a leak, fragmentation) is for the other detectors: this finding is the verdict only if none does,
and then too much is needed at once.

The layout of segments and blocks at that moment explains it: the largest free block for such requests, what was free in all and what of it
could go back to the driver, the places that held most, and the places whose blocks kept segments that were mostly free. If the driver had enough, a
limit was set for the process (a memory fraction); it lies between what was reserved at some moment and what was refused.

No setting helps if what is held and the request come to more than the limit, even if packed without gaps. Else the recording is replayed under a set of
settings within the memory that the process certainly could have, as `vramscope whatif` does, which shows whether one of them would have served the request. If so, the run
died of fragmentation, unless with the request 95 % of what could be had was in use. It also says how many bytes less would have been enough. `empty_cache()` before the request rarely helps: the allocator gives back all free segments
before it fails.

## What to do
What changes least comes first: a setting, `empty_cache()` before the request, that many bytes less at the place that holds most. Else see what holds memory then; use a smaller batch, activation checkpointing, a sharded optimizer, or a lower precision.
",
    check,
};

fn check(cx: &Context<'_>) -> Vec<Finding> {
    let range = cx.window.from.index()..cx.window.to.index().min(cx.device.events.len());
    let ooms: Vec<usize> = range.filter(|&i| cx.device.events.actions()[i] == Action::Oom).collect();
    // A program that catches the error and tries again makes many; the last is the one that counts.
    let Some(&last) = ooms.last() else { return Vec::new() };
    let event = cx.device.events.get(last);
    let found = Shortfall::of(cx, EventIdx(last as u32));
    // What this process may have: what it has and, unless the driver refused in spite of having enough, what the driver has.
    let most = if found.limit.by_fraction { found.reserved } else { Bytes(found.limit.at_least) };
    // Less than what would have been enough explains nothing.
    let enough = found.least.map_or(Bytes::ZERO, |least| least.bytes);
    let shortage = ((found.allocated + event.size) - most).max(enough);
    // What is known to be too much needs no trial.
    let tried = if found.no_setting_helps { None } else { cx.tried_settings().filter(|t| t.runs_out()) };
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
        evidence: evidence(cx, &found, tried.map(AsRef::as_ref), ooms.len()),
        advice: advice::against_shortfall(cx, &found, tried.map(AsRef::as_ref)),
        companions: Vec::new(),
        members: Vec::new(),
        shortage: Some(shortage),
        shortfall: Some(Box::new(found)),
        fragmentation: None,
        settings: tried.cloned(),
    }]
}

fn evidence(
    cx: &Context<'_>,
    found: &Shortfall,
    tried: Option<&TriedSettings>,
    n_ooms: usize,
) -> Vec<String> {
    let mut evidence = vec![format!(
        "a request for {} failed with {} allocated and {} reserved; the driver said that {} were free on the device",
        found.request, found.allocated, found.reserved, found.device_free,
    )];
    if found.limit.by_fraction {
        let text = "the driver had more free than was asked for, so a limit was set for this process (a memory fraction)";
        let (at_least, below) = (Bytes(found.limit.at_least), Bytes(found.limit.below));
        let (low, high) = apart(at_least, below);
        evidence.push(if at_least == Bytes::ZERO {
            format!("{text}: less than {below}")
        } else {
            format!("{text}: at least {low}, which were reserved, and less than {high}")
        });
    }
    if n_ooms > 1 {
        evidence.push(format!("{} requests failed in all; this is the last one", grouped(n_ooms as u64)));
    }
    evidence.push(sentences::what_was_free(cx.symbols, found));
    evidence.extend(sentences::who_held(cx.symbols, &found.holders));
    evidence.extend(sentences::who_pins(cx.symbols, found));
    evidence.push(match found.empty_cache {
        EmptyCache::NothingLeft if found.returned > Bytes::ZERO => format!(
            "`empty_cache()` before it would not have helped: the allocator gave back {} by itself before it failed",
            found.returned
        ),
        EmptyCache::NothingLeft => {
            "`empty_cache()` before it would not have helped: no segment was wholly free".to_owned()
        }
        EmptyCache::NotEnough(bytes) => format!(
            "`empty_cache()` before it would not have helped: it would have given back {bytes}, and {} were missing",
            found.missing
        ),
        EmptyCache::Enough(bytes) => {
            format!("`empty_cache()` before it would have helped: {bytes} lay in wholly free segments")
        }
    });
    evidence.push(sentences::how_much_less(found));
    evidence.push(sentences::what_settings_can_do(found));
    evidence.extend(tried.and_then(settings_in_words::why_none));
    if tried.is_some_and(TriedSettings::serves_what_failed) && found.is_of_live_memory() {
        let needed = found.allocated + found.request;
        evidence.push(format!(
            "a setting that serves it hardly serves more: {needed} of {} that could be had are in use with it",
            Bytes(found.limit.at_least)
        ));
    }
    evidence
}
