//! `check` as SARIF 2.1.0, which code scanning and editors read.
//!
//! Places in notebooks are those of cells, which SARIF cannot say: there a result has no region but a logical location,
//! and its fix is left out.

mod uri;

use serde_json::{Map, Value, json};

use vramscope_view::check::{Applicability, Check, Diagnostic, Fix, Place, Problem, Rule, Severity};

use crate::text::check::spelled;
use uri::artifact;

/// Where the rules' pages are.
const PAGES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/rules");

/// The log of one run. `rules` are those that ran.
pub fn render(check: &Check, rules: &[Rule]) -> String {
    let is_complete = !check.problems.iter().any(|problem| problem.is_fatal);
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "vramscope",
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(rule).collect::<Vec<Value>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": is_complete,
                "toolExecutionNotifications": check.problems.iter().map(notification).collect::<Vec<Value>>(),
            }],
            "results": check.diagnostics.iter().map(|found| result(found, rules)).collect::<Vec<Value>>(),
        }],
    });
    let mut text = serde_json::to_string_pretty(&log).unwrap_or_default();
    text.push('\n');
    text
}

fn rule(rule: &Rule) -> Value {
    // The first line is the title, the second says what `properties` say.
    let help = rule.page.trim();
    json!({
        "id": rule.code,
        "name": rule.name,
        "shortDescription": { "text": rule.summary },
        "fullDescription": { "text": rule.summary },
        "help": { "text": help, "markdown": help },
        "helpUri": format!("{PAGES}/{}.md", rule.code),
        "defaultConfiguration": { "level": level(rule.severity), "enabled": rule.default },
        "properties": { "tags": tags(rule), "problem.severity": problem_severity(rule.severity) },
    })
}

fn tags(rule: &Rule) -> Vec<&str> {
    std::iter::once("memory").chain(rule.frameworks.iter().copied()).collect()
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// The word that GitHub knows.
fn problem_severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "recommendation",
    }
}

fn result(found: &Diagnostic, rules: &[Rule]) -> Value {
    let mut message = found.message.clone();
    for reason in &found.evidence {
        message.push_str(&format!("\nbecause {}", reason.text));
    }
    message.extend(found.advice.iter().map(|advice| format!("\nhint: {advice}")));
    let mut result = json!({
        "ruleId": found.code,
        "level": level(found.severity),
        "message": { "text": message },
        "locations": [location(&found.file, Some((found.start, found.end)))],
    });
    let Some(fields) = result.as_object_mut() else { return result };
    if let Some(index) = rules.iter().position(|rule| rule.code == found.code) {
        fields.insert("ruleIndex".to_owned(), index.into());
    }
    let placed = found.evidence.iter().filter_map(|reason| Some((&reason.text, reason.range?)));
    let related: Vec<Value> = placed
        .enumerate()
        .map(|(id, (text, range))| {
            let mut related = location(&found.file, Some(range));
            insert(&mut related, "id", id.into());
            insert(&mut related, "message", json!({ "text": text }));
            related
        })
        .collect();
    if !related.is_empty() {
        fields.insert("relatedLocations".to_owned(), related.into());
    }
    if let Some(fix) = found.fix.as_ref().and_then(|fix| fixed(&found.file, fix)) {
        fields.insert("fixes".to_owned(), json!([fix]));
    }
    result
}

/// The fix, where it can be said in lines of the file.
fn fixed(file: &str, fix: &Fix) -> Option<Value> {
    if fix.edits.is_empty() || fix.edits.iter().any(|edit| edit.start.cell.is_some()) {
        return None;
    }
    let replacements: Vec<Value> = fix
        .edits
        .iter()
        .map(|edit| {
            json!({
                "deletedRegion": region(edit.start, edit.end),
                "insertedContent": { "text": edit.content },
            })
        })
        .collect();
    let trust = match fix.applicability {
        Applicability::Safe => "",
        Applicability::Unsafe => " (may change what the program does)",
        Applicability::Display => " (to be completed by hand)",
    };
    Some(json!({
        "description": { "text": format!("{}{trust}", fix.message) },
        "artifactChanges": [{ "artifactLocation": artifact(file), "replacements": replacements }],
    }))
}

fn notification(problem: &Problem) -> Value {
    json!({
        "level": if problem.is_fatal { "error" } else { "warning" },
        "message": { "text": problem.message },
        "locations": [location(&problem.file, problem.place.map(|place| (place, place)))],
    })
}

fn location(file: &str, range: Option<(Place, Place)>) -> Value {
    let mut physical = Map::from_iter([("artifactLocation".to_owned(), artifact(file))]);
    let mut logical = None;
    match range {
        Some((start @ Place { cell: Some(_), .. }, _)) => {
            logical = Some(json!([{ "fullyQualifiedName": spelled(file, Some(start)) }]));
        }
        Some((start, end)) => {
            physical.insert("region".to_owned(), region(start, end));
        }
        None => {}
    }
    let mut location = json!({ "physicalLocation": physical });
    if let Some(logical) = logical {
        insert(&mut location, "logicalLocations", logical);
    }
    location
}

fn region(start: Place, end: Place) -> Value {
    json!({
        "startLine": start.line,
        "startColumn": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    })
}

fn insert(object: &mut Value, name: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}
