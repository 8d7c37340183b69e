//! The pattern of a finding.

use schemars::JsonSchema;
use serde::Serialize;

use vramscope_view::pattern as view;

use super::Location;
use super::check::{Applicability, Severity};
use crate::style::Palette;
use crate::{unified, words};

/// The pattern in the source code that keeps the memory of a finding. Lines and columns are from 1; columns count characters (code
/// points).
#[derive(Debug, Serialize, JsonSchema)]
pub struct Pattern {
    /// The rule's code, such as `LK102`.
    pub code: &'static str,
    /// The rule's name, such as `append-attached-tensor`.
    pub name: &'static str,
    /// How bad it is, by the source alone.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The file on this machine, not as it was recorded.
    pub file: String,
    /// The line in which it begins.
    pub line: u32,
    /// The column of its first character.
    pub column: u32,
    /// The line in which it ends.
    pub end_line: u32,
    /// The column behind its last character.
    pub end_column: u32,
    /// What keeps the memory, as the source spells it.
    pub target: Option<String>,
    /// What ties it to the finding.
    pub matched_by: MatchedBy,
    /// What to do.
    pub advice: Option<String>,
    /// The edit that does it.
    pub fix: Option<Fix>,
}

/// What ties a pattern to a finding.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchedBy {
    /// It fills the object that holds the memory: `holder` of the finding.
    Holder,
    /// It is at the line that allocates: `site` of the finding.
    Site,
    /// It is in a function that was running when the memory was allocated: on the `stack` of the finding.
    Stack,
}

/// An edit that removes a pattern.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PatternFix")]
pub struct Fix {
    /// How far it can be trusted.
    pub applicability: Applicability,
    /// What it does, as an imperative.
    pub message: String,
    /// Whether it would not stop the growth: it lets go of the autograd graph only, and nothing tells that it is graphs that pile
    /// up here, rather than data.
    pub leaves_data: bool,
    /// The edit as a unified diff of the file; null where it is only shown, or could not be made.
    pub diff: Option<String>,
}

/// A pattern in the source code that the recordings show to keep no memory of a GPU: it ran once a step, and of all that the steps allocated,
/// at whatever line, nothing was held for longer than the step after. Lines and columns are from 1; columns count characters (code
/// points).
#[derive(Debug, Serialize, JsonSchema)]
pub struct HarmlessPattern {
    /// The rule's code, such as `LK102`.
    pub code: &'static str,
    /// The rule's name, such as `append-attached-tensor`.
    pub name: &'static str,
    /// How bad it is, by the source alone.
    pub severity: Severity,
    /// What the source alone says, in one sentence.
    pub message: String,
    /// The file on this machine, not as it was recorded.
    pub file: String,
    /// The line in which it begins.
    pub line: u32,
    /// The column of its first character.
    pub column: u32,
    /// The line in which it ends.
    pub end_line: u32,
    /// The column behind its last character.
    pub end_column: u32,
    /// What would keep memory, as the source spells it.
    pub target: Option<String>,
    /// The line that the figures are of, as it was recorded.
    pub recorded: Location,
    /// Allocations with that line anywhere on their stack, on all devices.
    pub allocations: u64,
    /// The steps in which there were any, one in flight included; of several devices the most.
    pub steps: u64,
    /// The most bytes, as blocks, that were held of them at once on a device.
    pub most_held_bytes: u64,
    /// Those of the first step, in which state is made that is meant to stay, that were held for longer than the step after.
    pub first_step_blocks: u64,
    /// Their bytes, as blocks.
    pub first_step_bytes: u64,
    /// Why it is harmless, in words.
    pub why: String,
}

impl From<&view::Harmless> for HarmlessPattern {
    fn from(from: &view::Harmless) -> Self {
        let (found, line) = (&from.found, &from.line);
        Self {
            code: found.code,
            name: found.name,
            severity: found.severity.into(),
            message: found.message.clone(),
            file: found.file.clone(),
            line: found.start.line,
            column: found.start.column,
            end_line: found.end.line,
            end_column: found.end.column,
            target: from.target.clone(),
            recorded: (&line.place).into(),
            allocations: line.allocations,
            steps: line.steps,
            most_held_bytes: line.most_held,
            first_step_blocks: line.from_first_step,
            first_step_bytes: line.from_first_step_bytes,
            why: words::harmless(from),
        }
    }
}

impl From<&view::Pattern> for Pattern {
    fn from(from: &view::Pattern) -> Self {
        let found = &from.found;
        let change = from.change.as_ref();
        let diff = || change.map(|it| unified::render(&found.file, &it.before, &it.after, Palette::Plain));
        Self {
            code: found.code,
            name: found.name,
            severity: found.severity.into(),
            message: found.message.clone(),
            file: found.file.clone(),
            line: found.start.line,
            column: found.start.column,
            end_line: found.end.line,
            end_column: found.end.column,
            target: from.target.clone(),
            matched_by: match from.matched_by {
                view::MatchedBy::Holder => MatchedBy::Holder,
                view::MatchedBy::Site => MatchedBy::Site,
                view::MatchedBy::Stack => MatchedBy::Stack,
            },
            advice: found.advice.clone(),
            fix: found.fix.as_ref().map(|fix| Fix {
                applicability: fix.applicability.into(),
                message: fix.message.clone(),
                leaves_data: from.leaves_data,
                diff: diff(),
            }),
        }
    }
}
