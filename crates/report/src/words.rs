//! Words that text and Markdown share.

use vramscope_view::analysis::{Analysis, DeviceAnalysis, Finding, Frame, Input, Peak, Severity, Verdict};

use vramscope_view::explained::{CapacityCheck, Fragmentation};
use vramscope_view::holders::{FoundHolder, Joined};
use vramscope_view::pattern::{Harmless, MatchedBy, Pattern};
use vramscope_view::recorded::{Curve, Recorded};

use crate::bytes::{counted, grouped, human, mean};
use crate::clock;
use crate::place::{Places, folded_note, innermost_library_function};
use crate::style::Role;

/// The verdict as a heading, and what it is.
pub(crate) fn verdict(verdict: Verdict) -> (&'static str, Role) {
    match verdict {
        Verdict::Leak => ("LEAK", Role::Bad),
        Verdict::Growing => ("GROWING", Role::Warn),
        Verdict::ReferenceCycle => ("REFERENCE CYCLE", Role::Warn),
        Verdict::Fragmentation => ("FRAGMENTATION", Role::Warn),
        Verdict::Oom => ("OUT OF MEMORY", Role::Bad),
        Verdict::Clean => ("CLEAN", Role::Good),
        Verdict::InsufficientData => ("CANNOT TELL", Role::Warn),
    }
}

/// A kind of finding in words.
pub(crate) fn kind(kind: &str) -> String {
    if kind == "oom" { "out of memory".to_owned() } else { kind.replace('-', " ") }
}

/// The role of a severity.
pub(crate) fn severity(severity: Severity) -> Role {
    match severity {
        Severity::Error => Role::Bad,
        Severity::Warning => Role::Warn,
        Severity::Info => Role::Dim,
    }
}

/// How sure, in percent. Nothing is ever quite sure.
pub(crate) fn confidence(confidence: f64) -> String {
    format!("confidence {:.0} %", (confidence * 100.0).clamp(0.0, 99.0))
}

/// A device of a rank: `cuda:0`, `rank 1 cuda:0`.
pub(crate) fn device(rank: Option<u32>, device: u32) -> String {
    rank.map_or_else(|| format!("cuda:{device}"), |rank| format!("rank {rank} cuda:{device}"))
}

/// Every place that an analysis may show.
pub(crate) fn places(analysis: &Analysis) -> Places {
    let sites = |sites: &[vramscope_view::analysis::SiteBytes]| {
        sites.iter().filter_map(|s| s.site.clone()).map(|site| site.file).collect::<Vec<_>>()
    };
    let mut files = Vec::new();
    let mut library = Vec::new();
    for device in &analysis.devices {
        files.extend(sites(&device.balance.sites));
        files.extend(device.peak.iter().flat_map(|peak| sites(&peak.sites)));
    }
    for finding in &analysis.findings {
        files.extend(sites(&finding.companions));
        if let Some(shortfall) = &finding.shortfall {
            files.extend(sites(&shortfall.sites));
        }
        let pins =
            finding.shortfall.iter().map(|s| &s.pins).chain(finding.fragmentation.iter().map(|f| &f.pins));
        files.extend(
            pins.flat_map(|pins| &pins.places).filter_map(|pin| pin.site.clone()).map(|site| site.file),
        );
        files.extend(finding.site.iter().map(|site| site.file.clone()));
        for frame in &finding.stack {
            if frame.is_user { &mut files } else { &mut library }.push(frame.location.file.clone());
        }
    }
    let user = files.iter().map(String::as_str);
    Places::of(user.clone().chain(library.iter().map(String::as_str))).with_user_files(user)
}

/// Whether the blocks of a finding are what holds its bytes, rather than the places of a shortage.
fn is_about_blocks(kind: &str) -> bool {
    matches!(kind, "leak" | "growing" | "reference-cycle" | "pending-free")
}

/// When the recording of a finding's rank began, µs since 1970 UTC.
fn start(analysis: &Analysis, finding: &Finding) -> Option<i64> {
    analysis.inputs.iter().filter(|input| input.rank == finding.rank).filter_map(|input| input.first_us).min()
}

/// The figures of a finding: how much, in how many blocks, how fast, since when, until when.
pub(crate) fn figures(analysis: &Analysis, finding: &Finding) -> Vec<String> {
    let mut figures = Vec::new();
    if finding.bytes > 0 {
        let blocks = counted(finding.blocks, "block");
        figures.push(match finding.block_size {
            _ if finding.blocks == 0 || !is_about_blocks(&finding.kind) => human(finding.bytes),
            Some(size) if finding.blocks > 1 => {
                format!("{} in {blocks} of {}", human(finding.bytes), human(size))
            }
            _ => format!("{} in {blocks}", human(finding.bytes)),
        });
    }
    if let Some(rate) = finding.bytes_per_step {
        let blocks =
            finding.blocks_per_step.map(|n| format!(" ({} a step)", per_step(n))).unwrap_or_default();
        figures.push(format!("{} a step{blocks}", mean(rate)));
    }
    if let (Some(start), Some(first), Some(last)) =
        (start(analysis, finding), finding.first_us, finding.last_us)
    {
        let (first, last) = (clock::span(first - start), clock::span(last - start));
        figures.push(if first == last {
            format!("allocated {first} into the recording")
        } else {
            format!("allocated from {first} to {last} into the recording")
        });
    }
    if let Some((low, high)) = finding.steps_to_oom {
        figures.push(if low == high {
            format!("device full in {}", counted(low, "more step"))
        } else {
            format!("device full in {} to {} more steps", grouped(low), grouped(high))
        });
    }
    figures
}

/// When requests failed to fit, in numbers.
pub(crate) fn fits(found: &Fragmentation) -> String {
    let last = found.failed_fits_over_time.iter().rposition(|&n| n > 0);
    let parts = found.failed_fits_over_time.len().max(1);
    match last {
        Some(last) if last + 1 < parts => {
            format!("{} in all, none after {} % of it", found.failed_fits, (last + 1) * 100 / parts)
        }
        _ => format!("{} in all, up to its end", found.failed_fits),
    }
}

/// Blocks a step, without a decimal where it is whole.
fn per_step(blocks: f64) -> String {
    if (blocks - blocks.round()).abs() < 0.05 && blocks >= 1.0 {
        counted(blocks.round() as u64, "block")
    } else {
        format!("{blocks:.1} blocks")
    }
}

/// The user's frames of a stack, innermost first, without the first `skip`; and how many others were folded. Where
/// none of the user's is left, only the library function that allocated is worth a word.
pub(crate) fn callers(stack: &[Frame], places: &Places, skip: usize) -> Vec<String> {
    let user: Vec<&Frame> = stack.iter().filter(|frame| frame.is_user).skip(skip).collect();
    if user.is_empty() {
        let function = innermost_library_function(stack);
        let note = folded_note(stack).filter(|_| function.is_some() || skip == 0);
        return function.into_iter().chain(note).collect();
    }
    let last = user.len().saturating_sub(1);
    let mut pieces: Vec<String> = user
        .iter()
        .enumerate()
        .map(|(i, frame)| places.full(&frame.location) + if i < last { " ←" } else { "" })
        .collect();
    pieces.extend(folded_note(stack));
    pieces
}

/// When the peak was: `in step 42 of 60`.
pub(crate) fn peak_moment(device: &DeviceAnalysis, peak: &Peak) -> String {
    let steps = device.steps.count;
    match peak.step {
        Some(step) if step <= steps => format!("in step {} of {}", grouped(step), grouped(steps)),
        Some(_) if steps > 0 => format!("after the last of {} whole steps", grouped(steps)),
        _ => format!("at event {} of {}", grouped(peak.event), grouped(device.events)),
    }
}

/// Whether the run fits a device; nothing where that cannot be told.
pub(crate) fn capacity(check: &CapacityCheck) -> Option<String> {
    let told = &check.told;
    let spare = check.peak_reserved.map_or(0, |peak| check.capacity.saturating_sub(peak));
    Some(match (check.fits?, check.give_backs) {
        (true, 0) if check.recorded_peak > check.capacity => {
            format!("{told} are enough, without what was left over from before the recording")
        }
        (true, 0) => format!(
            "{told} are enough, with {} to spare; the CUDA context and other processes need room beside them",
            human(spare)
        ),
        (true, 1) => {
            format!("{told} are enough, but only because unused memory goes back to the driver once")
        }
        (true, n) => {
            format!(
                "{told} are enough, but only because unused memory goes back to the driver {} times",
                grouped(n)
            )
        }
        (false, _) => format!("{told} are not enough"),
    })
}

/// What to call blocks that no event of the recording explains.
pub(crate) fn before(device: &DeviceAnalysis) -> &'static str {
    if device.events == 0 { "unknown: no history" } else { "older than the recording" }
}

/// What was read, in one line.
pub(crate) fn inputs(inputs: &[Input]) -> String {
    let mut ranks: Vec<u32> = inputs.iter().filter_map(|input| input.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let mut eras: Vec<&str> = inputs.iter().map(|input| input.torch.as_str()).collect();
    eras.sort_unstable();
    eras.dedup();
    let mut words = counted(inputs.len() as u64, "snapshot");
    match ranks.as_slice() {
        [] if inputs.len() > 1 => words.push_str(" of one process"),
        [] => {}
        [rank] => words.push_str(&format!(" of rank {rank}")),
        _ => words.push_str(&format!(" of {} ranks", ranks.len())),
    }
    if !eras.is_empty() {
        words.push_str(&format!(", written by torch {}", eras.join(" and ")));
    }
    words
}

/// The program and the machine: `python train.py`, `torch 2.11.0`, `NVIDIA H200`, `rank 0 of 2`.
pub(crate) fn environment(recorded: &Recorded) -> Vec<String> {
    let Some(environment) = &recorded.environment else { return Vec::new() };
    let mut facts = Vec::new();
    if !environment.command.is_empty() {
        facts.push(format!("`{}`", environment.command.join(" ")));
    }
    facts.extend(environment.torch.as_ref().map(|torch| format!("torch {torch}")));
    facts.extend(environment.cuda.as_ref().map(|cuda| format!("CUDA {cuda}")));
    let mut gpus = environment.gpus.clone();
    gpus.dedup();
    facts.extend(match (environment.gpus.len(), gpus.as_slice()) {
        (0, _) => None,
        (1, _) => gpus.pop(),
        (n, [gpu]) => Some(format!("{n} × {gpu}")),
        _ => Some(gpus.join(" and ")),
    });
    if let (Some(rank), Some(size)) =
        (recorded.rank.or(environment.rank), environment.world_size.filter(|&n| n > 1))
    {
        facts.push(format!("rank {rank} of {size}"));
    }
    facts.extend(environment.started_us.map(|us| format!("started {}", clock::moment(us))));
    facts
}

/// The steps that were counted: `900 steps (1 to 900) by the optimizer, over 3 min 05 s`.
pub(crate) fn recorded_steps(curve: &Curve) -> String {
    let mut text = match (curve.first_step, curve.last_step) {
        (Some(first), Some(last)) => {
            format!("{} ({} to {})", counted(curve.steps, "step"), grouped(first), grouped(last))
        }
        _ => counted(curve.readings, "reading"),
    };
    text.push_str(match curve.source.as_deref() {
        None => "",
        Some("explicit") => " by `vramscope.step()`",
        Some("optimizer") => " by the optimizer",
        Some("loader") => " by the data loader",
        Some("backward") => " by the backward pass",
        Some(_) => " by the recorder",
    });
    if let (Some(first), Some(last)) = (curve.first_us, curve.last_us) {
        text.push_str(&format!(", over {}", clock::span(last.saturating_sub(first))));
    }
    text
}

/// What a curve is of, and its values: allocated bytes; of a process without a device those in main memory.
pub(crate) fn recorded_values(curve: &Curve) -> Option<(&'static str, &[u64])> {
    let is_used = curve.allocated.iter().any(|&bytes| bytes > 0);
    let (what, values) =
        if is_used { ("allocated", &curve.allocated) } else { ("in main memory", &curve.rss) };
    (!values.is_empty()).then_some((what, values.as_slice()))
}

/// How the holder of a finding was found.
pub(crate) fn joined(found: &FoundHolder) -> String {
    let file = file_name(&found.file);
    match found.joined {
        Joined::ByAddress { found, held } if found == held => {
            format!("all {} found in {file}", counted(found, "block"))
        }
        Joined::ByAddress { found, held } => {
            format!("{} of {} found in {file}", grouped(held), counted(found, "block"))
        }
        Joined::BySize => format!("by the size of its blocks alone, in {file}"),
        Joined::ByPath => format!("in {file}"),
    }
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// The file names of the inputs: all of a few, the first and last of many.
pub(crate) fn input_names(inputs: &[Input]) -> String {
    let name = |input: &Input| {
        let tail = input.path.rsplit(['/', '\\']).next().unwrap_or(&input.path);
        input.rank.map_or_else(|| tail.to_owned(), |_| input.path.clone())
    };
    match inputs {
        [] => String::new(),
        [one] => one.path.clone(),
        [first, .., last] if inputs.len() > 3 => format!("{} … {}", name(first), name(last)),
        few => few.iter().map(name).collect::<Vec<_>>().join(", "),
    }
}

/// A percentage of fluctuation.
pub(crate) fn fluctuation(percent: f64) -> String {
    if percent < 0.005 { "constant".to_owned() } else { format!("±{percent:.2} %") }
}

/// What to do where a fix would not stop the growth.
pub(crate) const LEAVES_DATA: &str = "bound what is kept, or keep numbers (`.item()`) or copies on the CPU (`.detach().cpu()`): the data itself is kept, \
     and `.detach()` alone lets go of the graph only";

/// Why a pattern is harmless.
pub(crate) fn harmless(harmless: &Harmless) -> String {
    let line = &harmless.line;
    let from_first_step = match line.from_first_step {
        0 => String::new(),
        n => {
            format!(", but for {} ({}) of the first", counted(n, "block"), human(line.from_first_step_bytes))
        }
    };
    format!(
        "{} made by {} in {}, each given back by the end of the next step{}; at most {} held at once",
        counted(line.allocations, "allocation"),
        if harmless.found.start.line == line.place.line && harmless.found.end.line == line.place.line {
            "this line".to_owned()
        } else {
            format!("line {}", line.place.line)
        },
        counted(line.steps, "step"),
        from_first_step,
        human(line.most_held),
    )
}

/// What ties a pattern to its finding.
pub(crate) fn matched(pattern: &Pattern) -> String {
    match (pattern.matched_by, &pattern.target) {
        (MatchedBy::Holder, _) => "which fills the holder".to_owned(),
        (MatchedBy::Site, _) => "at the line that allocates".to_owned(),
        (MatchedBy::Stack, Some(target)) => {
            format!("in a function on the stack; that `{target}` is the holder was not recorded")
        }
        (MatchedBy::Stack, None) => "in a function on the stack".to_owned(),
    }
}
