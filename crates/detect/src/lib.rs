//! From lifetimes and curves to findings.
//!
//! A detector looks at one device of one recording and says what it concludes, with its evidence. Detectors do not know
//! each other, nor formats, colours or units of display. Adding one is a file and a line in [`DETECTORS`].

mod advice;
mod block_sizes;
mod collected_in_bulk;
mod context;
mod failed_fits;
mod finding;
mod fragmentation;
mod groups;
mod growing_blocks;
mod growth;
mod late_frees;
mod names;
mod out_of_memory;
mod over_capacity;
pub mod recommendation;
pub mod rerun;
mod room;
mod rounds;
pub mod settings;
mod settings_in_words;
mod shortfall;
mod survivors_by_birth;
mod tried;
mod turnover;

pub use advice::{KEPT_GRAPH, WITHOUT_HOLDER};
pub use context::Context;
pub use finding::{Companion, Finding, Kind};
pub use fragmentation::Fragmentation;
pub use names::given;
pub use over_capacity::Fit;
pub use room::{Refusal, Room, RoomSource, largest_request};
pub use shortfall::{EmptyCache, Holder, Others, Shortfall};
pub use tried::TriedSettings;
pub use turnover::{Turnover, turnover};

/// A detector: its name, what it is for, and the check.
pub struct Detector {
    /// The name that findings carry as their code, and that a user may ask about.
    pub code: &'static str,
    /// What it finds, in one line.
    pub summary: &'static str,
    /// The kinds of its findings.
    pub finds: &'static [Kind],
    /// How it decides and what to do, as Markdown with the headings `What it finds`, `Why it matters`,
    /// `How it decides`, `What to do`.
    pub doc: &'static str,
    /// The check.
    pub check: fn(&Context<'_>) -> Vec<Finding>,
}

/// Every detector, by code.
pub const DETECTORS: &[Detector] = &[
    block_sizes::DETECTOR,
    collected_in_bulk::DETECTOR,
    failed_fits::DETECTOR,
    growing_blocks::DETECTOR,
    late_frees::DETECTOR,
    out_of_memory::DETECTOR,
    over_capacity::DETECTOR,
    survivors_by_birth::DETECTOR,
];

/// Runs every detector on one device. Findings come most serious first, then by bytes a step, then by bytes.
pub fn detect(context: &Context<'_>) -> Vec<Finding> {
    detect_only(context, |_| true)
}

/// The same for some kinds of findings: what cannot find them is not run.
pub fn detect_only(context: &Context<'_>, wanted: impl Fn(Kind) -> bool) -> Vec<Finding> {
    let able = DETECTORS.iter().filter(|d| d.finds.iter().any(|&kind| wanted(kind)));
    let mut findings: Vec<Finding> = able.flat_map(|d| (d.check)(context)).collect();
    findings.retain(|f| wanted(f.kind));
    findings.sort_by(|a, b| {
        let rate = |f: &Finding| f.bytes_per_step.unwrap_or(0.0);
        a.kind.cmp(&b.kind).then(rate(b).total_cmp(&rate(a))).then(b.bytes.cmp(&a.bytes))
    });
    findings
}
