//! Finds memory that is kept, by when the blocks that are left were born.

use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_model::{Action, Bytes, FrameId, StackId};
use vramscope_replay::{AllocId, StepSource, levels_at};

use crate::advice::{KEPT_GRAPH, WHAT_KEEPS};
use crate::finding::{Companion, Finding, Kind};
use crate::groups::Group;
use crate::growth::{self, Fate, Growth};
use crate::{Context, Detector};

pub(crate) const DETECTOR: Detector = Detector {
    code: "survivors-by-birth",
    summary: "memory allocated at one place is kept, round after round",
    finds: &[Kind::Leak, Kind::Growing],
    doc: "\
## What it finds
Places whose allocations pile up: blocks born in old and in recent steps alike are still held, and none as old was ever given back.

## Why it matters
The job dies of it, sooner or later, whatever the size of the device.

## How it decides
Allocations are grouped by their full stack (by size where no stack was recorded), then by the line of your own code. For each
group it looks at *when the blocks that are still held were born*. Left out are the first step, in which state is made that is meant to stay,
and the last, which may be in flight. A group leaks if its survivors were born in many separate steps with no large gap, are older than any block of the
group that was given back, and if the number held rose in every quarter of the run. A cache that is full fails the second condition, one-time
set-up the first. With few births, or with fewer and fewer, it says *growing*: a cache that is not full yet looks the same.

## What to do
Look at the line, and at what your code does with its result: appended to a list, kept on `self`, stored in a dict by an ever new key,
or held through a loss that was not `.detach()`ed or `.item()`ed.
",
    check,
};

/// A place with what is left of it.
struct Suspect {
    site: Option<FrameId>,
    stack: StackId,
    fate: Fate,
    survivors: Vec<AllocId>,
    /// Blocks of the same stacks that are older than the trace.
    older: Vec<AllocId>,
    birth_rounds: Vec<u32>,
    growth: Growth,
    bytes: u64,
}

fn check(cx: &Context<'_>) -> Vec<Finding> {
    let mut suspects = suspects(cx);
    if may_be_layers(cx) {
        if ran_out(cx) {
            return Vec::new();
        }
        for suspect in &mut suspects {
            suspect.fate = Fate::MaybeBounded;
        }
    }
    if !matches!(cx.steps.source(), StepSource::Marks(_) | StepSource::Recorder) {
        for suspect in suspects.iter_mut().filter(|s| is_moved_model(cx, s.stack)) {
            suspect.fate = Fate::MaybeBounded;
        }
    }
    suspects.sort_by_key(|s| (std::cmp::Reverse(s.bytes), s.site, s.stack));
    let mut findings = Vec::new();
    while !suspects.is_empty() {
        // The largest with a line to show, unless that is small against what has none.
        let largest = suspects.first().map_or(0, |s| s.bytes);
        let i = suspects.iter().position(|s| s.site.is_some() && s.bytes >= largest / 10).unwrap_or(0);
        let main = suspects.remove(i);
        let births: FxHashSet<u32> = main.birth_rounds.iter().copied().collect();
        let (with, rest) = suspects.into_iter().partition(|s| grows_with(&births, s));
        suspects = rest;
        findings.push(finding(cx, &main, with));
    }
    findings
}

/// Steps that nobody marked must be at least so many to convict.
pub(crate) const SURE_STEPS: usize = 24;

/// Whether what recurs may be something else than steps. A program that frees nothing is still being set up, as far as anyone can
/// tell: a model is loaded layer by layer. What recurs within one call of a module may be its layers, whose results wait for
/// the backward pass. A few rounds that nobody marked may be either.
pub(crate) fn may_be_layers(cx: &Context<'_>) -> bool {
    match cx.steps.source() {
        StepSource::Recurrence { within_module, .. } => {
            *within_module || cx.rounds.n_steps() < SURE_STEPS || !frees_anything(cx)
        }
        StepSource::Marks(_) | StepSource::Recorder => !frees_anything(cx),
        StepSource::None => true,
    }
}

/// Whether a stack moves a module to the device: its layers come one by one, as steps would.
fn is_moved_model(cx: &Context<'_>, stack: StackId) -> bool {
    cx.symbols.frames(stack).iter().any(|&frame| {
        let frame = cx.symbols.get_frame(frame);
        cx.symbols.str(frame.name) == "_apply" && cx.symbols.str(frame.file).ends_with("nn/modules/module.py")
    })
}

/// Whether the program gave back more than a few blocks of those that it allocated in the window, as events or the last
/// state tell.
fn frees_anything(cx: &Context<'_>) -> bool {
    let born =
        |id: &AllocId| cx.lifetimes.birth(*id).is_some_and(|b| b >= cx.window.from && b < cx.window.to);
    let died = |id: &AllocId| !cx.lifetimes.is_held_at(*id, cx.window.to);
    let births = cx.lifetimes.born().filter(born).count();
    let deaths = cx.lifetimes.born().filter(born).filter(died).count();
    deaths * 50 >= births
}

/// Whether a request failed.
pub(crate) fn ran_out(cx: &Context<'_>) -> bool {
    let range = cx.window.from.index()..cx.window.to.index().min(cx.device.events.len());
    cx.device.events.actions().get(range).is_some_and(|a| a.contains(&Action::Oom))
}

/// Judges each stack, then each line over the stacks that show nothing by themselves, and joins what was found by line.
fn suspects(cx: &Context<'_>) -> Vec<Suspect> {
    let judge = |group: &Group| growth::judge(group, cx.lifetimes, &cx.rounds, cx.window);
    let mut suspects: Vec<Suspect> = Vec::new();
    let mut convicted: FxHashSet<StackId> = FxHashSet::default();
    for group in cx.groups.iter() {
        let growth = judge(group);
        if growth.fate != Fate::Settled {
            convicted.insert(group.stack);
            add(&mut suspects, cx.symbols.site(group.stack), growth);
        }
    }
    // Only lines where enough is left are worth joining.
    let mut left: FxHashMap<FrameId, usize> = FxHashMap::default();
    for group in cx.groups.iter().filter(|g| !convicted.contains(&g.stack)) {
        if let Some(site) = cx.symbols.site(group.stack) {
            let n = group.members.iter().filter(|&&id| cx.lifetimes.is_held_at(id, cx.window.to)).count();
            *left.entry(site).or_default() += n;
        }
    }
    let is_open = |g: &Group| {
        !convicted.contains(&g.stack)
            && cx
                .symbols
                .site(g.stack)
                .is_some_and(|s| left.get(&s).is_some_and(|&n| n >= growth::MIN_BIRTHS))
    };
    for (site, joined) in cx.groups.by_site(cx.symbols, is_open) {
        let growth = judge(&joined);
        if growth.fate != Fate::Settled {
            add(&mut suspects, Some(site), growth);
        }
    }
    for suspect in &mut suspects {
        let mut bytes_by_stack: FxHashMap<StackId, Bytes> = FxHashMap::default();
        for &id in &suspect.survivors {
            *bytes_by_stack.entry(cx.lifetimes.stack(id)).or_default() += cx.lifetimes.size(id);
        }
        let mut bytes_by_stack: Vec<(StackId, Bytes)> = bytes_by_stack.into_iter().collect();
        bytes_by_stack.sort_unstable();
        if suspect.site.is_some() {
            let sizes = || suspect.survivors.iter().map(|&id| cx.lifetimes.size(id));
            let (least, most) = (sizes().min().unwrap_or_default(), sizes().max().unwrap_or_default());
            for (stack, _) in &bytes_by_stack {
                let older = cx.groups.older(*stack).iter().copied();
                suspect.older.extend(older.filter(|&id| (least..=most).contains(&cx.lifetimes.size(id))));
            }
        }
        suspect.stack = bytes_by_stack.iter().max_by_key(|(_, b)| *b).map_or(StackId::EMPTY, |(s, _)| *s);
        suspect.bytes = sum(cx, &suspect.survivors).saturating_add(sum(cx, &suspect.older));
    }
    suspects
}

fn add(suspects: &mut Vec<Suspect>, site: Option<FrameId>, growth: Growth) {
    if let Some(known) = suspects.iter_mut().find(|s| s.site == site && site.is_some()) {
        known.growth.births += growth.births;
        known.growth.freed += growth.freed;
        known.growth.older_than_any_freed += growth.older_than_any_freed;
        known.growth.longest_life = known.growth.longest_life.max(growth.longest_life);
        known.growth.bursts = known.growth.bursts.max(growth.bursts);
        known.survivors.extend_from_slice(&growth.survivors);
        known.survivors.sort_unstable();
        known.birth_rounds.extend_from_slice(&growth.birth_rounds);
        known.birth_rounds.sort_unstable();
        known.birth_rounds.dedup();
        if severity(growth.fate) > severity(known.fate) {
            known.fate = growth.fate;
        }
        return;
    }
    suspects.push(Suspect {
        site,
        stack: StackId::EMPTY,
        fate: growth.fate,
        survivors: growth.survivors.clone(),
        older: Vec::new(),
        birth_rounds: growth.birth_rounds.clone(),
        growth,
        bytes: 0,
    });
}

fn severity(fate: Fate) -> u8 {
    match fate {
        Fate::Kept => 3,
        Fate::Backlog => 2,
        Fate::MaybeBounded => 1,
        Fate::Settled => 0,
    }
}

fn sum(cx: &Context<'_>, ids: &[AllocId]) -> u64 {
    ids.iter().map(|&id| cx.lifetimes.size(id)).sum::<Bytes>().0
}

/// Whether a suspect's survivors were born in the same rounds as another's.
fn grows_with(births: &FxHashSet<u32>, other: &Suspect) -> bool {
    let shared = other.birth_rounds.iter().filter(|r| births.contains(r)).count();
    shared * 5 >= other.birth_rounds.len() * 4 && shared * 5 >= births.len() * 4
}

fn finding(cx: &Context<'_>, main: &Suspect, with: Vec<Suspect>) -> Finding {
    let rounds = &cx.rounds;
    let n_rounds = rounds.count();
    let blocks = main.survivors.len() + main.older.len();
    let mut sizes: Vec<u64> =
        main.survivors.iter().chain(&main.older).map(|&id| cx.lifetimes.size(id).0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let block_size = match sizes.as_slice() {
        [only] => Some(Bytes(*only)),
        _ => None,
    };
    let rate = |s: &Suspect| slope(cx, s, |id| cx.lifetimes.size(id).0 as f64);
    let bytes_per_step = rate(main);
    let total_rate = bytes_per_step + with.iter().map(rate).sum::<f64>();
    let kind = if main.fate == Fate::Kept { Kind::Leak } else { Kind::Growing };
    let time = |id: Option<&AllocId>| {
        id.and_then(|&id| cx.lifetimes.birth(id)).and_then(|b| cx.device.events.time(b))
    };
    let growth = &main.growth;
    let mut born_in: Vec<usize> = main
        .survivors
        .iter()
        .filter_map(|&id| cx.lifetimes.birth(id))
        .map(|b| rounds.of_event(b).min(n_rounds.saturating_sub(1)))
        .collect();
    born_in.dedup();
    let mut evidence = vec![format!(
        "{} of {} blocks allocated here are still held; they were born in {} of {n_rounds} steps",
        main.survivors.len(),
        growth.births,
        born_in.len(),
    )];
    if growth.freed == 0 {
        evidence.push(
            "nothing allocated here was ever given back, so a cache that is larger still cannot be excluded"
                .to_owned(),
        );
    } else if main.fate == Fate::Backlog {
        evidence.push("the oldest are given back in time, but more come than go".to_owned());
    } else {
        evidence.push(format!(
            "{} of them are older than any block from here that was given back (those were held for {})",
            growth.older_than_any_freed,
            match growth.longest_life {
                0 => "less than one step".to_owned(),
                1 => "at most 1 step".to_owned(),
                n => format!("at most {n} steps"),
            },
        ));
    }
    if growth.bursts * 2 < main.birth_rounds.len() {
        evidence.push(format!("they come in {} bursts, evenly spaced", growth.bursts));
    }
    if !main.older.is_empty() {
        evidence.push(format!(
            "{} more blocks of the same stack are held from before the trace begins",
            main.older.len()
        ));
    }
    if total_rate >= 1.0 {
        let steps = (f64::from(1 << 30) / total_rate).ceil() as u64;
        evidence.push(match steps {
            0..=1 => format!("that is {} more every step", Bytes(total_rate as u64)),
            n => format!("that is 1 GiB more every {n} steps"),
        });
    }
    let title = match (kind, main.fate) {
        (Kind::Leak, _) => "memory allocated here is kept and never given back",
        (_, Fate::Backlog) => "more memory comes in here than goes out",
        _ => "memory allocated here grows; it may be a cache that is not full yet",
    };
    let mut advice = Vec::new();
    if kind == Kind::Growing {
        advice.push(if main.fate == Fate::Backlog {
            "bound the queue, or let the consumer keep up".to_owned()
        } else {
            format!("record {} more steps to tell a leak from a cache that is filling up", n_rounds.max(20))
        });
    }
    if main.site.is_none() {
        advice.push(
            "no Python frame was recorded for these blocks (autograd's backward threads have none); record with \
             `stacks=\"all\"` to see the C++ frames"
                .to_owned(),
        );
    } else {
        if distinct_stacks(cx, main) >= GRAPH {
            advice.push(KEPT_GRAPH.to_owned());
        }
        advice.push(WHAT_KEEPS.to_owned());
    }
    let companions = with
        .into_iter()
        .map(|s| Companion {
            site: s.site,
            stack: s.stack,
            bytes: Bytes(s.bytes),
            blocks: (s.survivors.len() + s.older.len()) as u64,
        })
        .collect();
    Finding {
        code: DETECTOR.code,
        kind,
        confidence: confidence(cx, main),
        title: title.to_owned(),
        site: main.site,
        stack: main.stack,
        bytes: Bytes(main.bytes),
        blocks: blocks as u64,
        block_size,
        bytes_per_step: Some(bytes_per_step),
        blocks_per_step: Some(slope(cx, main, |_| 1.0)),
        steps_to_oom: steps_to_oom(cx, total_rate),
        first: time(main.survivors.first()),
        last: time(main.survivors.last()),
        evidence,
        advice,
        companions,
        members: main.older.iter().chain(&main.survivors).copied().collect(),
        shortage: None,
        shortfall: None,
        fragmentation: None,
        settings: None,
    }
}

/// So many operations below one line are a graph rather than a tensor.
const GRAPH: usize = 4;

fn distinct_stacks(cx: &Context<'_>, suspect: &Suspect) -> usize {
    suspect.survivors.iter().map(|&id| cx.lifetimes.stack(id)).collect::<FxHashSet<_>>().len()
}

/// More births, real steps, stacks and a trace that leads to the state make it surer.
fn confidence(cx: &Context<'_>, suspect: &Suspect) -> f64 {
    let births = suspect.growth.bursts.max(1) as f64;
    let mut doubt = match suspect.fate {
        Fate::Kept => 0.6 / births,
        Fate::Backlog => 0.4,
        Fate::MaybeBounded | Fate::Settled => 0.5,
    };
    // A cache that is larger still looks the same.
    if suspect.growth.freed == 0 {
        doubt += 0.05 + 1.0 / births;
    }
    if !suspect.stack.has_frames() {
        doubt += 0.1;
    }
    if !cx.lifetimes.agreement().records_frees {
        doubt += 0.2;
    }
    if !cx.device.trace_reaches_state() {
        doubt += 0.1;
    }
    (1.0 - doubt).clamp(0.3, 0.99)
}

/// Growth a round of what is left, by Theil and Sen: the median of the slopes between all pairs of rounds.
fn slope(cx: &Context<'_>, suspect: &Suspect, weight: impl Fn(AllocId) -> f64) -> f64 {
    const POINTS: usize = 200;
    let n = cx.rounds.count();
    let first = suspect.birth_rounds.first().copied().unwrap_or(0) as usize;
    let mut per_round = vec![0.0; n];
    for &id in &suspect.survivors {
        let round = cx.lifetimes.birth(id).map_or(0, |b| cx.rounds.of_event(b));
        if let Some(sum) = per_round.get_mut(round) {
            *sum += weight(id);
        }
    }
    let mut total = 0.0;
    let curve: Vec<f64> = per_round
        .iter()
        .map(|w| {
            total += w;
            total
        })
        .collect();
    let span = n.saturating_sub(first);
    let at: Vec<usize> = (0..POINTS.min(span)).map(|i| first + i * span / POINTS.min(span)).collect();
    let mut slopes = Vec::with_capacity(at.len() * at.len() / 2);
    for (i, &a) in at.iter().enumerate() {
        for &b in at.iter().skip(i + 1) {
            if let (Some(from), Some(to)) = (curve.get(a), curve.get(b)) {
                slopes.push((to - from) / (b - a) as f64);
            }
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied().unwrap_or(0.0)
}

/// Steps until the device is full: at the soonest when the peak of what is reserved only grows, at the latest when all that
/// is reserved but free can be used first.
fn steps_to_oom(cx: &Context<'_>, bytes_per_step: f64) -> Option<(u64, u64)> {
    let capacity = cx.capacity?.0 as f64;
    if bytes_per_step <= 0.0 {
        return None;
    }
    let now = *levels_at(cx.device, cx.lifetimes, &[cx.window.to]).first()?;
    let peak = cx.peak().map_or(now.reserved, |p| p.max_reserved).0 as f64;
    let allocated = (now.allocated.0 as f64).min(peak);
    let steps = |room: f64| (room.max(0.0) / bytes_per_step) as u64;
    Some((steps(capacity - peak), steps(capacity - allocated)))
}
