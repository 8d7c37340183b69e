//! `vramscope.check/1`.

use schemars::JsonSchema;
use serde::Serialize;

use vramscope_view::check as view;

use super::list;

/// The name of the schema.
pub const SCHEMA: &str = "vramscope.check/1";

/// What `vramscope check` found.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Check")]
pub struct Document {
    /// `vramscope.check/1`.
    pub schema: &'static str,
    /// The version of vramscope that wrote this.
    pub version: &'static str,
    /// What was found, by file and place.
    pub diagnostics: Vec<Diagnostic>,
    /// How many files were checked.
    pub files: u64,
    /// How many diagnostics comments suppressed.
    pub suppressed: u64,
    /// What kept files or parts of them from being understood; suppressions that suppress nothing.
    pub problems: Vec<Problem>,
    /// How many diagnostics there are of each severity.
    pub counts: Counts,
    /// How many each rule found, most first.
    pub statistics: Vec<RuleCount>,
    /// What `--fix` fixed; this is no longer among the diagnostics.
    pub fixed: Vec<FixedFile>,
}

/// How many diagnostics there are of each severity.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Counts {
    /// Errors.
    pub error: u64,
    /// Warnings.
    pub warning: u64,
    /// Information.
    pub info: u64,
}

/// One thing found at one place. Lines and columns are from 1; columns count characters (code points).
#[derive(Debug, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// The rule's code, such as `LK102`.
    pub code: &'static str,
    /// The rule's name, such as `append-attached-tensor`.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The file's path, as it was given or found.
    pub file: String,
    /// The cell from 1, in notebooks; lines are counted from its beginning then.
    pub cell: Option<u32>,
    /// The line in which it begins.
    pub line: u32,
    /// The column of its first character.
    pub column: u32,
    /// The line in which it ends.
    pub end_line: u32,
    /// The column behind its last character.
    pub end_column: u32,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What convinced the rule.
    pub evidence: Vec<Evidence>,
    /// What to do.
    pub advice: Option<String>,
    /// The edit that does it.
    pub fix: Option<Fix>,
}

/// How bad what was found is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Keeps whole graphs or data without bound.
    Error,
    /// Keeps data for as long as the program runs, or does so unless something unseen prevents it.
    Warning,
    /// Costs little, or raises the peak only.
    Info,
}

/// One reason for a conclusion.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Evidence {
    /// The reason, in words.
    pub text: String,
    /// The cell in which it is to be seen, in notebooks.
    pub cell: Option<u32>,
    /// The line in which it is to be seen, if it has a place.
    pub line: Option<u32>,
    /// The column of that place.
    pub column: Option<u32>,
}

/// Edits that belong together: all of them are made or none.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Fix {
    /// How far it can be trusted.
    pub applicability: Applicability,
    /// What it does, as an imperative.
    pub message: String,
    /// The edits, in order and without overlap.
    pub edits: Vec<Edit>,
}

/// How far a fix can be trusted.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Applicability {
    /// Changes nothing but what is kept in memory: `--fix` applies it.
    Safe,
    /// May change what the program does: `--fix --unsafe-fixes` applies it.
    Unsafe,
    /// Is only shown.
    Display,
}

/// A piece of text that takes the place of another.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Edit {
    /// The cell, in notebooks.
    pub cell: Option<u32>,
    /// The line in which what is replaced begins.
    pub line: u32,
    /// The column of its first character.
    pub column: u32,
    /// The line in which it ends.
    pub end_line: u32,
    /// The column behind its last character.
    pub end_column: u32,
    /// What takes its place.
    pub content: String,
}

/// Something about a file that is no pattern of memory.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Problem {
    /// The file's path.
    pub file: String,
    /// The cell, in notebooks.
    pub cell: Option<u32>,
    /// The line, if it has a place.
    pub line: Option<u32>,
    /// The column.
    pub column: Option<u32>,
    /// What.
    pub message: String,
    /// Whether the file could not be checked at all because of it.
    pub fatal: bool,
}

/// What one rule found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RuleCount {
    /// The rule's code.
    pub code: &'static str,
    /// The rule's name.
    pub name: &'static str,
    /// How many there are.
    pub count: u64,
    /// How many of them `--fix` fixes.
    pub fixable: u64,
    /// How many more `--fix --unsafe-fixes` fixes.
    pub unsafe_fixable: u64,
}

/// What was fixed in one file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FixedFile {
    /// The file's path.
    pub file: String,
    /// By rule.
    pub rules: Vec<Fixed>,
}

/// What was fixed of one rule in one file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Fixed {
    /// The rule's code.
    pub code: &'static str,
    /// How many fixes were applied.
    pub count: u64,
}

impl From<view::Severity> for Severity {
    fn from(from: view::Severity) -> Self {
        match from {
            view::Severity::Error => Self::Error,
            view::Severity::Warning => Self::Warning,
            view::Severity::Info => Self::Info,
        }
    }
}

impl From<view::Applicability> for Applicability {
    fn from(from: view::Applicability) -> Self {
        match from {
            view::Applicability::Safe => Self::Safe,
            view::Applicability::Unsafe => Self::Unsafe,
            view::Applicability::Display => Self::Display,
        }
    }
}

impl From<&view::Evidence> for Evidence {
    fn from(from: &view::Evidence) -> Self {
        let start = from.range.map(|(start, _)| start);
        Self {
            text: from.text.clone(),
            cell: start.and_then(|place| place.cell),
            line: start.map(|place| place.line),
            column: start.map(|place| place.column),
        }
    }
}

impl From<&view::Edit> for Edit {
    fn from(from: &view::Edit) -> Self {
        Self {
            cell: from.start.cell,
            line: from.start.line,
            column: from.start.column,
            end_line: from.end.line,
            end_column: from.end.column,
            content: from.content.clone(),
        }
    }
}

impl From<&view::Fix> for Fix {
    fn from(from: &view::Fix) -> Self {
        Self {
            applicability: from.applicability.into(),
            message: from.message.clone(),
            edits: list(&from.edits),
        }
    }
}

impl From<&view::Diagnostic> for Diagnostic {
    fn from(from: &view::Diagnostic) -> Self {
        Self {
            code: from.code,
            name: from.name,
            severity: from.severity.into(),
            file: from.file.clone(),
            cell: from.start.cell,
            line: from.start.line,
            column: from.start.column,
            end_line: from.end.line,
            end_column: from.end.column,
            message: from.message.clone(),
            evidence: list(&from.evidence),
            advice: from.advice.clone(),
            fix: from.fix.as_ref().map(Into::into),
        }
    }
}

impl From<&view::Problem> for Problem {
    fn from(from: &view::Problem) -> Self {
        Self {
            file: from.file.clone(),
            cell: from.place.and_then(|place| place.cell),
            line: from.place.map(|place| place.line),
            column: from.place.map(|place| place.column),
            message: from.message.clone(),
            fatal: from.is_fatal,
        }
    }
}

impl From<&view::RuleCount> for RuleCount {
    fn from(from: &view::RuleCount) -> Self {
        Self {
            code: from.code,
            name: from.name,
            count: from.count,
            fixable: from.fixable.safe,
            unsafe_fixable: from.fixable.risky,
        }
    }
}

impl From<&view::FixedFile> for FixedFile {
    fn from(from: &view::FixedFile) -> Self {
        let rules = from.rules.iter().map(|&(code, count)| Fixed { code, count });
        Self { file: from.file.clone(), rules: rules.collect() }
    }
}

/// The document as text.
pub fn render(check: &view::Check) -> String {
    super::text(&Document {
        schema: SCHEMA,
        version: super::VERSION,
        diagnostics: list(&check.diagnostics),
        files: check.files.len() as u64,
        suppressed: check.suppressed,
        problems: list(&check.problems),
        counts: Counts {
            error: check.counts.errors,
            warning: check.counts.warnings,
            info: check.counts.infos,
        },
        statistics: list(&check.statistics),
        fixed: list(&check.fixed),
    })
}
