//! The rules of `check` for a terminal: a table of all, or the pages of some.

use vramscope_view::check::{Rule, Severity};

use super::Layout;
use crate::page::Page;
use crate::style::{Role, Span};
use crate::table::{Align, Table};

/// How a severity looks.
pub(super) fn severity_role(severity: Severity) -> Role {
    match severity {
        Severity::Error => Role::Bad,
        Severity::Warning => Role::Warn,
        Severity::Info => Role::Dim,
    }
}

/// A table of rules.
pub fn table(rules: &[Rule], layout: &Layout<'_>) -> String {
    let mut page = Page::new(layout.palette, layout.width);
    let mut table = Table::new(&[Align::Left, Align::Left, Align::Left, Align::Left, Align::Left]);
    table.head(&["code", "severity", "default", "fix", "finds"]);
    for rule in rules {
        let default = if rule.default { "on" } else { "off" };
        table.row(vec![
            Span::new(Role::Heading, rule.code),
            Span::new(severity_role(rule.severity), rule.severity.name()),
            default.into(),
            rule.fix.map_or("–", |fix| fix.name()).into(),
            format!("{}: {}", rule.name, rule.summary).into(),
        ]);
    }
    table.write(&mut page, 0);
    page.finish()
}

/// Whole pages, as they are written.
pub fn pages(rules: &[Rule], layout: &Layout<'_>) -> String {
    let mut page = Page::new(layout.palette, layout.width);
    for rule in rules {
        page.gap();
        let mut is_code = false;
        for line in rule.page.trim_end().lines() {
            is_code ^= line.starts_with("```");
            let role = if line.starts_with('#') && !is_code { Role::Heading } else { Role::Plain };
            page.line([Span::new(role, line)]);
        }
    }
    page.finish()
}
