//! Detectors' findings in the user's words.

use vramscope_detect as detect;
use vramscope_model::{Recording, StackId, Symbols};

use super::explained;
use crate::analysis::{Finding, Severity, SiteBytes, Verdict};
use crate::place;
use crate::whatif::ReasonKind;

/// A detector's finding, for showing.
pub(super) fn present(
    finding: detect::Finding,
    recording: &Recording,
    device: u32,
    most_allocated: u64,
    symbols: &Symbols,
) -> Finding {
    let severity = match finding.kind {
        // What would take a hundred times as long to matter is no emergency.
        detect::Kind::Leak if finding.bytes.0.saturating_mul(100) < most_allocated => Severity::Warning,
        detect::Kind::Leak | detect::Kind::Oom => Severity::Error,
        detect::Kind::Growing | detect::Kind::ReferenceCycle | detect::Kind::Fragmentation => {
            Severity::Warning
        }
        detect::Kind::PendingFree
        | detect::Kind::RankSkew
        | detect::Kind::ForeignMemory
        | detect::Kind::Note => Severity::Info,
    };
    let companions = finding
        .companions
        .iter()
        .map(|c| SiteBytes {
            site: c.site.map(|s| place::location(symbols, s)),
            label: label(symbols, c.stack),
            bytes: c.bytes.0,
            blocks: c.blocks,
        })
        .collect();
    // Where only sizes are known, the size is what the finding is called by.
    let place_label = match finding.block_size {
        None if finding.stack == StackId::ABSENT && finding.blocks == 0 => String::new(),
        Some(size) if finding.code == "block-sizes" && !finding.stack.has_frames() => {
            format!("{size} blocks")
        }
        _ => label(symbols, finding.stack),
    };
    Finding {
        code: finding.code.to_owned(),
        kind: finding.kind.name().to_owned(),
        severity,
        confidence: finding.confidence,
        title: finding.title,
        device,
        rank: recording.rank,
        site: finding.site.map(|s| place::location(symbols, s)),
        label: place_label,
        stack: place::stack(symbols, finding.stack),
        bytes: finding.bytes.0,
        blocks: finding.blocks,
        block_size: finding.block_size.map(|b| b.0),
        bytes_per_step: finding.bytes_per_step,
        blocks_per_step: finding.blocks_per_step,
        steps_to_oom: finding.steps_to_oom,
        first_us: finding.first.map(|t| t.0),
        last_us: finding.last.map(|t| t.0),
        evidence: finding.evidence,
        advice: finding.advice,
        companions,
        holder: None,
        pattern: None,
        related: Vec::new(),
        shortage: finding.shortage.map(|b| b.0),
        shortfall: finding.shortfall.as_deref().map(|s| explained::shortfall(s, symbols)),
        fragmentation: finding.fragmentation.as_deref().map(|f| explained::fragmentation(f, symbols)),
        settings: finding.settings.as_deref().map(explained::settings_tried),
    }
}

fn label(symbols: &Symbols, stack: StackId) -> String {
    place::label(symbols, stack)
}

/// The order of kinds, most serious first.
fn rank(kind: &str) -> usize {
    const ORDER: [&str; 9] = [
        "leak",
        "growing",
        "reference-cycle",
        "fragmentation",
        "oom",
        "pending-free",
        "rank-skew",
        "foreign-memory",
        "note",
    ];
    ORDER.iter().position(|k| *k == kind).unwrap_or(ORDER.len())
}

/// What a run died of first, then most serious first, then by bytes a step, then by bytes. Then says which belong together: a
/// request that failed with what filled the memory of the same device.
pub(super) fn sort(findings: &mut Vec<Finding>) {
    let is_failure = |f: &Finding| f.kind == Verdict::Oom.name();
    let any_of = |failures: &[&Finding], f: &Finding| failures.iter().any(|failure| explains(f, failure));
    let failures: Vec<&Finding> = findings.iter().filter(|f| is_failure(f)).collect();
    let mattered: Vec<bool> = findings.iter().map(|f| is_failure(f) || any_of(&failures, f)).collect();
    let mut sorted: Vec<(bool, Finding)> =
        mattered.into_iter().zip(std::mem::take(findings)).map(|(mattered, f)| (!mattered, f)).collect();
    sorted.sort_by(|(a_aside, a), (b_aside, b)| {
        let rate = |f: &Finding| f.bytes_per_step.unwrap_or(0.0);
        a_aside
            .cmp(b_aside)
            .then(rank(&a.kind).cmp(&rank(&b.kind)))
            .then(rate(b).total_cmp(&rate(a)))
            .then(b.bytes.cmp(&a.bytes))
            .then(a.rank.cmp(&b.rank))
            .then(a.device.cmp(&b.device))
    });
    findings.extend(sorted.into_iter().map(|(_, f)| f));
    let related: Vec<Vec<usize>> = findings
        .iter()
        .map(|of| (0..findings.len()).filter(|&i| findings.get(i).is_some_and(|f| explains(f, of))).collect())
        .collect();
    for (finding, related) in findings.iter_mut().zip(related) {
        finding.related = related;
    }
}

/// Whether a finding explains a failed request, or that a rank holds more than the others.
fn explains(cause: &Finding, of: &Finding) -> bool {
    let is_to_explain = of.kind == Verdict::Oom.name() || of.kind == "rank-skew";
    // What a setting would have served failed because of fragmentation, however many bytes that is.
    let is_proven = cause.kind == Verdict::Fragmentation.name()
        && cause.settings.as_ref().is_some_and(|settings| settings.reason_kind == ReasonKind::Fits);
    is_to_explain
        && (cause.rank, cause.device) == (of.rank, of.device)
        && rank(&cause.kind) < rank(Verdict::Oom.name())
        && (is_proven || of.shortage.is_none_or(|missing| cause.bytes >= missing))
}
