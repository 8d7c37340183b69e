//! Finds growth where there is no history: by the sizes of the blocks in several snapshots.

use rustc_hash::FxHashMap;
use vramscope_model::{BlockState, Bytes, PoolKind, StackId, State};

use crate::finding::{Finding, Kind};
use crate::{Context, Detector};

pub(crate) const DETECTOR: Detector = Detector {
    code: "block-sizes",
    summary: "the number of blocks of one size grows from snapshot to snapshot",
    finds: &[Kind::Leak, Kind::Growing],
    doc: "\
## What it finds
Sizes of which there are more and more blocks, in snapshots that hold no history of events.

## Why it matters
It is all that can be learned from `memory_snapshot()` alone: not where, but that, and how large each is.

## How it decides
Held blocks are counted by size, pool and stack in three or more snapshots of one process. A size convicts if its number rises from each snapshot to
the next, and does not slow down. Two snapshots never convict: between two points everything either grows or not.

## What to do
Record history (`torch.cuda.memory._record_memory_history()`) for a few dozen steps: then the line can be named.
",
    check,
};

/// Fewer more blocks in each snapshot may be a model that is being loaded.
const MANY: u64 = 8;
/// Fewer snapshots never convict.
const MIN_STATES: usize = 3;

type Key = (u64, PoolKind, StackId);

fn check(cx: &Context<'_>) -> Vec<Finding> {
    // With a trace the births tell, which is better evidence.
    if !cx.device.events.is_empty() || cx.device.states.len() < MIN_STATES {
        return Vec::new();
    }
    let counts: Vec<FxHashMap<Key, u64>> = cx.device.states.iter().map(count).collect();
    let mut keys: Vec<Key> = counts.last().map(|c| c.keys().copied().collect()).unwrap_or_default();
    keys.sort_unstable();
    let mut findings: Vec<Finding> = keys.into_iter().filter_map(|key| judge(cx, key, &counts)).collect();
    findings.sort_by_key(|f| std::cmp::Reverse(f.bytes));
    findings
}

fn count(state: &State) -> FxHashMap<Key, u64> {
    let mut counts = FxHashMap::default();
    for (segment, block) in state.blocks() {
        if block.state == BlockState::Allocated {
            *counts.entry((block.size.0, segment.kind, block.stack)).or_insert(0) += 1;
        }
    }
    counts
}

fn judge(cx: &Context<'_>, key: Key, counts: &[FxHashMap<Key, u64>]) -> Option<Finding> {
    let series: Vec<u64> = counts.iter().map(|c| c.get(&key).copied().unwrap_or(0)).collect();
    let gains: Vec<u64> = series.windows(2).map(|w| w[1].saturating_sub(w[0])).collect();
    let (&least, &most, &last) = (gains.iter().min()?, gains.iter().max()?, gains.last()?);
    if least == 0 {
        return None;
    }
    // A few more blocks in each snapshot is what loading a model does too.
    let kept = last.saturating_mul(2) >= most && least >= MANY;
    let (size, pool, stack) = key;
    let gained = series.last()?.saturating_sub(*series.first()?);
    let shown: Vec<String> = series.iter().map(u64::to_string).collect();
    let members = cx.lifetimes.all().filter(|&id| {
        cx.lifetimes.is_held_at(id, cx.window.to)
            && (cx.lifetimes.size(id), cx.lifetimes.stack(id)) == (Bytes(size), stack)
    });
    Some(Finding {
        code: DETECTOR.code,
        kind: if kept { Kind::Leak } else { Kind::Growing },
        confidence: if kept { (0.4 + 0.1 * gains.len() as f64).min(0.8) } else { 0.4 },
        title: "blocks of this size grow in number from snapshot to snapshot".to_owned(),
        site: cx.symbols.site(stack),
        stack,
        bytes: Bytes(gained.saturating_mul(size)),
        blocks: gained,
        block_size: Some(Bytes(size)),
        bytes_per_step: None,
        blocks_per_step: None,
        steps_to_oom: None,
        first: None,
        last: None,
        evidence: vec![
            format!(
                "held blocks of this size in the {} pool, snapshot by snapshot: {}",
                if pool == PoolKind::Small { "small" } else { "large" },
                shown.join(", ")
            ),
            "the snapshots hold no history of events, so only sizes can be compared".to_owned(),
        ],
        advice: vec![
            "call `torch.cuda.memory._record_memory_history()` at the start and take the snapshots with \
             `torch.cuda.memory._dump_snapshot(\"file.pickle\")`: then the line can be named"
                .to_owned(),
        ],
        companions: Vec::new(),
        members: members.collect(),
        shortage: None,
        shortfall: None,
        fragmentation: None,
        settings: None,
    })
}
