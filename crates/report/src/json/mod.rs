//! The answers as JSON: a contract that only grows.
//!
//! The types here are the contract; the view models are free to change. Bytes are whole numbers, times are µs since
//! 1970 UTC, and what is not known is `null`. The JSON Schemas are generated from the types.

pub mod analysis;
pub mod check;
pub mod diff;
pub mod explained;
pub mod holders;
pub mod inspect;
pub mod pattern;
pub mod recorded;
pub mod rules;
pub mod whatif;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use vramscope_view::analysis as view;

/// The version of the program that writes the documents.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A line of code.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Location {
    /// The file as recorded.
    pub file: String,
    /// The line from 1; 0 where unknown.
    pub line: u32,
    /// The function.
    pub function: String,
}

impl From<&view::Location> for Location {
    fn from(from: &view::Location) -> Self {
        Self { file: from.file.clone(), line: from.line, function: from.function.clone() }
    }
}

/// One frame of a stack.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Frame {
    /// Where.
    #[serde(flatten)]
    pub location: Location,
    /// Whether it is the user's own code, rather than a library's, generated or native code.
    pub user: bool,
}

impl From<&view::Frame> for Frame {
    fn from(from: &view::Frame) -> Self {
        Self { location: (&from.location).into(), user: from.is_user }
    }
}

/// Bytes of one place in the program.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SiteBytes {
    /// The place; null where no Python frame was recorded.
    pub site: Option<Location>,
    /// What to call it where there is no place.
    pub label: String,
    /// Bytes: as asked for in `balance.sites`, as blocks (asked for, rounded up) elsewhere.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u64,
}

impl From<&view::SiteBytes> for SiteBytes {
    fn from(from: &view::SiteBytes) -> Self {
        Self {
            site: from.site.as_ref().map(Into::into),
            label: from.label.clone(),
            bytes: from.bytes,
            blocks: from.blocks,
        }
    }
}

/// A list of views as a list of their JSON forms.
fn list<'a, V, J: From<&'a V>>(views: &'a [V]) -> Vec<J> {
    views.iter().map(J::from).collect()
}

/// Settings by name.
fn settings(pairs: &[(String, String)]) -> BTreeMap<String, String> {
    pairs.iter().cloned().collect()
}

/// The text of a document, indented, with a newline at its end.
fn text(document: &impl Serialize) -> String {
    // The types hold nothing that JSON cannot: keys are texts, and floats that are no number become null.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}

/// The JSON Schema of each document by the name of its schema.
pub fn schemas() -> BTreeMap<&'static str, serde_json::Value> {
    BTreeMap::from([
        (analysis::SCHEMA, schemars::schema_for!(analysis::Document).to_value()),
        (check::SCHEMA, schemars::schema_for!(check::Document).to_value()),
        (diff::SCHEMA, schemars::schema_for!(diff::Document).to_value()),
        (holders::SCHEMA, schemars::schema_for!(holders::Document).to_value()),
        (inspect::SCHEMA, schemars::schema_for!(inspect::Document).to_value()),
        (rules::SCHEMA, schemars::schema_for!(rules::Document).to_value()),
        (whatif::SCHEMA, schemars::schema_for!(whatif::Document).to_value()),
    ])
}
