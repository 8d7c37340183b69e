//! Reports requests that failed.

use vramscope_model::{Action, Bytes, EventIdx, Symbols};

use crate::finding::{Finding, Kind};
use crate::names::{apart, count, domain, list, place};
use crate::shortfall::{EmptyCache, Limit, Shortfall};
use crate::{Context, Detector, advice};

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

The layout of segments and blocks at that moment explains it: the largest free block for such requests, what was free in all and what of it
could go back to the driver, the places that held most, and the places whose blocks kept segments that were mostly free. If the driver had enough, a
limit was set for the process (a memory fraction); it lies between what was reserved at some moment and what was refused.

No setting helps if what is held and the request come to more than the limit, even if packed without gaps. Else it says how many bytes less
would have been enough. `empty_cache()` before the request rarely helps: the allocator gives back all free segments before it fails.

## What to do
See what holds memory then; use a smaller batch, activation checkpointing, a sharded optimizer, or a lower precision.
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
    let most = match found.limit {
        Limit::Device(bytes) => bytes,
        Limit::Fraction { .. } => found.reserved,
    };
    let shortage = (found.allocated + event.size) - most;
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
        evidence: evidence(cx.symbols, &found, ooms.len()),
        advice: advice::against_shortfall(cx.symbols, &found),
        companions: Vec::new(),
        shortage: Some(shortage),
        shortfall: Some(Box::new(found)),
        fragmentation: None,
    }]
}

/// How many places a sentence names.
const NAMED: usize = 3;

fn evidence(symbols: &Symbols, found: &Shortfall, n_ooms: usize) -> Vec<String> {
    let mut evidence = vec![format!(
        "a request for {} failed with {} allocated and {} reserved; the driver said that {} were free on the device",
        found.request, found.allocated, found.reserved, found.device_free,
    )];
    if let Limit::Fraction { at_least, below } = found.limit {
        let text = "the driver had more free than was asked for, so a limit was set for this process (a memory fraction)";
        let (low, high) = apart(at_least, below);
        evidence.push(if at_least == Bytes::ZERO {
            format!("{text}: less than {below}")
        } else {
            format!("{text}: at least {low}, which were reserved, and less than {high}")
        });
    }
    if n_ooms > 1 {
        evidence.push(format!("{n_ooms} requests failed in all; this is the last one"));
    }
    evidence.push(what_was_free(symbols, found));
    if !found.holders.is_empty() {
        let named: Vec<String> = found
            .holders
            .iter()
            .take(NAMED)
            .map(|h| format!("{} ({} in {})", place(symbols, h.place), h.bytes, count(h.blocks, "block")))
            .collect();
        evidence.push(format!("most was held by {}", list(&named)));
    }
    evidence.extend(who_pins(symbols, found));
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
    evidence.push(match found.least {
        Some(least) => format!(
            "{} less would have been enough: {} would have {}",
            least.bytes,
            count(least.blocks, "block"),
            if least.leaves_gap { "left a large enough gap" } else { "let enough go back to the driver" }
        ),
        None => format!(
            "even all that is held, given back before, need not have been enough: the request alone needs {}",
            found.needed
        ),
    });
    evidence.push(what_settings_can_do(found));
    evidence
}

/// Whether any setting could have let it pass: with all gaps closed and nothing rounded up.
fn what_settings_can_do(found: &Shortfall) -> String {
    let together = "what is held and the request come to";
    match (found.no_setting_helps, found.limit) {
        (true, Limit::Device(limit)) => {
            let (needed, limit) = apart(found.at_least, limit);
            format!("no allocator setting helps: {together} {needed}, and the process can have {limit}")
        }
        (true, Limit::Fraction { below, .. }) => {
            let (needed, limit) = apart(found.at_least, below);
            format!("no allocator setting helps: {together} {needed}, and the limit is less than {limit}")
        }
        (false, Limit::Device(limit)) => {
            let (needed, limit) = apart(found.at_least, limit);
            format!("without gaps it would have fit: {together} {needed}, and the process can have {limit}")
        }
        (false, Limit::Fraction { at_least, .. }) if found.at_least <= at_least => {
            let (needed, limit) = apart(found.at_least, at_least);
            format!("without gaps it would have fit: {together} {needed}, and {limit} were reserved before")
        }
        (false, Limit::Fraction { .. }) => {
            let saved = (found.reserved + found.needed) - found.at_least;
            format!(
                "allocator settings could save {saved} at most, what lies in gaps and rounding; more than that is live memory"
            )
        }
    }
}

fn what_was_free(symbols: &Symbols, found: &Shortfall) -> String {
    let all = vramscope_replay::total(found.pools.iter().map(|(_, free)| free));
    let here = domain(symbols, found.domain);
    match (found.here.free(), all.free()) {
        (_, Bytes::ZERO) => "nothing was free inside the allocator".to_owned(),
        (Bytes::ZERO, all) => format!("{all} were free inside the allocator, but none of it for {here}"),
        (free, total) => {
            let others = if total > free {
                format!(", and {} for other requests", total - free)
            } else {
                String::new()
            };
            let stranded = if all.stranded == total { "all".to_owned() } else { all.stranded.to_string() };
            format!(
                "{free} were free for {here}, at most {} in one piece{others}; {stranded} of it stranded in segments partly in use",
                found.here.largest
            )
        }
    }
}

/// The places that keep segments which are mostly free, if any do.
fn who_pins(symbols: &Symbols, found: &Shortfall) -> Option<String> {
    let pins = &found.pins;
    let pinned = pins.alone + pins.shared;
    // What would not even make a twentieth of what was missing is not worth a word.
    if pinned == Bytes::ZERO || pinned.0.saturating_mul(20) < found.missing.0 {
        return None;
    }
    let named: Vec<String> = pins
        .places
        .iter()
        .take(NAMED)
        .map(|pin| {
            format!(
                "{} ({} in {}, {})",
                place(symbols, pin.place),
                count(pin.blocks, "block"),
                count(pin.segments, "segment"),
                pin.alone + pin.shared
            )
        })
        .collect();
    Some(format!("{pinned} lay free in segments that a few blocks keep: those of {}", list(&named)))
}
