//! `check` as workflow commands of GitHub Actions, which shows them beside the lines of a change.

use vramscope_view::check::{Check, Severity};

use crate::text::check::spelled;

/// One command a line.
pub fn render(check: &Check) -> String {
    let mut text = String::new();
    for found in &check.diagnostics {
        let command = match found.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        };
        let mut place = format!("file={}", property(&found.file));
        // Lines of a cell are not those of the notebook's file.
        if found.start.cell.is_none() {
            place.push_str(&format!(",line={}", found.start.line));
            // Columns are only understood within one line.
            if found.start.line == found.end.line {
                place.push_str(&format!(",col={}", found.start.column));
            }
            place.push_str(&format!(",endLine={}", found.end.line));
            if found.start.line == found.end.line {
                place.push_str(&format!(",endColumn={}", found.end.column));
            }
        }
        let title = property(&format!("vramscope ({})", found.code));
        let mut lines = vec![format!(
            "{}: {} {}: {}",
            spelled(&found.file, Some(found.start)),
            found.code,
            found.name,
            found.message
        )];
        lines.extend(found.evidence.iter().map(|reason| format!("because {}", reason.text)));
        lines.extend(
            found.fix.iter().map(|fix| format!("fix ({}): {}", fix.applicability.name(), fix.message)),
        );
        lines.extend(found.advice.iter().map(|advice| format!("hint: {advice}")));
        text.push_str(&format!("::{command} title={title},{place}::{}\n", data(&lines.join("\n"))));
    }
    for problem in &check.problems {
        let command = if problem.is_fatal { "error" } else { "warning" };
        let line =
            problem.place.filter(|place| place.cell.is_none()).map(|place| format!(",line={}", place.line));
        text.push_str(&format!(
            "::{command} title=vramscope,file={}{}::{}\n",
            property(&problem.file),
            line.unwrap_or_default(),
            data(&format!("{}: {}", spelled(&problem.file, problem.place), problem.message))
        ));
    }
    text
}

/// A message as it is written in a command.
fn data(text: &str) -> String {
    // What would move the cursor or turn the text round in a log is none of the message.
    let is_plain = |c: char| {
        matches!(c, '\r' | '\n' | '\t')
            || !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let text: String =
        text.chars().map(|c| if is_plain(c) { c } else { char::REPLACEMENT_CHARACTER }).collect();
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property's value as it is written in a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
