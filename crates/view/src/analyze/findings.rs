//! Detectors' findings in the user's words.

use vramscope_detect as detect;
use vramscope_model::{Recording, StackId, Symbols};

use super::explained;
use crate::analysis::{Finding, Severity, SiteBytes};
use crate::place;

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
        related: Vec::new(),
        shortage: finding.shortage.map(|b| b.0),
        shortfall: finding.shortfall.as_deref().map(|s| explained::shortfall(s, symbols)),
        fragmentation: finding.fragmentation.as_deref().map(|f| explained::fragmentation(f, symbols)),
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

/// Most serious first, then by bytes a step, then by bytes. Then says which belong together: a request that failed with
/// what filled the memory of the same device.
pub(super) fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        let rate = |f: &Finding| f.bytes_per_step.unwrap_or(0.0);
        rank(&a.kind)
            .cmp(&rank(&b.kind))
            .then(rate(b).total_cmp(&rate(a)))
            .then(b.bytes.cmp(&a.bytes))
            .then(a.rank.cmp(&b.rank))
            .then(a.device.cmp(&b.device))
    });
    let places: Vec<(usize, u64, Option<u32>, u32)> =
        findings.iter().map(|f| (rank(&f.kind), f.bytes, f.rank, f.device)).collect();
    for (i, finding) in findings.iter_mut().enumerate() {
        let own = rank(&finding.kind);
        let causes: Vec<usize> = places
            .iter()
            .enumerate()
            .filter(|&(j, &(other, bytes, rank_of, device))| {
                j != i
                    && rank_of == finding.rank
                    && device == finding.device
                    && other < own.min(rank("oom"))
                    && finding.shortage.is_none_or(|missing| bytes >= missing)
            })
            .map(|(j, _)| j)
            .collect();
        if own == rank("oom") || own == rank("rank-skew") {
            finding.related = causes;
        }
    }
}
