//! What was found, as editors show it.

use lsp_types::{
    CodeDescription, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag,
    NumberOrString, Range, Uri,
};
use serde_json::json;
use vramscope_lint as lint;
use vramscope_lint::{Checked, Problem, Severity};

use super::client::Client;
use super::open_file::OpenFile;

/// Where the rules' pages are.
const PAGES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/rules");
const SOURCE: &str = "vramscope";

/// All that is shown of a file, each with the document that it is in.
pub(super) fn all(file: &OpenFile, checked: &Checked, client: &Client) -> Vec<(Uri, Diagnostic)> {
    let found = checked.diagnostics.iter().filter_map(|found| diagnostic(file, found, client));
    let problems = checked.problems.iter().filter_map(|problem| of_problem(file, problem, client));
    let trouble = file.trouble.as_ref().and_then(|why| {
        let (uri, _) = file.documents().next()?;
        Some((uri.clone(), information(Range::default(), format!("not checked: {why}"))))
    });
    found.chain(problems).chain(trouble).collect()
}

/// One thing that was found, and the document that it is in.
pub(super) fn diagnostic(
    file: &OpenFile,
    found: &lint::Diagnostic,
    client: &Client,
) -> Option<(Uri, Diagnostic)> {
    let place = file.location(found.range.into(), client.encoding)?;
    let mut message = found.message.clone();
    let mut related = Vec::new();
    for reason in &found.evidence {
        let location = reason.range.and_then(|range| file.location(range.into(), client.encoding));
        match location.filter(|_| client.related_information) {
            Some(location) => {
                related.push(DiagnosticRelatedInformation { location, message: reason.text.clone() });
            }
            None => message.extend(["\nbecause ", &reason.text]),
        }
    }
    if let Some(advice) = &found.advice {
        message.extend(["\nhint: ", advice]);
    }
    let page = format!("{PAGES}/{}.md", found.rule.code).parse().ok();
    let diagnostic = Diagnostic {
        range: place.range,
        severity: Some(match found.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
            Severity::Info => DiagnosticSeverity::INFORMATION,
        }),
        code: Some(NumberOrString::String(found.rule.code.to_owned())),
        code_description: page.filter(|_| client.code_description).map(|href| CodeDescription { href }),
        source: Some(SOURCE.to_owned()),
        message,
        related_information: (!related.is_empty()).then_some(related),
        tags: None,
        data: Some(json!({
            "name": found.rule.name,
            "fix": found.fix.as_ref().map(|fix| json!({
                "applicability": fix.applicability.name(),
                "message": fix.message,
            })),
        })),
    };
    Some((place.uri, diagnostic))
}

/// Problems without syntax errors, which other servers show, and which come and go while one types.
fn of_problem(file: &OpenFile, problem: &Problem, client: &Client) -> Option<(Uri, Diagnostic)> {
    if problem.message.starts_with("syntax error: ") {
        return None;
    }
    let Some(range) = problem.range else {
        let (uri, _) = file.documents().next()?;
        return Some((uri.clone(), information(Range::default(), problem.message.clone())));
    };
    let place = file.location(range.into(), client.encoding)?;
    let mut shown = information(place.range, problem.message.clone());
    let is_needless = problem.message.ends_with("suppresses nothing");
    shown.tags = (is_needless && client.tags).then(|| vec![DiagnosticTag::UNNECESSARY]);
    Some((place.uri, shown))
}

fn information(range: Range, message: String) -> Diagnostic {
    Diagnostic {
        range,
        severity: Some(DiagnosticSeverity::INFORMATION),
        source: Some(SOURCE.to_owned()),
        message,
        ..Diagnostic::default()
    }
}
