//! The one-word answer and the sentence that goes with it.

use vramscope_model::Bytes;

use crate::analysis::{DeviceAnalysis, Finding, Severity, Verdict};
use crate::quantity::grouped;
use crate::recorded::Recorded;
use crate::whatif::ReasonKind;

/// How much there is to go by on one device.
#[derive(Clone, Copy, Debug)]
pub(super) struct History {
    /// Allocations in the window.
    pub(super) n_allocs: usize,
    /// Whole steps.
    pub(super) n_steps: usize,
    /// Snapshots.
    pub(super) n_states: usize,
    /// Whether frees were recorded.
    pub(super) records_frees: bool,
    /// Whether there is a trace at all, in the window or not.
    pub(super) has_trace: bool,
}

/// Fewer steps do not tell a leak from a start.
const ENOUGH_STEPS: usize = 5;
/// With no steps found, fewer allocations do not tell anything.
const ENOUGH_ALLOCS: usize = 1000;
/// Without a trace, fewer snapshots do not.
const ENOUGH_STATES: usize = 3;

/// How much there is to go by in all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    enough: bool,
    has_trace: bool,
    n_allocs: usize,
    most_steps: usize,
    most_states: usize,
}

impl Evidence {
    pub(super) fn add(&mut self, history: History) {
        let by_trace = (history.n_steps >= ENOUGH_STEPS
            || (history.n_steps == 0 && history.n_allocs >= ENOUGH_ALLOCS))
            // Without frees only the state tells what is held.
            && (history.records_frees || history.n_states > 0);
        let by_states = !history.has_trace && history.n_states >= ENOUGH_STATES;
        self.enough |= by_trace || by_states;
        self.has_trace |= history.has_trace;
        self.n_allocs += history.n_allocs;
        self.most_steps = self.most_steps.max(history.n_steps);
        self.most_states = self.most_states.max(history.n_states);
    }
}

/// The most serious of the findings' kinds; without one, clean if there was enough to go by, and nothing rises that no finding explains.
pub(super) fn of(findings: &[Finding], devices: &[DeviceAnalysis], evidence: Evidence) -> Verdict {
    let order =
        [Verdict::Leak, Verdict::Growing, Verdict::ReferenceCycle, Verdict::Fragmentation, Verdict::Oom];
    let named = |f: &Finding| order.into_iter().find(|v| f.kind == v.name());
    let failures: Vec<&Finding> = findings.iter().filter(|f| f.kind == Verdict::Oom.name()).collect();
    // A failed request that nothing else here explains is what the run died of, whatever else is true.
    if failures.iter().any(|f| f.related.is_empty()) {
        return Verdict::Oom;
    }
    // Else it died of what explains it.
    let causes = failures.iter().flat_map(|f| &f.related).filter_map(|&i| findings.get(i));
    let worst = causes.filter_map(named).min().or_else(|| findings.iter().filter_map(named).min());
    let is_clean = evidence.enough && unexplained_rise(devices).is_none();
    worst.unwrap_or(if is_clean { Verdict::Clean } else { Verdict::InsufficientData })
}

/// Parts of a run, after its first fifth, whose medians are compared.
const PARTS: usize = 4;
/// Steps in each part; fewer are no trend.
const STEPS_IN_PART: usize = 4;
/// Less than that from the first part to the last is no matter.
const MIN_RISE: u64 = 64 << 20;

/// Held bytes in the first and the last part of a run whose memory rises all the way, on the first device of which that is so. Such a run
/// is not called clean, whatever no finding says: what is kept may be of another size, or from another line, each time.
fn unexplained_rise(devices: &[DeviceAnalysis]) -> Option<(u64, u64)> {
    devices.iter().filter(|it| it.steps.count > 0).find_map(|device| {
        let all = &device.allocated_at_steps;
        let steady = all.get(all.len() / 5..)?;
        let length = steady.len() / PARTS;
        if length < STEPS_IN_PART {
            return None;
        }
        let medians: Vec<u64> = steady.chunks_exact(length).take(PARTS).filter_map(median).collect();
        let (first, last) = (*medians.first()?, *medians.last()?);
        let rise = last.checked_sub(first)?;
        // A start that takes long slows down; what is kept does not.
        let least = rise / (2 * PARTS as u64);
        let rises_all_along = medians
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if b.checked_sub(*a).is_some_and(|it| it > least)));
        (rise >= MIN_RISE.max(first / 5) && rises_all_along).then_some((first, last))
    })
}

fn median(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

/// The answer as a sentence, with what it says of the device that the user told of.
pub(super) fn headline(
    verdict: Verdict,
    findings: &[Finding],
    devices: &[DeviceAnalysis],
    evidence: Evidence,
    recorded: &[Recorded],
) -> String {
    if verdict == Verdict::InsufficientData && devices.is_empty() && !recorded.is_empty() {
        return without_snapshots(recorded);
    }
    let answer = answer(verdict, findings, devices, evidence);
    let lack = findings.iter().find(|f| f.code == OVER_CAPACITY && f.kind == Verdict::Oom.name());
    if let Some(lack) = lack.filter(|_| verdict != Verdict::Oom) {
        return format!("{answer}; {}", lack.title);
    }
    let checks = || devices.iter().map(|d| d.capacity.as_ref());
    match checks().flatten().next() {
        Some(check)
            if verdict == Verdict::Clean && checks().all(|c| c.is_some_and(|c| c.fits == Some(true))) =>
        {
            format!("{answer}, and {} are enough", check.told)
        }
        _ => answer,
    }
}

/// What the recorder's other files can tell, and what they cannot.
fn without_snapshots(recorded: &[Recorded]) -> String {
    let steps = recorded.iter().map(Recorded::steps).max().unwrap_or(0);
    let has_counters =
        recorded.iter().flat_map(|r| &r.curves).any(|c| c.peak_allocated.is_some_and(|bytes| bytes > 0));
    let has_holders = recorded.iter().any(|r| !r.holders.is_empty());
    let counted = format!("{} {}", grouped(steps), if steps == 1 { "step" } else { "steps" });
    match (steps, has_counters, has_holders) {
        (_, true, _) => format!(
            "no snapshot was taken in {counted}, and the counters alone cannot tell a leak from a start; record with \
             `vramscope run --always`"
        ),
        (_, false, true) => {
            "no memory of a GPU was recorded; who holds the memory is known, but not whether it grows"
                .to_owned()
        }
        (0, false, false) => {
            "the program ended before anything was recorded; call `vramscope.step()` in its loop".to_owned()
        }
        (_, false, false) => format!("no memory of a GPU was in use in {counted}; run it on a GPU"),
    }
}

/// The code of findings about what a smaller device lacks.
const OVER_CAPACITY: &str = "over-capacity";

fn answer(verdict: Verdict, findings: &[Finding], devices: &[DeviceAnalysis], evidence: Evidence) -> String {
    let finding = findings.iter().find(|f| f.kind == verdict.name());
    let Some(f) = finding else {
        return match verdict {
            Verdict::Clean => {
                let steps = devices.iter().map(|d| d.steps.count).max().unwrap_or(0);
                match steps {
                    0 => "nothing keeps growing in this recording".to_owned(),
                    n => format!("nothing keeps growing over {n} steps"),
                }
            }
            _ if !evidence.has_trace && evidence.most_states == 0 => "there is nothing to go by".to_owned(),
            _ if !evidence.has_trace => format!(
                "{} without history cannot tell a leak from a start; take at least {ENOUGH_STATES}, or record history",
                if evidence.most_states == 1 {
                    "one snapshot".to_owned()
                } else {
                    format!("{} snapshots", evidence.most_states)
                }
            ),
            _ if let Some((first, last)) = unexplained_rise(devices) => format!(
                "memory at step ends rises all along, from {} to {}, but nothing that is kept recurs at a line: record more steps",
                Bytes(first),
                Bytes(last)
            ),
            _ if evidence.n_allocs == 0 => {
                "there is no allocation in what was looked at, so nothing to go by".to_owned()
            }
            _ if evidence.most_steps >= ENOUGH_STEPS => {
                "neither frees nor what is held at the end were recorded, so nothing tells what was kept"
                    .to_owned()
            }
            _ if evidence.most_steps > 0 => format!(
                "{} steps are too few to tell a leak from a start; record at least 20",
                evidence.most_steps
            ),
            _ => {
                "the recording is too short to tell a leak from a start; record at least 20 steps".to_owned()
            }
        };
    };
    let place = place(f);
    let holder = holder(f);
    let so_far = Bytes(f.bytes);
    let rate = f.bytes_per_step.filter(|r| *r >= 1.0).map(|r| Bytes(r.round() as u64));
    match verdict {
        Verdict::Leak => match rate {
            Some(rate) => format!("{rate} are kept every step{place}{holder}; {so_far} so far"),
            None if f.code == "block-sizes" => {
                let size = f.block_size.map_or(String::new(), |b| format!(" of {}", Bytes(b)));
                format!("ever more blocks{size} are held{holder}; {so_far} more by the last snapshot")
            }
            None => format!("memory is kept{place} and never given back{holder}; {so_far} so far"),
        },
        Verdict::Growing => match rate {
            Some(rate) => {
                format!(
                    "memory{place} grows by {rate} a step{holder}, perhaps without bound; {so_far} so far"
                )
            }
            None => format!("memory{place} grows{holder}, perhaps without bound; {so_far} so far"),
        },
        Verdict::ReferenceCycle => {
            format!("up to {so_far} allocated{place} wait for Python's garbage collector at a time")
        }
        Verdict::Fragmentation => fragmentation(f, findings),
        Verdict::Oom => out_of_memory(f),
        Verdict::Clean | Verdict::InsufficientData => String::new(),
    }
}

/// What fragmentation came to, and what cures it.
fn fragmentation(f: &Finding, findings: &[Finding]) -> String {
    let settings = f.settings.as_ref();
    let cure = settings.and_then(|s| Some((s, s.recommended.as_deref()?, s.peak_reserved?)));
    if let Some((settings, conf, _)) = cure.filter(|(s, ..)| s.reason_kind == ReasonKind::Fits)
        && let Some(failed) =
            findings.iter().find(|o| o.code == "out-of-memory" && o.device == f.device && o.rank == f.rank)
    {
        let (what, it) = if settings.rescued > 1 {
            (format!("{} requests", grouped(settings.rescued)), "the first")
        } else {
            (format!("a request for {}{}", Bytes(failed.bytes), place(failed)), "it")
        };
        return format!(
            "{what} failed although there was enough for {it}, in pieces too small; {} would have served {it}",
            named(conf)
        );
    }
    let cure = cure.map(|(_, conf, peak)| format!("; {} would have peaked at {}", named(conf), Bytes(peak)));
    format!(
        "{} more were reserved than the program ever held, in pieces too small{}",
        Bytes(f.bytes),
        cure.unwrap_or_default()
    )
}

/// What a request failed of, or would fail of.
fn out_of_memory(f: &Finding) -> String {
    let (request, place) = (Bytes(f.bytes), place(f));
    if f.code == OVER_CAPACITY {
        let settings = f.settings.as_ref().filter(|settings| settings.reason_kind == ReasonKind::Fits);
        let cure = settings.and_then(|settings| settings.recommended.as_deref());
        let cure = cure.map_or_else(String::new, |conf| format!("; with {} it would fit", named(conf)));
        let at = if f.bytes > 0 { format!(", at a request for {request}{place}") } else { String::new() };
        return format!("{}{at}{cure}", f.title);
    }
    let live = f.shortfall.as_ref().is_some_and(|s| s.of_live_memory);
    let cure = f.settings.as_ref().filter(|s| s.reason_kind == ReasonKind::Fits);
    if let Some(conf) = cure.and_then(|settings| settings.recommended.as_deref()).filter(|_| live) {
        return format!(
            "a request for {request}{place} failed with nearly all in use that could be had; {} would have served it, but hardly more",
            named(conf)
        );
    }
    let would_fit = f.shortfall.as_ref().is_some_and(|s| {
        !s.no_setting_helps && s.limit.at_least.is_some_and(|at_least| s.at_least <= at_least)
    });
    let too_much = f.settings.as_ref().is_some_and(|s| s.reason_kind == ReasonKind::TooMuchAtOnce);
    if would_fit && !too_much {
        format!("a request for {request}{place} failed; without gaps between blocks there was room for it")
    } else {
        format!(
            "a request for {request}{place} failed, and nothing else is wrong: too much is needed at once"
        )
    }
}

/// A setting in a sentence.
fn named(conf: &str) -> String {
    if conf.is_empty() { "the default setting".to_owned() } else { format!("`{conf}`") }
}

fn place(f: &Finding) -> String {
    f.site.as_ref().map_or_else(String::new, |site| format!(" at {}:{}", tail(&site.file), site.line))
}

/// The object that holds it, if it is known.
fn holder(f: &Finding) -> String {
    f.holder.as_ref().map_or_else(String::new, |found| format!(", held by `{}`", found.holder.path))
}

fn tail(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// How much more than its peers a rank must hold.
const SKEW: f64 = 1.25;
/// Less than this is no skew worth a word.
const SKEW_BYTES: u64 = 64 << 20;

/// A rank that holds much more than the others do.
pub(super) fn rank_skew(devices: &[DeviceAnalysis], findings: &[Finding]) -> Option<Finding> {
    let ranked: Vec<&DeviceAnalysis> = devices.iter().filter(|d| d.rank.is_some()).collect();
    let mut held: Vec<u64> = ranked.iter().map(|d| d.balance.allocated).collect();
    held.sort_unstable();
    if held.len() < 2 {
        return None;
    }
    // Of two the smaller is the norm.
    let typical = *held.get((held.len() - 1) / 2)?;
    let most = ranked.iter().max_by_key(|d| d.balance.allocated)?;
    let allocated = most.balance.allocated;
    if (allocated as f64) < SKEW * typical as f64 || allocated - typical < SKEW_BYTES {
        return None;
    }
    let (rank, device) = (most.rank, most.device);
    let is_explained = findings.iter().any(|f| f.rank == rank && f.severity != Severity::Info);
    Some(Finding {
        code: "rank-skew".to_owned(),
        kind: "rank-skew".to_owned(),
        severity: Severity::Info,
        confidence: 0.9,
        title: format!(
            "rank {} holds {}, the typical rank {}",
            rank.unwrap_or_default(),
            Bytes(allocated),
            Bytes(typical)
        ),
        device,
        rank,
        site: None,
        label: String::new(),
        stack: Vec::new(),
        bytes: allocated - typical,
        blocks: 0,
        block_size: None,
        bytes_per_step: None,
        blocks_per_step: None,
        steps_to_oom: None,
        first_us: None,
        last_us: None,
        evidence: vec![format!("allocated bytes at the end of {} ranks were compared", held.len())],
        advice: vec![if is_explained {
            "see this rank's other findings".to_owned()
        } else {
            "compare it with another rank: `vramscope diff` on a snapshot of each".to_owned()
        }],
        companions: Vec::new(),
        holder: None,
        pattern: None,
        related: Vec::new(),
        shortage: None,
        shortfall: None,
        fragmentation: None,
        settings: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Options;
    use crate::analyze;
    use std::fmt::Write as _;
    use vramscope_model::{Symbols, script};

    /// A program of 60 steps, with what it keeps in each, and what of the steps before it gives back.
    fn check(kept: impl Fn(usize) -> Option<u64>, freed: impl Fn(usize) -> Option<usize>, want: Verdict) {
        let mut text = String::from("old weights 4MiB\n");
        for i in 0..60 {
            writeln!(text, "alloc batch{i} 1MiB @train.py:9:<module>").unwrap();
            writeln!(text, "alloc out{i} 1MiB @train.py:10:<module>").unwrap();
            if let Some(size) = kept(i) {
                writeln!(text, "alloc kept{i} {size} @gen_{i}.py:1:<module>").unwrap();
            }
            if let Some(j) = freed(i) {
                writeln!(text, "free kept{j} @train.py:11:<module>").unwrap();
            }
            writeln!(text, "free out{i} @train.py:12:<module>").unwrap();
            writeln!(text, "free batch{i} @train.py:12:<module>").unwrap();
        }
        let mut symbols = Symbols::default();
        let recording = script::recording(&mut symbols, &text).unwrap();
        let analysis = analyze(&[(recording, Vec::new())], &symbols, &Options::default());
        assert_eq!(analysis.verdict, want, "{}", analysis.headline);
        assert_eq!(
            analysis.headline.contains("rises all along"),
            want == Verdict::InsufficientData,
            "{}",
            analysis.headline
        );
    }

    #[test]
    fn what_rises_all_along_is_not_called_clean_though_no_line_explains_it() {
        let another_size = |i: usize| Some((3 << 20) + 4096 * i as u64);
        check(another_size, |_| None, Verdict::InsufficientData);
        // A few KiB are no matter.
        check(|i| Some(512 + 512 * i as u64), |_| None, Verdict::Clean);
        // Given back after a while.
        check(another_size, |i| i.checked_sub(8), Verdict::Clean);
        // A start that takes a third of the run.
        check(|i| another_size(i).filter(|_| i < 20), |_| None, Verdict::Clean);
    }
}
