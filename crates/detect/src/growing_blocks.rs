//! Finds one thing that is made anew, larger, every round.

use vramscope_model::{Bytes, EventIdx};
use vramscope_replay::{AllocId, Death};

use crate::finding::{Finding, Kind};
use crate::groups::Group;
use crate::{Context, Detector};

pub(crate) const DETECTOR: Detector = Detector {
    code: "growing-blocks",
    summary: "one block is replaced by a larger one, round after round",
    finds: &[Kind::Growing],
    doc: "\
## What it finds
A tensor that is copied into a larger one again and again, as `history = torch.cat([history, x])` does. Only one block is held at a time, so the
number of blocks does not grow; its size does.

## Why it matters
It is a leak in another shape, and costs more than its size: at each step the old and the new copy are both held, and the old one's place
is too small for the next.

## How it decides
The blocks of one stack grow from almost nothing by the same amount at every birth, each is given back only after its successor was made, and this went on
to the end. A working set that follows growing inputs does not begin from nothing, and many places grow with it.

## What to do
Append to a list of CPU tensors (`x.detach().cpu()`), allocate the final size once, or keep only what is needed.
",
    check,
};

/// Fewer births could be a start.
const MIN_BIRTHS: usize = 12;
/// The first block may be this many times the growth.
const FROM_NOTHING: u64 = 3;

fn check(cx: &Context<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = cx.groups.iter().filter_map(|g| judge(cx, g)).collect();
    findings.sort_by_key(|f| std::cmp::Reverse(f.bytes));
    // Where many places grow alike, the inputs do.
    if findings.len() > 2 { Vec::new() } else { findings }
}

fn judge(cx: &Context<'_>, group: &Group) -> Option<Finding> {
    let members = group.members.as_slice();
    if members.len() < MIN_BIRTHS || !group.stack.has_frames() {
        return None;
    }
    let size = |id: AllocId| cx.lifetimes.requested(id).0;
    // Several at a time have the same size: keys and values of each layer, say.
    let generations: Vec<&[AllocId]> = members.chunk_by(|&a, &b| size(a) == size(b)).collect();
    let width = generations.first()?.len();
    let sizes: Vec<u64> = generations.iter().filter_map(|g| g.first()).map(|&id| size(id)).collect();
    let (&smallest, &largest) = (sizes.first()?, sizes.last()?);
    let step = sizes.get(1)?.checked_sub(smallest).filter(|&s| s > 0)?;
    let grows = sizes.windows(2).all(|w| w[1].checked_sub(w[0]) == Some(step));
    let (last, complete) = generations.split_last()?;
    let is_even = complete.iter().all(|g| g.len() == width) && last.len() <= width;
    if sizes.len() < MIN_BIRTHS || !grows || !is_even || smallest > step.saturating_mul(FROM_NOTHING) {
        return None;
    }
    let is_replaced = members.iter().zip(members.iter().skip(width)).all(|(&old, &new)| {
        match (cx.lifetimes.death(old), cx.lifetimes.birth(new)) {
            (Death::At(death), Some(birth)) => death > birth,
            _ => false,
        }
    });
    let held: Vec<AllocId> =
        members.iter().copied().filter(|&id| cx.lifetimes.is_held_at(id, cx.window.to)).collect();
    let goes_on = |birth: EventIdx| cx.rounds.of_event(birth) + 3 > cx.rounds.count();
    let (first, last) = (*members.first()?, *members.last()?);
    if !is_replaced || held.is_empty() || !cx.lifetimes.birth(last).is_some_and(goes_on) {
        return None;
    }
    let time = |id: AllocId| cx.lifetimes.birth(id).and_then(|b| cx.device.events.time(b));
    let rounds =
        cx.rounds.of_event(cx.lifetimes.birth(last)?) - cx.rounds.of_event(cx.lifetimes.birth(first)?);
    let per_round = |n: f64| (rounds > 0).then(|| n / rounds as f64);
    Some(Finding {
        code: DETECTOR.code,
        kind: Kind::Growing,
        confidence: 0.8,
        title: "a block is replaced by a larger one, round after round".to_owned(),
        site: cx.symbols.site(group.stack),
        stack: group.stack,
        bytes: held.iter().map(|&id| cx.lifetimes.size(id)).sum(),
        blocks: held.len() as u64,
        block_size: (held.len() == 1).then(|| cx.lifetimes.size(last)),
        bytes_per_step: per_round((largest - smallest) as f64 * width as f64),
        blocks_per_step: None,
        steps_to_oom: None,
        first: time(first),
        last: time(last),
        evidence: vec![
            format!(
                "{} times a block was allocated here that is {} larger than the one before, from {} to {}{}",
                sizes.len(),
                Bytes(step),
                Bytes(smallest),
                Bytes(largest),
                if width > 1 { format!(", {width} at a time") } else { String::new() }
            ),
            "each was given back only after its successor had been made".to_owned(),
        ],
        advice: vec![
            "if this is `x = torch.cat([x, new])`: keep a list of CPU tensors instead, or allocate the final size once"
                .to_owned(),
            "if it is a cache of keys and values: bound or crop it; during a single request it is meant to grow".to_owned(),
        ],
        companions: Vec::new(),
        members: held,
        shortage: None,
        shortfall: None,
        fragmentation: None,
        settings: None,
    })
}
