//! Finds memory that waits for Python's garbage collector.

use rustc_hash::FxHashSet;
use vramscope_model::{Action, Bytes, EventIdx, StackId};
use vramscope_replay::{AllocId, Death};

use crate::advice::WHAT_CYCLE;
use crate::finding::{Companion, Finding, Kind};
use crate::groups::Group;
use crate::{Context, Detector};

pub(crate) const DETECTOR: Detector = Detector {
    code: "collected-in-bulk",
    summary: "memory is held by reference cycles until Python's garbage collector runs",
    finds: &[Kind::ReferenceCycle],
    doc: "\
## What it finds
Blocks that your code is done with but that are only given back when Python's cyclic garbage collector happens to run: the curve is a sawtooth.

## Why it matters
The collector counts Python objects, not bytes of GPU memory: it may run after a handful of tensors or after thousands. The device can
run out while most of what it holds is garbage.

## How it decides
Blocks of one place that were born in several different steps die together, with no allocation in between, oldest first, as the collector
goes through them; and that happens again and again. (A list that is emptied gives back the newest first; a function that ends gives back what was
born in one step.) Then either the frees come from changing places, since the collector runs wherever Python happens to allocate, or each bulk comes after
a pause as long as a full collection takes: a `dict` that is emptied gives back oldest first too, but at once.

## What to do
Break the cycle: an exception kept in a local variable, an object that refers to itself through a callback or a hook, a closure over `self`.
`weakref` helps; `gc.collect()` at a fixed place in the loop bounds the sawtooth.
",
    check,
};

/// Blocks of one group that died in one go.
struct Cohort {
    members: Vec<AllocId>,
    /// Where they were given back.
    free_stack: StackId,
    /// The share of neighbours from different rounds of which the older was given back first.
    oldest_first: f64,
    /// The longest pause that led to it, in µs.
    pause_us: Option<i64>,
    bytes: u64,
}

/// Fewer blocks dying together are no bulk.
const MIN_MEMBERS: usize = 3;
/// From this share on a bulk counts as given back oldest first.
const OLDEST_FIRST: f64 = 0.75;
/// From this share on it is at least not newest first.
const MIXED: f64 = 0.5;
/// Fewer bulks could be chance.
const MIN_COHORTS: usize = 2;

fn check(cx: &Context<'_>) -> Vec<Finding> {
    // Steps of equal size are no clock for this: blocks of one step would seem to come from several.
    let mut runs: Option<Vec<u32>> = None;
    let shortest_round = cx.rounds.shortest();
    let mut hits: Vec<(&Group, Vec<Cohort>)> = Vec::new();
    let mut usual = None;
    for group in cx.groups.iter() {
        if group.members.len() < MIN_MEMBERS * MIN_COHORTS {
            continue;
        }
        // What dies in bulk and was born in several rounds was held for longer than a round; most groups hold nothing
        // that long. What the same line frees at once is another matter.
        let waited: Vec<(EventIdx, AllocId)> = group
            .members
            .iter()
            .filter_map(|&id| match (cx.lifetimes.birth(id), cx.lifetimes.death(id)) {
                (Some(birth), Death::At(at)) if at < cx.window.to && at.0 - birth.0 >= shortest_round => {
                    Some((at, id))
                }
                _ => None,
            })
            .collect();
        if waited.len() < MIN_MEMBERS * MIN_COHORTS {
            continue;
        }
        let died = waited.len();
        let runs = runs.get_or_insert_with(|| free_runs(cx));
        let bulks = cohorts(cx, waited, runs);
        let usual = *usual.get_or_insert_with(|| usual_pause(cx));
        // What hangs together as a tree is gone through in its own order; a list that is emptied still stands out.
        let (trigger, order) = if trigger(cx, bulks.iter(), usual) == Trigger::Anywhere {
            (Trigger::Anywhere, MIXED)
        } else {
            (trigger(cx, bulks.iter().filter(|c| c.oldest_first >= OLDEST_FIRST), usual), OLDEST_FIRST)
        };
        let cohorts: Vec<Cohort> = bulks.into_iter().filter(|c| c.oldest_first >= order).collect();
        let in_bulk: usize = cohorts.iter().map(|c| c.members.len()).sum();
        if cohorts.len() < MIN_COHORTS || in_bulk * 4 < died {
            continue;
        }
        if trigger != Trigger::AtOnce {
            hits.push((group, cohorts));
        }
    }
    let size = |cohorts: &[Cohort]| cohorts.iter().map(|c| c.bytes).max().unwrap_or(0);
    hits.sort_by_key(|(g, c)| (std::cmp::Reverse(size(c)), g.stack));
    // What dies in the same bulks hangs on the same cycles.
    let i = hits.iter().position(|(g, _)| cx.symbols.site(g.stack).is_some()).unwrap_or(0);
    if hits.is_empty() {
        return Vec::new();
    }
    let (main, cohorts) = hits.remove(i);
    vec![finding(cx, main, &cohorts, &hits)]
}

/// For each event, the run of frees that it lies in; a run ends where something is allocated.
fn free_runs(cx: &Context<'_>) -> Vec<u32> {
    let mut run = 0;
    cx.device
        .events
        .actions()
        .iter()
        .map(|action| {
            if matches!(action, Action::Alloc | Action::SegmentAlloc | Action::SegmentMap) {
                run += 1;
            }
            run
        })
        .collect()
}

/// The longest pause, in µs, in the run of frees that leads to a free.
fn pause_before(cx: &Context<'_>, runs: &[u32], free: EventIdx) -> Option<i64> {
    let run = runs.get(free.index());
    let mut longest = None;
    let mut later = cx.device.events.time(free)?;
    for i in (0..free.0).rev() {
        let time = cx.device.events.time(EventIdx(i))?;
        longest = longest.max(Some(later.0.saturating_sub(time.0)));
        later = time;
        // The event before the run ends it: what came next may have had to wait.
        if runs.get(i as usize) != run {
            break;
        }
    }
    longest
}

/// The bulks among some deaths.
fn cohorts(cx: &Context<'_>, mut deaths: Vec<(EventIdx, AllocId)>, runs: &[u32]) -> Vec<Cohort> {
    deaths.sort_unstable();
    let run_of = |at: EventIdx| runs.get(at.index()).copied().unwrap_or(0);
    deaths
        .chunk_by(|a, b| run_of(a.0) == run_of(b.0))
        .filter(|bulk| bulk.len() >= MIN_MEMBERS)
        .filter_map(|bulk| {
            let mut rounds: Vec<usize> = bulk
                .iter()
                .filter_map(|&(_, id)| cx.lifetimes.birth(id))
                .map(|b| cx.rounds.of_event(b))
                .collect();
            // Of the blocks of one round nobody knows the order in which they hang together.
            let ascending = rounds.windows(2).filter(|w| w[0] < w[1]).count();
            let descending = rounds.windows(2).filter(|w| w[0] > w[1]).count();
            rounds.sort_unstable();
            rounds.dedup();
            (rounds.len() >= MIN_MEMBERS).then(|| {
                let first = bulk.first().map_or(EventIdx(0), |b| b.0);
                Cohort {
                    members: bulk.iter().map(|&(_, id)| id).collect(),
                    free_stack: cx
                        .device
                        .events
                        .stacks()
                        .get(first.index())
                        .copied()
                        .unwrap_or(StackId::ABSENT),
                    pause_us: pause_before(cx, runs, first),
                    oldest_first: ascending as f64 / (ascending + descending).max(1) as f64,
                    bytes: bulk.iter().map(|&(_, id)| cx.lifetimes.size(id)).sum::<Bytes>().0,
                }
            })
        })
        .collect()
}

/// How bulks were given back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trigger {
    /// At places that change: Python's collector runs wherever Python allocates.
    Anywhere,
    /// At a few lines, each time after a pause as long as a full collection takes.
    AfterPause,
    /// At a few lines, at once, as a container is emptied; or nobody knows.
    AtOnce,
}

/// Fewer places may be the lines where containers are emptied.
const CHANGING_PLACES: usize = 3;
/// A full collection goes through every Python object, of which torch alone makes 180,000: that takes longer than this.
const PAUSE_US: i64 = 10_000;

fn trigger<'c>(
    cx: &Context<'_>,
    cohorts: impl Iterator<Item = &'c Cohort> + Clone,
    usual_pause: i64,
) -> Trigger {
    let innermost = |c: &Cohort| cx.symbols.frames(c.free_stack).first().copied();
    let places: FxHashSet<_> = cohorts.clone().map(innermost).collect();
    if places.len() >= CHANGING_PLACES {
        return Trigger::Anywhere;
    }
    let is_paused =
        |c: &&Cohort| c.pause_us.is_some_and(|p| p >= PAUSE_US && p >= usual_pause.saturating_mul(2));
    let (paused, all) = (cohorts.clone().filter(is_paused).count(), cohorts.count());
    if paused * 5 >= all * 4 { Trigger::AfterPause } else { Trigger::AtOnce }
}

/// The longest pause between two events of a round, in µs: the median over all rounds. A program may wait for the GPU once a
/// step.
fn usual_pause(cx: &Context<'_>) -> i64 {
    let mut pauses = vec![0; cx.rounds.count()];
    let mut previous: Option<i64> = None;
    for i in cx.window.from.0..cx.window.to.0 {
        let Some(time) = cx.device.events.time(EventIdx(i)) else { continue };
        if let Some(previous) = previous
            && let Some(longest) = pauses.get_mut(cx.rounds.of_event(EventIdx(i)))
        {
            *longest = (*longest).max(time.0.saturating_sub(previous));
        }
        previous = Some(time.0);
    }
    pauses.sort_unstable();
    pauses.get(pauses.len() / 2).copied().unwrap_or(0)
}

fn finding(cx: &Context<'_>, main: &Group, cohorts: &[Cohort], others: &[(&Group, Vec<Cohort>)]) -> Finding {
    let is_anywhere = trigger(cx, cohorts.iter(), 0) == Trigger::Anywhere;
    let largest = cohorts.iter().max_by_key(|c| c.bytes);
    let bytes = largest.map_or(0, |c| c.bytes);
    let blocks = largest.map_or(0, |c| c.members.len());
    let total: usize = cohorts.iter().map(|c| c.members.len()).sum();
    let mut sizes: Vec<u64> =
        cohorts.iter().flat_map(|c| &c.members).map(|&id| cx.lifetimes.size(id).0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let waited: usize = cohorts
        .iter()
        .filter_map(|c| {
            let rounds =
                c.members.iter().filter_map(|&id| cx.lifetimes.birth(id)).map(|b| cx.rounds.of_event(b));
            Some(rounds.clone().max()? - rounds.min()? + 1)
        })
        .max()
        .unwrap_or(0);
    let mut evidence = vec![
        format!(
            "{total} blocks were freed in {} goes, the older ones first; one go freed blocks born over up to {waited} steps",
            cohorts.len(),
        ),
        "nothing was allocated in the middle of a go, as when Python's garbage collector runs".to_owned(),
    ];
    if is_anywhere {
        let places: FxHashSet<StackId> = cohorts.iter().map(|c| c.free_stack).collect();
        evidence.push(format!("they were freed from {} different places in the code", places.len()));
    } else {
        let pause = cohorts.iter().filter_map(|c| c.pause_us).min().unwrap_or(0);
        evidence.push(format!(
            "each go came after a pause of at least {} ms, as long as a full collection takes; a container that is emptied \
             gives back at once",
            pause / 1000
        ));
    }
    let time = |id: Option<&AllocId>| {
        id.and_then(|&id| cx.lifetimes.birth(id)).and_then(|b| cx.device.events.time(b))
    };
    let first = cohorts.first().and_then(|c| c.members.first());
    let last = cohorts.last().and_then(|c| c.members.last());
    let companions = others
        .iter()
        .map(|(group, cohorts)| {
            let largest = cohorts.iter().max_by_key(|c| c.bytes);
            Companion {
                site: cx.symbols.site(group.stack),
                stack: group.stack,
                bytes: Bytes(largest.map_or(0, |c| c.bytes)),
                blocks: largest.map_or(0, |c| c.members.len() as u64),
            }
        })
        .collect();
    let mut members: Vec<AllocId> = cohorts.iter().flat_map(|c| &c.members).copied().collect();
    members.sort_unstable();
    let doubt = if is_anywhere { 0.25 / (cohorts.len() - 1) as f64 } else { 0.35 };
    Finding {
        code: DETECTOR.code,
        kind: Kind::ReferenceCycle,
        confidence: (1.0 - doubt).clamp(0.5, 0.97),
        title: "memory allocated here waits for Python's garbage collector".to_owned(),
        site: cx.symbols.site(main.stack),
        stack: main.stack,
        bytes: Bytes(bytes),
        blocks: blocks as u64,
        block_size: match sizes.as_slice() {
            [only] => Some(Bytes(*only)),
            _ => None,
        },
        bytes_per_step: None,
        blocks_per_step: None,
        steps_to_oom: None,
        first: time(first),
        last: time(last),
        evidence,
        advice: vec![
            WHAT_CYCLE.to_owned(),
            "until then, `gc.collect()` once every few steps bounds what waits".to_owned(),
        ],
        companions,
        members,
        shortage: None,
        shortfall: None,
        fragmentation: None,
        settings: None,
    }
}
