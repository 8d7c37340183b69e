//! Finds memory that is given back late, because another stream may still use it.

use rustc_hash::FxHashMap;
use vramscope_model::{Action, Bytes, EventIdx};

use crate::finding::{Finding, Kind};
use crate::{Context, Detector};

pub(crate) const DETECTOR: Detector = Detector {
    code: "late-frees",
    summary: "much memory waits for another stream before it can be used again",
    finds: &[Kind::PendingFree],
    doc: "\
## What it finds
Blocks that your code gave back but that the allocator could not hand out again, because they were used on another stream (`record_stream`).

## Why it matters
Such memory is neither yours nor free: the peak is higher than what your code holds.

## How it decides
The trace tells when a free was requested and when it was completed. It is a note if at some moment a tenth or more of what is
reserved was waiting, and at least 32 MiB.

## What to do
Let the consuming stream be waited for before the tensor goes out of scope, instead of `record_stream`; or allocate on the stream that uses it.
",
    check,
};

/// The share of reserved memory that must have been waiting.
const SHARE: f64 = 0.1;
/// Less than this is not worth a word.
const LEAST: u64 = 32 << 20;

fn check(cx: &Context<'_>) -> Vec<Finding> {
    let events = &cx.device.events;
    let (actions, addrs) = (events.actions(), events.addrs());
    let mut waiting: FxHashMap<u64, (EventIdx, u64)> = FxHashMap::default();
    let (mut bytes, mut most, mut late) = (0u64, (0u64, EventIdx(0)), 0u64);
    for i in cx.window.from.index()..cx.window.to.index().min(events.len()) {
        match actions[i] {
            // Nearly all frees are completed at once.
            Action::FreeRequested
                if actions.get(i + 1) != Some(&Action::FreeCompleted)
                    || addrs.get(i + 1) != Some(&addrs[i]) =>
            {
                let at = EventIdx(i as u32);
                if let Some(id) = cx.lifetimes.alloc_of(at) {
                    let size = cx.lifetimes.size(id).0;
                    waiting.insert(addrs[i], (at, size));
                    bytes = bytes.saturating_add(size);
                    late += 1;
                    if bytes > most.0 {
                        most = (bytes, at);
                    }
                }
            }
            Action::FreeCompleted if !waiting.is_empty() => {
                if let Some((_, size)) = waiting.remove(&addrs[i]) {
                    bytes = bytes.saturating_sub(size);
                }
            }
            _ => {}
        }
    }
    let Some(peak) = cx.peak().filter(|_| most.0 >= LEAST) else { return Vec::new() };
    if (most.0 as f64) < SHARE * peak.max_reserved.0 as f64 {
        return Vec::new();
    }
    let stack =
        cx.lifetimes.alloc_of(most.1).map_or(vramscope_model::StackId::ABSENT, |id| cx.lifetimes.stack(id));
    vec![Finding {
        code: DETECTOR.code,
        kind: Kind::PendingFree,
        confidence: 0.95,
        title: "memory given back waits for another stream".to_owned(),
        site: cx.symbols.site(stack),
        stack,
        bytes: Bytes(most.0),
        blocks: late,
        block_size: None,
        bytes_per_step: None,
        blocks_per_step: None,
        steps_to_oom: None,
        first: None,
        last: events.time(most.1),
        evidence: vec![format!(
            "{late} frees were completed only later; at most {} waited at a time, of {} reserved",
            Bytes(most.0),
            peak.max_reserved
        )],
        advice: vec![
            "wait for the other stream before the tensor goes out of scope, rather than `record_stream`"
                .to_owned(),
        ],
        companions: Vec::new(),
        members: Vec::new(),
        shortage: None,
        shortfall: None,
        fragmentation: None,
        settings: None,
    }]
}
