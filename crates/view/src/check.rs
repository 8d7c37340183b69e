//! What `check` says: patterns in Python source that keep memory, each with its place, its reasons and its fix.

mod build;
mod change;
mod lines;
mod rules;

pub use vramscope_lint::{Applicability, Severity};

pub(crate) use build::diagnostic as shown;
pub use build::{CheckInput, check};
pub use rules::{Rule, rules};

/// What was found in some files.
#[derive(Clone, Debug, Default)]
pub struct Check {
    /// The files that were read, by their paths as they are shown.
    pub files: Vec<String>,
    /// What was found, by file and place.
    pub diagnostics: Vec<Diagnostic>,
    /// What kept files or parts of them from being understood; suppressions that suppress nothing.
    pub problems: Vec<Problem>,
    /// How many diagnostics comments suppressed.
    pub suppressed: u64,
    /// How many there are of each severity.
    pub counts: Counts,
    /// How many of them have a fix.
    pub fixable: Fixable,
    /// How many each rule found, most first.
    pub statistics: Vec<RuleCount>,
    /// What was fixed before, by file.
    pub fixed: Vec<FixedFile>,
}

/// How many diagnostics there are of each severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Of the worst.
    pub errors: u64,
    /// Of the middle.
    pub warnings: u64,
    /// Of the mildest.
    pub infos: u64,
}

/// How many diagnostics have a fix that can be applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixable {
    /// With `--fix`.
    pub safe: u64,
    /// With `--fix --unsafe-fixes` only.
    pub risky: u64,
}

/// What one rule found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCount {
    /// The rule's code.
    pub code: &'static str,
    /// The rule's name.
    pub name: &'static str,
    /// How many there are.
    pub count: u64,
    /// How many of them have a fix.
    pub fixable: Fixable,
}

/// What was fixed in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedFile {
    /// Its path as it is shown.
    pub file: String,
    /// The codes of the rules, and how many fixes of each were applied.
    pub rules: Vec<(&'static str, u64)>,
}

/// A place in a file, as people count: all one-based.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The cell, in notebooks; lines are counted from its beginning then.
    pub cell: Option<u32>,
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// One thing found at one place.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The rule's code.
    pub code: &'static str,
    /// The rule's name.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The file's path as it is shown.
    pub file: String,
    /// Where it begins.
    pub start: Place,
    /// The place behind its last character.
    pub end: Place,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What convinced the rule.
    pub evidence: Vec<Evidence>,
    /// What to do, in one sentence.
    pub advice: Option<String>,
    /// The edit that does it.
    pub fix: Option<Fix>,
    /// The lines around it, each with its number. Of a long range only the first ones are there.
    pub excerpt: Vec<(u32, String)>,
}

/// One reason for a conclusion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The reason, in words.
    pub text: String,
    /// Where it is to be seen, in the same file: from here up to there.
    pub range: Option<(Place, Place)>,
}

/// Edits that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// How far it can be trusted.
    pub applicability: Applicability,
    /// What it does, as an imperative.
    pub message: String,
    /// The edits, in order.
    pub edits: Vec<Edit>,
    /// The same as lines before and after.
    pub change: Vec<Hunk>,
}

/// A piece of text that takes the place of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Where what is replaced begins.
    pub start: Place,
    /// The place behind its last character.
    pub end: Place,
    /// What takes its place.
    pub content: String,
}

/// Lines that a fix changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The number of the first line.
    pub line: u32,
    /// The lines as they are.
    pub removed: Vec<String>,
    /// The lines as they would be.
    pub added: Vec<String>,
}

/// Something about a file that is no pattern of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file's path as it is shown.
    pub file: String,
    /// Where, if it has a place.
    pub place: Option<Place>,
    /// What, a sentence in lower case.
    pub message: String,
    /// Whether the file could not be checked at all because of it.
    pub is_fatal: bool,
}

impl Check {
    /// Adds a file that could not be read or decoded.
    pub fn add_unreadable(&mut self, file: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Problem {
            file: file.into(),
            place: None,
            message: message.into(),
            is_fatal: true,
        });
    }
}
