//! The lines of source around what was found, with marks below.

use unicode_width::UnicodeWidthStr;
use vramscope_view::check::Diagnostic;

use super::severity_role;
use crate::page::Page;
use crate::style::{Role, Span};

/// Characters that stay in front of a mark where a line is too long to be shown as a whole.
const LEAD: usize = 20;

pub(super) fn write(page: &mut Page, found: &Diagnostic, gutter: usize) {
    let room = page.width().saturating_sub(gutter + 4).max(20);
    let (start, end) = (found.start, found.end);
    let first = start.column.saturating_sub(1) as usize;
    let line_of_mark = found.excerpt.iter().find(|(number, _)| *number == start.line);
    let is_long = line_of_mark.is_some_and(|(_, line)| line.width() > room);
    let skipped = if is_long { first.saturating_sub(LEAD) } else { 0 };
    for (number, line) in &found.excerpt {
        let shown = window(line, skipped, room);
        page.line([Span::new(Role::Dim, format!("{number:>gutter$} │ ")), shown.as_str().into()]);
        if *number != start.line {
            continue;
        }
        let shift = usize::from(skipped > 0);
        let before = width(&shown, 0, first - skipped + shift);
        let last =
            if end.line == start.line { end.column.saturating_sub(1) as usize } else { line.chars().count() };
        let marked = width(&shown, first - skipped + shift, last.saturating_sub(skipped) + shift);
        page.line([
            Span::new(Role::Dim, format!("{:gutter$} │ ", "")),
            " ".repeat(before).into(),
            Span::new(severity_role(found.severity), "^".repeat(marked.max(1))),
        ]);
    }
    let last_shown = found.excerpt.last().map_or(end.line, |(number, _)| *number);
    if last_shown < end.line {
        let more = crate::bytes::counted(u64::from(end.line - last_shown), "more line");
        page.line([Span::new(Role::Dim, format!("{:gutter$} │ … {more}", ""))]);
    }
}

/// A part of a line that fits, with marks where it is cut.
fn window(line: &str, skipped: usize, room: usize) -> String {
    let mut text = String::new();
    let mut used = 0;
    if skipped > 0 {
        text.push('…');
        used = 1;
    }
    for c in line.chars().skip(skipped) {
        let columns = c.to_string().width();
        if used + columns >= room && line.width() > room {
            text.push('…');
            break;
        }
        used += columns;
        text.push(if c == '\t' { ' ' } else { c });
    }
    text
}

/// Columns of the characters from one to another.
fn width(line: &str, from: usize, to: usize) -> usize {
    let part: String = line.chars().skip(from).take(to.saturating_sub(from)).collect();
    Span::new(Role::Plain, part).width()
}
