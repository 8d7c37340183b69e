//! Finds one thing that is made anew, larger, every round.

use vramscope_model::{Bytes, EventIdx};
use vramscope_replay::{AllocId, Death};

use crate::finding::{Finding, Kind};
use crate::groups::Group;
use crate::{Context, Detector};

pub(crate) const DETECTOR: Detector = Detector {
    code: "growing-blocks",
    summary: "one block is replaced by a larger one, round after round",
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
    let (first, last) = (*members.first()?, *members.last()?);
    let step = size(*members.get(1)?).checked_sub(size(first)).filter(|&s| s > 0)?;
    let grows = members.windows(2).all(|w| size(w[1]).checked_sub(size(w[0])) == Some(step));
    if !grows || size(first) > step * FROM_NOTHING {
        return None;
    }
    let is_replaced =
        members.windows(2).all(|w| match (cx.lifetimes.death(w[0]), cx.lifetimes.birth(w[1])) {
            (Death::At(death), Some(birth)) => death > birth,
            _ => false,
        });
    let goes_on = |birth: EventIdx| cx.rounds.of_event(birth) + 3 > cx.rounds.count();
    if !is_replaced
        || !cx.lifetimes.is_held_at(last, cx.window.to)
        || !cx.lifetimes.birth(last).is_some_and(goes_on)
    {
        return None;
    }
    let time = |id: AllocId| cx.lifetimes.birth(id).and_then(|b| cx.device.events.time(b));
    let rounds =
        cx.rounds.of_event(cx.lifetimes.birth(last)?) - cx.rounds.of_event(cx.lifetimes.birth(first)?);
    let per_round = |n: f64| (cx.rounds.are_steps() && rounds > 0).then(|| n / rounds as f64);
    Some(Finding {
        code: DETECTOR.code,
        kind: Kind::Growing,
        confidence: 0.8,
        title: "a block is replaced by a larger one, round after round".to_owned(),
        site: cx.symbols.site(group.stack),
        stack: group.stack,
        bytes: cx.lifetimes.size(last),
        blocks: 1,
        block_size: Some(cx.lifetimes.size(last)),
        bytes_per_step: per_round((size(last) - size(first)) as f64),
        blocks_per_step: None,
        steps_to_oom: None,
        first: time(first),
        last: time(last),
        evidence: vec![
            format!(
                "{} times a block was allocated here that is {} larger than the one before, from {} to {}",
                members.len(),
                Bytes(step),
                Bytes(size(first)),
                Bytes(size(last))
            ),
            "each was given back only after its successor had been made".to_owned(),
        ],
        advice: vec![
            "if this is `x = torch.cat([x, new])`: keep a list of CPU tensors instead, or allocate the final size once"
                .to_owned(),
        ],
        companions: Vec::new(),
    })
}
