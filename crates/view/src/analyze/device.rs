//! One device: its sums, peak, steps, phases and findings.

use rustc_hash::FxHashMap;
use vramscope_detect::{Context, Kind, Turnover, detect, detect_only, turnover};
use vramscope_model::{
    Action, BlockState, Bytes, DeviceRecording, EventIdx, Recording, Settings, StackId, Symbols,
};
use vramscope_replay::{Lifetimes, PhaseRun, StepSource, Steps, Window, balance_at, levels, phase_runs};

use super::explained;
use super::findings::present;
use super::joined_holder::Lookup;
use super::sites::ByStack;
use super::verdict::History;
use super::window::window;
use crate::analysis::{Balance, DeviceAnalysis, Finding, Options, Peak, Phase, Steps as StepsView};
use crate::holders::HoldersFile;

/// What came of one device.
pub(super) struct Outcome {
    pub(super) analysis: DeviceAnalysis,
    pub(super) findings: Vec<Finding>,
    pub(super) history: History,
    /// None where it was not asked for, or the device does not acquit.
    pub(super) turnover: Option<Vec<Turnover>>,
    pub(super) caveats: Vec<String>,
}

fn is_growth(kind: Kind) -> bool {
    matches!(kind, Kind::Leak | Kind::Growing)
}

/// Fewer steps make no steady state.
const STEADY: usize = 5;
/// Into how many parts a trace without steps is divided for its curve.
const PARTS: usize = 60;
/// The deepest nesting of phases that is followed.
const MAX_NESTED: usize = 64;
/// The most phases shown.
const MAX_PHASES: usize = 40;

pub(super) fn analyze(
    recording: &Recording,
    device: &DeviceRecording,
    symbols: &Symbols,
    options: &Options,
    holders: &[HoldersFile],
) -> Outcome {
    let lifetimes = Lifetimes::of(device, recording.settings.as_ref());
    let whole = lifetimes.whole();
    let all_steps = Steps::of(device, &recording.annotations, symbols, whole);
    let n_all_steps = all_steps.count();
    let window = window(device, &all_steps, options);
    let steps = if window == whole {
        all_steps.clone()
    } else {
        Steps::of(device, &recording.annotations, symbols, window)
    };
    let context =
        Context::new(recording, device, symbols, &lifetimes, &steps, window, options.capacity.map(Bytes));
    let mut found = detect(&context);
    let capacity = options
        .capacity
        .zip(context.fit())
        .map(|(capacity, fit)| explained::capacity_check(capacity, context.recorded_peak().0, fit));
    let mut acquitted = 0;
    if window != whole {
        // What the rest of the trace shows to be given back, before or after the window, is not kept.
        let over_all = Context::new(recording, device, symbols, &lifetimes, &all_steps, whole, None);
        let elsewhere: Vec<_> = detect_only(&over_all, is_growth).into_iter().map(|f| f.site).collect();
        let n = found.len();
        found.retain(|f| !is_growth(f.kind) || elsewhere.contains(&f.site));
        acquitted = n - found.len();
    }
    let runs = phase_runs(device, &recording.annotations);
    let curve = Curve::follow(device, &lifetimes, window, &steps, &runs);
    let most_allocated = curve.peak.map_or(0, |(_, allocated, _)| allocated);
    let lookup = Lookup { files: holders, device, lifetimes: &lifetimes, window };
    let mut findings: Vec<Finding> = Vec::with_capacity(found.len());
    let mut doubts: Vec<String> = Vec::new();
    for finding in found {
        let (holder, doubt) = lookup.holder(&finding);
        doubts.extend(doubt);
        let finding = present(finding, recording, device.ordinal, most_allocated, symbols);
        findings.push(Finding { holder, ..finding });
    }
    let is_unsteady = findings.iter().any(Finding::is_growth);
    let peak = curve.peak.map(|(event, allocated, reserved)| Peak {
        time_us: device.events.time(event).map(|t| t.0),
        event: u64::from(event.0),
        step: (steps.count() > 0).then(|| steps.step_of(event) as u64 + 1),
        allocated,
        reserved,
        max_reserved: curve.max_reserved,
        sites: {
            let mut sums = ByStack::default();
            let after = EventIdx(event.0 + 1);
            for id in lifetimes.all().filter(|&id| lifetimes.is_held_at(id, after)) {
                let (stack, size) = (lifetimes.stack(id), lifetimes.size(id).0);
                match lifetimes.birth(id) {
                    Some(_) => sums.add(stack, size),
                    None => sums.add_before(stack, size),
                }
            }
            sums.by_site(symbols)
        },
    });
    let events = &device.events;
    let duration_us = match (window.to.0.checked_sub(1), events.is_empty()) {
        (Some(last), false) => {
            let first = events.time(window.from);
            let last = events.time(EventIdx(last));
            first.zip(last).map(|(a, b)| b.0.saturating_sub(a.0))
        }
        _ => None,
    };
    let n_allocs = (window.from.index()..window.to.index())
        .filter(|&i| events.actions().get(i) == Some(&Action::Alloc))
        .count();
    let history = History {
        n_allocs,
        n_steps: steps.count(),
        n_states: device.states.iter().filter(|s| !s.segments.is_empty()).count(),
        records_frees: lifetimes.agreement().records_frees,
        has_trace: !events.is_empty(),
    };
    let mut caveats = caveats(recording, device, &lifetimes, history);
    if window.from >= window.to && !events.is_empty() {
        caveats.push(format!(
            "there is no event in the part that was asked for; the trace has {} events and {} steps",
            events.len(),
            n_all_steps
        ));
    } else if window != whole {
        caveats.push(format!(
            "only events {} to {} of {} were looked at",
            window.from.0,
            window.to.0,
            events.len()
        ));
    }
    if acquitted > 0 {
        caveats.push(format!(
            "{acquitted} {} in this part, but the whole recording shows that it is given back",
            if acquitted == 1 { "place grows" } else { "places grow" }
        ));
    }
    let contradictory = device.last_state().is_some_and(|s| {
        s.segments.iter().any(|segment| {
            !segment.is_tiled() || segment.blocks.iter().any(|b| b.requested.is_some_and(|r| r > b.size))
        })
    });
    if contradictory {
        caveats.push(
            "the file contradicts itself (blocks do not fit their segments), so the sums may be wrong; see `vramscope inspect`"
                .to_owned(),
        );
    }
    let (phases, more_phases) = phases(symbols, &lifetimes, window, &runs, &curve);
    if more_phases > 0 {
        caveats.push(format!("{more_phases} more marked phases are not shown"));
    }
    caveats.append(&mut doubts);
    let analysis = DeviceAnalysis {
        device: device.ordinal,
        rank: recording.rank,
        events: window.to.0.saturating_sub(window.from.0).into(),
        duration_us,
        balance: balance(device, &lifetimes, recording.settings.as_ref(), window, symbols),
        peak,
        steps: StepsView { count: steps.count() as u64, source: step_source(steps.source()) },
        fluctuation_pct: fluctuation(&curve.at_steps, steps.count()).filter(|_| !is_unsteady),
        allocated_at_steps: curve.at_steps,
        phases,
        settings: recording.settings.as_ref().map(|s| s.all.clone()).unwrap_or_default(),
        capacity,
    };
    // Where memory is kept, nothing is acquitted.
    let turnover = if options.turnover && !is_unsteady { turnover(&context) } else { None };
    Outcome { analysis, findings, history, turnover, caveats }
}

fn balance(
    device: &DeviceRecording,
    lifetimes: &Lifetimes,
    settings: Option<&Settings>,
    window: Window,
    symbols: &Symbols,
) -> Balance {
    let sums = balance_at(device, lifetimes, settings, window.to);
    let mut sites = ByStack::default();
    let mut before_recording = 0;
    let mut requested = 0;
    let is_end = window.to.index() >= device.events.len();
    let knows_requested = device
        .last_state()
        .is_none_or(|s| s.blocks().all(|(_, b)| b.state != BlockState::Allocated || b.requested.is_some()));
    let mut add = |stack: StackId, is_before: bool, bytes: u64| {
        requested = u64::saturating_add(requested, bytes);
        if is_before && !stack.has_frames() {
            before_recording = u64::saturating_add(before_recording, bytes);
        } else {
            sites.add(stack, bytes);
        }
    };
    match device.last_state().filter(|_| is_end) {
        // The state has the last word on what is held; the trace tells where it came from.
        Some(state) => {
            let born: FxHashMap<u64, StackId> = lifetimes
                .born()
                .filter(|&id| lifetimes.is_held_at(id, window.to))
                .map(|id| (lifetimes.addr(id), lifetimes.stack(id)))
                .collect();
            for (_, block) in state.blocks().filter(|(_, b)| b.state == BlockState::Allocated) {
                let bytes = block.requested.unwrap_or(block.size).0;
                match born.get(&block.addr) {
                    Some(&stack) => add(stack, false, bytes),
                    None => add(block.stack, true, bytes),
                }
            }
        }
        None => {
            for id in lifetimes.all().filter(|&id| lifetimes.is_held_at(id, window.to)) {
                add(lifetimes.stack(id), lifetimes.birth(id).is_none(), lifetimes.requested(id).0);
            }
        }
    }
    let allocated = sums.allocated.0;
    Balance {
        reserved: sums.reserved.0,
        allocated,
        pending: sums.pending.0,
        free: sums.free().0,
        releasable: sums.releasable.0,
        stranded: sums.stranded.0,
        requested: knows_requested.then_some(requested),
        rounding: knows_requested.then(|| allocated.saturating_sub(requested)),
        sites: sites.by_site(symbols),
        before_recording,
        segments: sums.segments,
    }
}

/// What one pass over the levels tells.
struct Curve {
    /// Event, allocated and reserved bytes at the peak of allocated bytes.
    peak: Option<(EventIdx, u64, u64)>,
    max_reserved: u64,
    /// Allocated bytes at the end of each step or part.
    at_steps: Vec<u64>,
    /// For each run of a phase: allocated bytes at its start, its end, and the most in between.
    runs: Vec<(u64, u64, u64)>,
}

impl Curve {
    fn follow(
        device: &DeviceRecording,
        lifetimes: &Lifetimes,
        window: Window,
        steps: &Steps,
        runs: &[PhaseRun],
    ) -> Self {
        let n = window.to.0.saturating_sub(window.from.0) as usize;
        let ends: Vec<EventIdx> = if steps.count() > 0 {
            steps.ends().to_vec()
        } else {
            let parts = PARTS.min(n);
            (1..=parts).map(|i| EventIdx(window.from.0 + (n * i / parts) as u32)).collect()
        };
        let mut this = Self {
            peak: None,
            max_reserved: 0,
            at_steps: Vec::with_capacity(ends.len()),
            runs: vec![(0, 0, 0); runs.len()],
        };
        let mut next_end = ends.iter().copied().peekable();
        // Runs come sorted by their start.
        let mut next_run = 0;
        let mut open: Vec<usize> = Vec::new();
        let mut before: Option<u64> = None;
        levels(device, lifetimes, Window { from: EventIdx(0), to: window.to }, |event, level| {
            let allocated = level.allocated.0;
            while next_end.peek().is_some_and(|&end| end <= event) {
                next_end.next();
                this.at_steps.push(before.unwrap_or(allocated));
            }
            while runs.get(next_run).is_some_and(|r| r.from <= event) {
                let start = before.unwrap_or(0);
                this.runs[next_run] = (start, start, start);
                // Regions nest a few deep; what never ends is not followed for ever.
                if open.len() < MAX_NESTED {
                    open.push(next_run);
                }
                next_run += 1;
            }
            open.retain(|&i| {
                if runs[i].to <= event {
                    this.runs[i].1 = before.unwrap_or(0);
                    return false;
                }
                this.runs[i].2 = this.runs[i].2.max(allocated);
                true
            });
            if event >= window.from {
                this.max_reserved = this.max_reserved.max(level.reserved.0);
                if this.peak.is_none_or(|(_, most, _)| allocated > most) {
                    this.peak = Some((event, allocated, level.reserved.0));
                }
            }
            before = Some(allocated);
        });
        let last = before.unwrap_or(0);
        this.at_steps.extend(next_end.map(|_| last));
        for i in open {
            this.runs[i].1 = last;
        }
        this
    }
}

/// Half the spread at step ends, after a warm-up of a fifth of the run, in percent of the median.
fn fluctuation(at_steps: &[u64], n_steps: usize) -> Option<f64> {
    if n_steps < STEADY {
        return None;
    }
    let mut steady = at_steps.get(at_steps.len() / 5..)?.to_vec();
    steady.sort_unstable();
    let (least, most) = (*steady.first()?, *steady.last()?);
    let median = *steady.get(steady.len() / 2)?;
    (median > 0).then(|| (most - least) as f64 / 2.0 / median as f64 * 100.0)
}

fn step_source(source: &StepSource) -> String {
    match source {
        StepSource::None => "none found".to_owned(),
        StepSource::Recorder => "recorder".to_owned(),
        StepSource::Marks(name) => format!("`{name}` marks"),
        StepSource::Recurrence { stacks: 1, .. } => "allocations of one place that recur".to_owned(),
        StepSource::Recurrence { stacks, .. } => {
            format!("allocations of {stacks} places that recur once a step")
        }
    }
}

/// A phase's name without the numbers that count up.
fn phase_name(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut in_number = false;
    for c in name.chars() {
        if c.is_ascii_digit() {
            if !in_number {
                out.push('N');
            }
            in_number = true;
        } else {
            out.push(c);
            in_number = false;
        }
    }
    out
}

/// The phases, most memory first, and how many more there are.
fn phases(
    symbols: &Symbols,
    lifetimes: &Lifetimes,
    window: Window,
    runs: &[PhaseRun],
    curve: &Curve,
) -> (Vec<Phase>, usize) {
    struct Sum {
        name: String,
        runs: Vec<(EventIdx, EventIdx)>,
        peak: u64,
        change: i128,
    }
    let mut sums: Vec<Sum> = Vec::new();
    let mut places: FxHashMap<String, usize> = FxHashMap::default();
    for (run, &(start, end, peak)) in runs.iter().zip(&curve.runs) {
        if run.from < window.from || run.to > window.to {
            continue;
        }
        let name = phase_name(symbols.str(run.name));
        let i = *places.entry(name.clone()).or_insert_with(|| {
            sums.push(Sum { name, runs: Vec::new(), peak: 0, change: 0 });
            sums.len() - 1
        });
        let sum = &mut sums[i];
        sum.runs.push((run.from, run.to));
        sum.peak = sum.peak.max(peak);
        sum.change += i128::from(end) - i128::from(start);
    }
    sums.sort_by(|a, b| b.peak.cmp(&a.peak).then_with(|| a.name.cmp(&b.name)));
    let more = sums.len().saturating_sub(MAX_PHASES);
    sums.truncate(MAX_PHASES);
    let survivors: Vec<(EventIdx, u64)> = lifetimes
        .born()
        .filter(|&id| lifetimes.is_held_at(id, window.to))
        .filter_map(|id| Some((lifetimes.birth(id)?, lifetimes.size(id).0)))
        .collect();
    let phases = sums
        .into_iter()
        .map(|sum| {
            // Runs are sorted by start; those of one name may nest, so an earlier one may still be open.
            let survived = survivors
                .iter()
                .filter(|(birth, _)| {
                    let at = sum.runs.partition_point(|(from, _)| from <= birth);
                    let near = sum.runs.get(at.saturating_sub(8)..at).unwrap_or(&[]);
                    near.iter().any(|(_, to)| birth < to)
                })
                .map(|(_, size)| size)
                .fold(0, |sum: u64, size| sum.saturating_add(*size));
            let count = sum.runs.len() as u64;
            Phase {
                name: sum.name,
                count,
                peak_allocated: sum.peak,
                mean_change: i64::try_from(sum.change / i128::from(count.max(1))).unwrap_or(i64::MAX),
                survived,
            }
        })
        .collect();
    (phases, more)
}

/// What the recording cannot show.
fn caveats(
    recording: &Recording,
    device: &DeviceRecording,
    lifetimes: &Lifetimes,
    history: History,
) -> Vec<String> {
    let mut out = Vec::new();
    let mut say = |text: &str| out.push(text.to_owned());
    let agreement = lifetimes.agreement();
    if device.events.is_empty() {
        say(
            "there is no history of events, so nothing can be said about when memory was allocated; record it with \
             `torch.cuda.memory._record_memory_history()`",
        );
        return out;
    }
    if recording.truncated {
        say("the last file was cut short or damaged: its newest events may be missing");
    }
    if recording.has_gap {
        say("events are missing between the snapshots, so only the newest part is used as a trace");
    }
    if !agreement.records_frees && history.n_allocs > 0 && agreement.only_trace == 0 {
        say("nothing was given back in the recording: it may show no more than how the program starts");
    } else if !agreement.records_frees && history.n_allocs > 0 {
        say("no frees were recorded: what is gone at the end was freed at an unknown time");
    }
    // Blocks that were allocated while recording have a stack; if their allocation is gone, the ring has lost it.
    let lost =
        lifetimes.all().take(lifetimes.n_before()).filter(|&id| lifetimes.stack(id).has_frames()).count();
    if lost > 0 {
        say(
            "the history is a ring that has lost its oldest events: what was born before them has no known time of birth; \
             record with a larger `max_entries`",
        );
    } else if agreement.unmatched_frees > 0 && history.n_allocs > 0 {
        say("the trace begins after the program did: blocks from before have no known time of birth");
    }
    if agreement.only_trace > 0 && agreement.records_frees {
        say(
            "some blocks that the trace leaves held are not in the last state; other threads may have freed them meanwhile",
        );
    }
    if history.n_steps == 0 && history.n_allocs > 0 {
        say("no steps were found: nothing recurs often enough to tell what grows");
    }
    let has_stacks = device.events.stacks().iter().any(|s| s.has_frames());
    if !has_stacks && history.n_allocs > 0 {
        say(
            "no stacks were recorded, so allocations are told apart by size only; record with `context=\"all\"` to see lines \
             of code",
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_count_up_are_taken_out_of_names() {
        assert_eq!(phase_name("ProfilerStep#17"), "ProfilerStep#N");
        assert_eq!(phase_name("## micro 1 ##"), "## micro N ##");
        assert_eq!(phase_name("Optimizer.step#AdamW.step"), "Optimizer.step#AdamW.step");
    }

    #[test]
    fn fluctuation_is_half_the_spread_of_the_steady_part() {
        let warm_up_then_steady = [0, 50, 100, 110, 90, 100, 100, 100, 100, 100];
        assert_eq!(fluctuation(&warm_up_then_steady, 10), Some(10.0));
        assert_eq!(fluctuation(&warm_up_then_steady, 3), None);
    }
}
