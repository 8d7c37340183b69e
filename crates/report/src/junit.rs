//! `check` as JUnit's XML, which servers that build and test understand: a suite each file, a case each diagnostic.

use std::collections::BTreeMap;

use vramscope_view::check::{Check, Diagnostic, Problem, Severity};

use crate::text::check::spelled;

/// The whole document.
pub fn render(check: &Check) -> String {
    let mut suites: BTreeMap<&str, Suite<'_>> =
        check.files.iter().map(|file| (file.as_str(), Suite::default())).collect();
    for found in &check.diagnostics {
        suites.entry(&found.file).or_default().found.push(found);
    }
    for problem in &check.problems {
        suites.entry(&problem.file).or_default().problems.push(problem);
    }
    let failures: usize = suites.values().map(Suite::failures).sum();
    let errors: usize = suites.values().map(Suite::errors).sum();
    let tests: usize = suites.values().map(Suite::tests).sum();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"vramscope\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">\n"
    );
    for (file, suite) in &suites {
        suite.write(file, &mut text);
    }
    text.push_str("</testsuites>\n");
    text
}

/// What is said of one file.
#[derive(Default)]
struct Suite<'a> {
    found: Vec<&'a Diagnostic>,
    problems: Vec<&'a Problem>,
}

impl Suite<'_> {
    /// Information alone fails no check, so it fails no test either.
    fn failures(&self) -> usize {
        self.found.iter().filter(|found| found.severity > Severity::Info).count()
    }

    fn errors(&self) -> usize {
        self.problems.iter().filter(|problem| problem.is_fatal).count()
    }

    /// A file of which nothing is said is a test that passed.
    fn tests(&self) -> usize {
        (self.found.len() + self.problems.len()).max(1)
    }

    fn write(&self, file: &str, text: &mut String) {
        let name = escaped(file);
        text.push_str(&format!(
            "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n",
            self.tests(),
            self.failures(),
            self.errors()
        ));
        if self.found.is_empty() && self.problems.is_empty() {
            text.push_str(&format!("    <testcase name=\"vramscope check\" classname=\"{name}\"/>\n"));
        }
        for found in &self.found {
            let case = escaped(&format!("{} {}", found.code, found.name));
            let (line, column) = (found.start.line, found.start.column);
            text.push_str(&format!(
                "    <testcase name=\"{case}\" classname=\"{name}\" file=\"{name}\" line=\"{line}\" column=\"{column}\">\n"
            ));
            let (message, body) = (escaped(&found.message), escaped(&body(found)));
            text.push_str(&if found.severity > Severity::Info {
                let severity = found.severity.name();
                format!("      <failure type=\"{severity}\" message=\"{message}\">{body}</failure>\n")
            } else {
                format!("      <system-out>{body}</system-out>\n")
            });
            text.push_str("    </testcase>\n");
        }
        for problem in &self.problems {
            let body = escaped(&format!("{}: {}", spelled(file, problem.place), problem.message));
            text.push_str(&format!("    <testcase name=\"problem\" classname=\"{name}\">\n"));
            text.push_str(&if problem.is_fatal {
                format!(
                    "      <error type=\"problem\" message=\"{}\">{body}</error>\n",
                    escaped(&problem.message)
                )
            } else {
                format!("      <system-out>{body}</system-out>\n")
            });
            text.push_str("    </testcase>\n");
        }
        text.push_str("  </testsuite>\n");
    }
}

fn body(found: &Diagnostic) -> String {
    let mut lines = vec![format!("{}: {}", spelled(&found.file, Some(found.start)), found.message)];
    lines.extend(found.evidence.iter().map(|reason| format!("because {}", reason.text)));
    lines.extend(found.fix.iter().map(|fix| format!("fix ({}): {}", fix.applicability.name(), fix.message)));
    lines.extend(found.advice.iter().map(|advice| format!("hint: {advice}")));
    lines.join("\n")
}

/// A text as it may stand in an element or an attribute. Characters that XML cannot say become the one that stands for
/// what is unknown.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\r' | '\t' => out.push_str(&format!("&#{};", u32::from(c))),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
