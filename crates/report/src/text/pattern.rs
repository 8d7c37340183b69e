//! The pattern in the source code that a finding comes from, and its fix.

use vramscope_view::pattern::{Harmless, Pattern};

use super::check::spelled;
use super::{INDENT, left_out};
use crate::page::Page;
use crate::style::{Role, Span, shortened};
use crate::words;

/// Writes the pattern with the lines that its fix changes, or with what to do where it has none.
pub(super) fn write(page: &mut Page, pattern: &Pattern) {
    write_short(page, pattern);
    let found = &pattern.found;
    if let (Some(fix), Some(_), false) = (&found.fix, &pattern.change, pattern.leaves_data) {
        let text = format!("{} ({})", fix.message, fix.applicability.name());
        page.paragraph(Span::new(Role::Good, "   fix"), INDENT + 2, &text);
        for hunk in &fix.change {
            let digits = (hunk.line + hunk.removed.len().max(hunk.added.len()) as u32).to_string().len();
            let mut change = |sign: &str, role: Role, lines: &[String]| {
                for (number, line) in (hunk.line..).zip(lines) {
                    let line = line.replace('\t', "    ");
                    let room = page.width().saturating_sub(digits + 8);
                    page.line([
                        Span::new(Role::Dim, format!("     {number:>digits$} ")),
                        Span::new(role, format!("{sign} {}", shortened(&line, room))),
                    ]);
                }
            };
            change("-", Role::Bad, &hunk.removed);
            change("+", Role::Good, &hunk.added);
        }
    } else if pattern.leaves_data {
        page.paragraph(Span::new(Role::Good, "   do"), INDENT + 2, words::LEAVES_DATA);
    } else if let Some(advice) = &found.advice {
        page.paragraph(Span::new(Role::Good, "   do"), INDENT + 2, advice);
    }
}

/// Writes at most so many patterns that keep nothing, with the reasons.
pub(super) fn write_harmless(page: &mut Page, harmless: &[Harmless], most: usize) {
    let mut label = Span::new(Role::Good, "fine");
    for one in harmless.iter().take(most) {
        let found = &one.found;
        let place = spelled(&found.file, Some(found.start));
        let text = format!(
            "checked and harmless to the GPU here: {place} {} {}: {}",
            found.code,
            found.name,
            words::harmless(one)
        );
        page.paragraph(std::mem::take(&mut label), INDENT, &text);
    }
    if let Some(more) = left_out(harmless.len(), most, "harmless pattern") {
        page.paragraph(label, INDENT, &more);
    }
}

/// Writes the patterns that keep nothing, so that nothing is to be fixed.
pub(super) fn write_left_alone(page: &mut Page, harmless: &[Harmless]) {
    let mut label = Span::new(Role::Good, "fine");
    for Harmless { found, .. } in harmless {
        let place = spelled(&found.file, Some(found.start));
        let text = format!("left alone: {place} {} {} (harmless to the GPU here)", found.code, found.name);
        page.paragraph(std::mem::take(&mut label), INDENT, &text);
    }
}

/// Writes only what and where it is.
pub(super) fn write_short(page: &mut Page, pattern: &Pattern) {
    let found = &pattern.found;
    let text = format!(
        "{}: {} ({} {}), {}",
        spelled(&found.file, Some(found.start)),
        found.message,
        found.code,
        found.name,
        words::matched(pattern)
    );
    page.paragraph(Span::new(Role::Warn, "   code"), INDENT + 2, &text);
}
