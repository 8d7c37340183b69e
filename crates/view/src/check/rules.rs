//! The rules, as they are shown.

use vramscope_lint as lint;

use super::{Applicability, Severity};

/// A pattern that is looked for.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its code: `LK` and three digits.
    pub code: &'static str,
    /// Its name, in kebab-case.
    pub name: &'static str,
    /// What it finds, in one line.
    pub summary: &'static str,
    /// The worst that it reports.
    pub severity: Severity,
    /// Whether it runs without being selected.
    pub default: bool,
    /// The best fix that it offers.
    pub fix: Option<Applicability>,
    /// The libraries whose users it concerns, as their makers write them.
    pub frameworks: Vec<&'static str>,
    /// All that there is to know of it, as Markdown.
    pub page: String,
}

/// Every rule, in the order of codes.
pub fn rules() -> Vec<Rule> {
    lint::rules().map(Rule::from).collect()
}

impl From<&'static lint::Rule> for Rule {
    fn from(rule: &'static lint::Rule) -> Self {
        Self {
            code: rule.code,
            name: rule.name,
            summary: rule.summary(),
            severity: rule.severity,
            default: rule.default,
            fix: rule.fix,
            frameworks: rule.frameworks.iter().map(|framework| framework.name()).collect(),
            page: rule.page(),
        }
    }
}
