//! The pattern in the source code that a finding comes from: what the linter found, put together with what was recorded.
//!
//! A pattern is named only where something ties it to the memory: the object that holds it, the line that allocated it, or
//! a function that was running then. That it is in the same file says nothing.

mod find;
mod harmless;
mod holder_name;

use vramscope_lint::{Applicability, Checked, Diagnostic, Severity, Source, fix_found};

use crate::analysis::{Analysis, Finding};
use crate::check::{self, shown};
use crate::holders::Class;

pub use find::{Match, matches, script_of};
pub use harmless::{Harmless, harmless};

/// A source file, what was found in it, and the files of a recording that it is.
#[derive(Clone, Debug)]
pub struct SourceFile<'a> {
    /// The file.
    pub source: &'a Source,
    /// What was found in it.
    pub checked: &'a Checked,
    /// The paths under which it was recorded.
    pub recorded: Vec<String>,
}

/// The pattern that a finding comes from.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// What was found, and where.
    pub found: check::Diagnostic,
    /// What keeps the memory, as the source spells it.
    pub target: Option<String>,
    /// What ties it to the finding.
    pub matched_by: MatchedBy,
    /// Whether the fix would not stop the growth: it lets go of the autograd graph only, and nothing tells that it is graphs that pile
    /// up, rather than data.
    pub leaves_data: bool,
    /// The file before and after the fix, where it can be made.
    pub change: Option<Change>,
}

/// What ties a pattern to a finding, the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchedBy {
    /// It fills the object that holds the memory.
    Holder,
    /// It is at the line that allocates.
    Site,
    /// It is in a function that was running when the memory was allocated.
    Stack,
}

impl MatchedBy {
    /// The word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holder => "holder",
            Self::Site => "site",
            Self::Stack => "stack",
        }
    }
}

/// The text of a file before and after an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Before.
    pub before: String,
    /// After.
    pub after: String,
}

/// A convicted leak, and what `fix` did about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Treated {
    /// The finding's place in its list.
    pub finding: usize,
    /// What was done.
    pub outcome: Outcome,
}

/// What was done about a leak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its pattern was fixed.
    Made,
    /// Its pattern has a fix that may change what the program does, and nobody asked for such.
    NeedsLeave,
    /// Its fix lets go of graphs, and what is kept is, or may be, the data itself.
    LeavesData,
    /// Its pattern has no fix, or one that needs a human's judgement.
    ByHand,
    /// No pattern is tied to it; what the linter warns of in the files that the recording names, as `file:line code name`.
    NoPattern(Vec<String>),
    /// The fix could not be made, and why.
    Failed(String),
}

/// The findings that are proven to be leaks, so that their patterns may be edited: of growing memory those whose holder the
/// pattern fills.
pub fn convicted(analysis: &Analysis) -> impl Iterator<Item = usize> + '_ {
    let is_convicted = |finding: &Finding| match finding.kind.as_str() {
        "leak" => true,
        "growing" => finding.pattern.as_ref().is_some_and(|it| it.matched_by == MatchedBy::Holder),
        _ => false,
    };
    let findings = analysis.findings.iter().enumerate();
    findings.filter(move |(_, finding)| is_convicted(finding)).map(|(index, _)| index)
}

/// Names the patterns in the findings that they were found for.
pub fn attach(analysis: &mut Analysis, files: &[SourceFile<'_>], matches: &[Match]) {
    for found in matches {
        let Some(finding) = analysis.findings.get_mut(found.finding) else { continue };
        let Some((file, diagnostic)) = found.in_files(files) else { continue };
        let leaves_data =
            diagnostic.fix.as_ref().is_some_and(|it| it.leaves_data) && !is_of_graphs(finding, diagnostic);
        // A holder or a line that is named needs no more looking for.
        if found.by != MatchedBy::Stack {
            let asks = |advice: &String| vramscope_detect::WITHOUT_HOLDER.contains(&advice.as_str());
            finding.advice.retain(|advice| !asks(advice));
        }
        finding.pattern = Some(Pattern {
            found: shown(file.source, diagnostic),
            target: diagnostic.target.clone(),
            matched_by: found.by,
            leaves_data,
            change: change(file.source, diagnostic),
        });
    }
}

/// Whether what piles up are graphs: the holder says so, or the recording does by blocks of many operations, or the source by
/// a graph that nothing frees.
fn is_of_graphs(finding: &Finding, diagnostic: &Diagnostic) -> bool {
    match &finding.holder {
        Some(found) => found.holder.through.is_some() || found.holder.class == Class::Activations,
        None => {
            finding.advice.iter().any(|advice| advice == vramscope_detect::KEPT_GRAPH)
                || diagnostic.severity == Severity::Error
        }
    }
}

/// What the fix of a diagnostic does to its file; nothing where it cannot be made.
fn change(source: &Source, diagnostic: &Diagnostic) -> Option<Change> {
    diagnostic.fix.as_ref().filter(|fix| fix.applicability >= Applicability::Unsafe)?;
    let fixed = fix_found(vec![source.clone()], vec![vec![diagnostic.clone()]], Applicability::Unsafe);
    let after = fixed.first().filter(|fixed| !fixed.applied.is_empty())?;
    Some(Change { before: as_stored(source), after: as_stored(&after.source) })
}

/// A file as it lies on the disk, which is what a patch must fit; where it is not UTF-8, as people read it.
pub fn as_stored(source: &Source) -> String {
    let stored = source.encode().ok().and_then(|bytes| String::from_utf8(bytes).ok());
    stored.unwrap_or_else(|| source.text().to_owned())
}
