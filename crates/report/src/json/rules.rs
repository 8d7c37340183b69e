//! `vramscope.rules/1`.

use schemars::JsonSchema;
use serde::Serialize;

use vramscope_view::check as view;

use super::check::{Applicability, Severity};
use super::list;

/// The name of the schema.
pub const SCHEMA: &str = "vramscope.rules/1";

/// The rules of `vramscope check`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Rules")]
pub struct Document {
    /// `vramscope.rules/1`.
    pub schema: &'static str,
    /// The version of vramscope that wrote this.
    pub version: &'static str,
    /// Those that were asked for, in the order of codes.
    pub rules: Vec<Rule>,
}

/// A pattern that is looked for.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Rule {
    /// Its code, which never changes.
    pub code: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it finds, in one line.
    pub summary: &'static str,
    /// The worst that it reports.
    pub severity: Severity,
    /// Whether it runs without being selected.
    pub default: bool,
    /// The best fix that it offers.
    pub fix: Option<Applicability>,
    /// The libraries whose users it concerns.
    pub frameworks: Vec<&'static str>,
    /// All that there is to know of it, as Markdown.
    pub page: String,
}

impl From<&view::Rule> for Rule {
    fn from(from: &view::Rule) -> Self {
        Self {
            code: from.code,
            name: from.name,
            summary: from.summary,
            severity: from.severity.into(),
            default: from.default,
            fix: from.fix.map(Into::into),
            frameworks: from.frameworks.clone(),
            page: from.page.clone(),
        }
    }
}

/// The document as text.
pub fn render(rules: &[view::Rule]) -> String {
    super::text(&Document { schema: SCHEMA, version: super::VERSION, rules: list(rules) })
}
