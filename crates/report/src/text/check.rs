//! `check` for a terminal: what was found with the lines of source, or one line each.

mod excerpt;
mod summary;

use vramscope_view::check::{Check, Diagnostic, Evidence, Fix, Place, Problem};

use super::Layout;
use super::rules::severity_role;
use crate::page::Page;
use crate::style::{Role, Span};

/// What was found, with the lines of source, the reasons and the fixes.
pub fn render(check: &Check, layout: &Layout<'_>) -> String {
    let mut page = Page::new(layout.palette, layout.width);
    for found in &check.diagnostics {
        page.gap();
        page.line(head(found));
        let gutter = gutter(found);
        excerpt::write(&mut page, found, gutter);
        for reason in &found.evidence {
            because(&mut page, found, reason, gutter);
        }
        if let Some(fix) = &found.fix {
            fixed_by(&mut page, fix, gutter);
        }
        if let Some(advice) = &found.advice {
            remark(&mut page, gutter, Span::new(Role::Path, "hint: "), advice);
        }
    }
    page.gap();
    problems(&mut page, &check.problems);
    page.gap();
    summary::write(&mut page, check);
    page.finish()
}

/// What was found, one line each.
pub fn concise(check: &Check, layout: &Layout<'_>) -> String {
    let mut page = Page::new(layout.palette, layout.width);
    for found in &check.diagnostics {
        page.line(head(found));
    }
    problems(&mut page, &check.problems);
    summary::write(&mut page, check);
    page.finish()
}

/// How many each rule found.
pub fn statistics(check: &Check, layout: &Layout<'_>) -> String {
    let mut page = Page::new(layout.palette, layout.width);
    summary::statistics(&mut page, check);
    problems(&mut page, &check.problems);
    page.gap();
    summary::write(&mut page, check);
    page.finish()
}

/// `train.py:13:5`, in notebooks `train.ipynb:cell 2:13:5`.
pub(crate) fn spelled(file: &str, place: Option<Place>) -> String {
    match place {
        None => file.to_owned(),
        Some(Place { cell: None, line, column }) => format!("{file}:{line}:{column}"),
        Some(Place { cell: Some(cell), line, column }) => format!("{file}:cell {cell}:{line}:{column}"),
    }
}

fn head(found: &Diagnostic) -> Vec<Span> {
    vec![
        Span::new(Role::Path, spelled(&found.file, Some(found.start))),
        " ".into(),
        Span::new(severity_role(found.severity), found.severity.name()),
        " ".into(),
        Span::new(Role::Heading, format!("{} {}", found.code, found.name)),
        format!(": {}", found.message).into(),
    ]
}

fn problems(page: &mut Page, problems: &[Problem]) {
    for problem in problems {
        page.line([
            Span::new(Role::Path, spelled(&problem.file, problem.place)),
            " ".into(),
            Span::new(Role::Warn, "problem"),
            format!(": {}", problem.message).into(),
        ]);
    }
}

/// Columns for the numbers of lines, the same for all that is said of one diagnostic.
fn gutter(found: &Diagnostic) -> usize {
    let of_fix = found.fix.iter().flat_map(|fix| &fix.change);
    let last = of_fix.map(|hunk| hunk.line + hunk.removed.len().max(hunk.added.len()) as u32);
    let most = found.excerpt.iter().map(|(number, _)| *number).chain(last).max().unwrap_or(0);
    most.to_string().len().max(3) + 2
}

fn because(page: &mut Page, found: &Diagnostic, reason: &Evidence, gutter: usize) {
    let place = reason.range.map(|(start, _)| match start.cell {
        Some(cell) => format!(" ({}:cell {cell}:{})", found.file, start.line),
        None => format!(" ({}:{})", found.file, start.line),
    });
    let text = format!("{}{}", reason.text, place.unwrap_or_default());
    remark(page, gutter, Span::new(Role::Dim, "because "), &text);
}

fn fixed_by(page: &mut Page, fix: &Fix, gutter: usize) {
    let label = format!("fix ({}): ", fix.applicability.name());
    remark(page, gutter, Span::new(Role::Good, label), &fix.message);
    for hunk in &fix.change {
        let mut change = |sign: &str, role: Role, lines: &[String]| {
            for (number, line) in (hunk.line..).zip(lines) {
                page.line([
                    Span::new(Role::Dim, format!("{number:>gutter$} ")),
                    Span::new(role, format!("{sign} {line}")),
                ]);
            }
        };
        change("-", Role::Bad, &hunk.removed);
        change("+", Role::Good, &hunk.added);
    }
}

/// A line that says more, below the excerpt.
fn remark(page: &mut Page, gutter: usize, label: Span, text: &str) {
    let indent = gutter + 3;
    let room = page.width().saturating_sub(indent + label.width()).max(20);
    let pad = " ".repeat(indent + label.width());
    let mut first = Some(vec![" ".repeat(gutter).into(), Span::new(Role::Dim, " = "), label]);
    for line in Span::new(Role::Plain, text).wrapped(room) {
        let mut spans = first.take().unwrap_or_else(|| vec![pad.as_str().into()]);
        spans.push(line);
        page.line(spans);
    }
}
