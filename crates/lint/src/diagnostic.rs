//! What a rule has to say about one place in one file.

use crate::{
    fix::Fix,
    rule::Rule,
    syntax::{Ranged, TextRange},
};

/// How bad what was found is, by what it costs when the program runs (measured, see the page of each rule).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Costs little or only raises the peak: host nodes of a graph, a second copy for a moment.
    Info,
    /// Keeps data on the device for as long as the program runs, or does so unless something unseen prevents it.
    Warning,
    /// Keeps whole graphs or data without bound, proven by the source that was read.
    Error,
}

impl Severity {
    /// The word used on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing found at one place.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The rule that found it.
    pub rule: &'static Rule,
    /// How bad it is here: the same pattern can cost nothing or everything.
    pub severity: Severity,
    /// Where, in bytes of the text of its [`Source`](crate::Source).
    pub range: TextRange,
    /// What is wrong, one sentence in lower case without a full stop; names in backticks.
    pub message: String,
    /// What keeps the memory, as the source spells it: `losses`, `self.features`, `stats[name]`.
    pub target: Option<String>,
    /// What convinced the rule: sentences like `message`, each with its place if it has one.
    pub evidence: Vec<Evidence>,
    /// What to do, one sentence like `message`.
    pub advice: Option<String>,
    /// The edit that does it.
    pub fix: Option<Fix>,
}

/// One reason for a conclusion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The reason, in words.
    pub text: String,
    /// Where it is to be seen.
    pub range: Option<TextRange>,
}

impl Diagnostic {
    /// A diagnostic of `rule` at `place`, so far without evidence, advice or fix.
    pub(crate) fn new(
        rule: &'static Rule,
        severity: Severity,
        place: impl Ranged,
        message: impl Into<String>,
    ) -> Self {
        Self {
            rule,
            severity,
            range: place.range(),
            message: message.into(),
            target: None,
            evidence: Vec::new(),
            advice: None,
            fix: None,
        }
    }

    /// Names what keeps the memory, as the source spells it.
    pub(crate) fn kept_in(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    /// Adds a reason that has a place of its own.
    pub(crate) fn because_of(mut self, place: impl Ranged, text: impl Into<String>) -> Self {
        self.evidence.push(Evidence { text: text.into(), range: Some(place.range()) });
        self
    }

    /// Adds a reason without a place.
    pub(crate) fn because(mut self, text: impl Into<String>) -> Self {
        self.evidence.push(Evidence { text: text.into(), range: None });
        self
    }

    /// Says what to do.
    pub(crate) fn advise(mut self, text: impl Into<String>) -> Self {
        self.advice = Some(text.into());
        self
    }

    /// Adds the edit that does it.
    pub(crate) fn fixed_by(mut self, fix: impl Into<Option<Fix>>) -> Self {
        self.fix = fix.into();
        self
    }
}
