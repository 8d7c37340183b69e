//! What it all comes to: counts by rule, and the last line.

use std::collections::BTreeSet;

use vramscope_view::check::Check;

use crate::bytes::{counted, grouped};
use crate::page::Page;
use crate::style::{Role, Span};
use crate::table::{Align, Table};

/// The last lines: what was fixed, and how much there is.
pub(super) fn write(page: &mut Page, check: &Check) {
    let fixed: u64 = check.fixed.iter().flat_map(|file| &file.rules).map(|(_, count)| count).sum();
    if fixed > 0 {
        let files = counted(check.fixed.len() as u64, "file");
        page.line([Span::new(Role::Good, "fixed"), format!(" {} in {files}", grouped(fixed)).into()]);
    }
    let mut besides = match check.suppressed {
        0 => String::new(),
        n => format!("; {} suppressed", grouped(n)),
    };
    let unread = check.problems.iter().filter(|problem| problem.is_fatal).count() as u64;
    if unread > 0 {
        besides.push_str(&format!("; {} could not be read", counted(unread, "file")));
    }
    let counts = check.counts;
    let by_severity: Vec<String> = [(counts.errors, "error"), (counts.warnings, "warning")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, noun)| counted(count, noun))
        .chain((counts.infos > 0).then(|| format!("{} info", grouped(counts.infos))))
        .collect();
    let all = counted(check.files.len() as u64, "file");
    if by_severity.is_empty() {
        let what = if fixed > 0 { "nothing left" } else { "nothing found" };
        page.line([Span::new(Role::Good, what), format!(" in {all}{besides}").into()]);
        return;
    }
    let with: BTreeSet<&str> = check.diagnostics.iter().map(|found| found.file.as_str()).collect();
    let role = match (counts.errors, counts.warnings) {
        (1.., _) => Role::Bad,
        (0, 1..) => Role::Warn,
        (0, 0) => Role::Dim,
    };
    page.line([
        Span::new(role, by_severity.join(", ")),
        format!(" in {} of {all}{besides}{}", grouped(with.len() as u64), fixable(check)).into(),
    ]);
}

fn fixable(check: &Check) -> String {
    let (safe, risky) = (check.fixable.safe, check.fixable.risky);
    match (safe, risky) {
        (0, 0) => String::new(),
        (_, 0) => format!("; {} fixable with `--fix`", grouped(safe)),
        (0, _) => format!("; {} fixable with `--fix --unsafe-fixes`", grouped(risky)),
        _ => {
            format!("; {} fixable with `--fix`, {} more with `--unsafe-fixes`", grouped(safe), grouped(risky))
        }
    }
}

/// A table of rules.
pub(super) fn statistics(page: &mut Page, check: &Check) {
    if check.statistics.is_empty() {
        return;
    }
    let mut table = Table::new(&[Align::Right, Align::Right, Align::Right, Align::Left, Align::Left]);
    table.head(&["found", "fixable", "unsafe", "rule", ""]);
    for rule in &check.statistics {
        table.row(vec![
            grouped(rule.count).into(),
            grouped(rule.fixable.safe).into(),
            grouped(rule.fixable.risky).into(),
            Span::new(Role::Heading, rule.code),
            rule.name.into(),
        ]);
    }
    table.write(page, 0);
}
