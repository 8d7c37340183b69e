//! Comments that silence diagnostics: `# vramscope: ignore[LK102]` and `# vramscope: ignore-file[LK102]`.
//!
//! Behind code, `ignore` is for what begins in its line, and on the last line of a statement for all of that statement's
//! header. On a line of its own it is for the next statement's header (of a decorated one: with the decorators);
//! between the lines of a statement, for the line below. `ignore-file` is on a line of its own and for the whole file.

mod directive;
mod writing;

use crate::{
    check::{Problem, Selection},
    diagnostic::Diagnostic,
    rule::{Rule, rules},
    source::Source,
    syntax::{ModModule, Parsed, Ranged, TextRange, TextSize, Token, TokenKind},
};

pub use writing::{rules_named_at, suppression};

use directive::{Directive, Extent, Selector};

/// The suppressions of one file.
#[derive(Debug, Default)]
pub(crate) struct Suppressions {
    each: Vec<Suppression>,
    problems: Vec<Problem>,
    /// The file has syntax errors: what suppresses nothing might do so without them.
    broken: bool,
}

#[derive(Debug)]
struct Suppression {
    selector: Selector,
    /// What begins in there is silenced.
    covers: TextRange,
    used: bool,
}

impl Suppressions {
    /// Reads the comments of `source`, which are never inside strings: the parser's tokens say where they are.
    pub(crate) fn of(source: &Source, parsed: &Parsed<ModModule>) -> Self {
        let text = source.text();
        let mut found = Self { broken: !parsed.errors().is_empty(), ..Self::default() };
        let mut directives = Vec::new();
        for comment in parsed.tokens().iter().filter(|token| token.kind() == TokenKind::Comment) {
            let words = text.get(comment.range().to_std_range()).unwrap_or_default();
            directive::read(words, comment.start(), &mut directives, &mut found.problems);
        }
        if directives.is_empty() {
            return found;
        }
        let statements = Statements::of(source, parsed);
        for Directive { extent, range, selectors } in directives {
            let covers = match (extent, statements.covered_by(source, range.start())) {
                (Extent::Statement, (_, covers)) => covers,
                (Extent::File, (Place::OwnLine, _)) => {
                    TextRange::up_to(TextSize::try_from(text.len()).unwrap_or_default())
                }
                (Extent::File, (Place::BehindCode, _)) => {
                    found.problems.push(Problem {
                        range: Some(range),
                        message: "`ignore-file` must be on a line of its own".into(),
                    });
                    continue;
                }
            };
            let each = selectors.into_iter();
            found.each.extend(each.map(|selector| Suppression { selector, covers, used: false }));
        }
        found
    }

    /// Takes away what is suppressed. Gives what is kept, how many were taken away, and what is wrong with the
    /// suppressions: those that cannot be read, and those that silence nothing although their rules are on.
    pub(crate) fn apply(
        mut self,
        diagnostics: Vec<Diagnostic>,
        selection: &Selection,
    ) -> (Vec<Diagnostic>, usize, Vec<Problem>) {
        let before = diagnostics.len();
        let mut kept = diagnostics;
        kept.retain(|diagnostic| !self.silence(diagnostic));
        let suppressed = before - kept.len();
        let mut problems = self.problems;
        for it in self.each.iter().filter(|it| !it.used && !self.broken && is_on(&it.selector, selection)) {
            problems.push(Problem {
                range: Some(it.selector.range),
                message: match &it.selector.rules {
                    Some(name) => format!("the suppression of `{name}` suppresses nothing"),
                    None => "the suppression suppresses nothing".into(),
                },
            });
        }
        problems.sort_by_key(|problem| problem.range.map(TextRange::start));
        (kept, suppressed, problems)
    }

    fn silence(&mut self, diagnostic: &Diagnostic) -> bool {
        let mut silenced = false;
        for it in &mut self.each {
            if it.covers.contains_inclusive(diagnostic.range.start()) && it.selector.selects(diagnostic.rule)
            {
                it.used = true;
                silenced = true;
            }
        }
        silenced
    }
}

/// Whether a suppression could have silenced something: its rules ran, those that run by default at least.
fn is_on(selector: &Selector, selection: &Selection) -> bool {
    let is_on = |rule: &Rule| selection.rules().any(|it| std::ptr::eq(it, rule));
    let mut selected = rules().filter(|rule| selector.selects(rule)).peekable();
    if selected.peek().is_none() {
        return false;
    }
    let (default, others): (Vec<_>, Vec<_>) = selected.partition(|rule| rule.default);
    if default.is_empty() { others.into_iter().all(is_on) } else { default.into_iter().all(is_on) }
}

/// Where a comment is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    BehindCode,
    OwnLine,
}

/// Statements' headers and simple statements: what Python calls logical lines.
struct Statements {
    /// In order; the first token of each, and what lies from there to the end of the line.
    lines: Vec<(TokenKind, TextRange)>,
    /// Where cells begin.
    bounds: Vec<TextSize>,
}

impl Statements {
    fn of(source: &Source, parsed: &Parsed<ModModule>) -> Self {
        let mut lines = Vec::new();
        let mut open: Option<(TokenKind, TextSize)> = None;
        let mut end = TextSize::default();
        for token in parsed.tokens() {
            match token.kind() {
                TokenKind::Comment | TokenKind::NonLogicalNewline | TokenKind::Indent | TokenKind::Dedent => {
                }
                TokenKind::Newline | TokenKind::EndOfFile => {
                    if let Some((kind, start)) = open.take() {
                        lines.push((kind, TextRange::new(start, end.max(start))));
                    }
                }
                kind => {
                    open.get_or_insert((kind, token.start()));
                    end = Token::end(token);
                }
            }
        }
        if let Some((kind, start)) = open {
            lines.push((kind, TextRange::new(start, end.max(start))));
        }
        Self { lines, bounds: source.bounds() }
    }

    /// Where the comment at `at` is, and what an `ignore` there is for.
    fn covered_by(&self, source: &Source, at: TextSize) -> (Place, TextRange) {
        let row = source.line_at(at);
        let physical = source.line_range(row);
        let before = source.text().get(physical.start().into()..at.into()).unwrap_or_default();
        let next = self.lines.partition_point(|(_, line)| line.start() <= at);
        let here = next.checked_sub(1).and_then(|it| self.lines.get(it)).map(|(_, line)| *line);
        // A string of several lines may end in this one, and hold what looks like a comment.
        let ends_here = here.is_some_and(|here| physical.start() < here.end() && here.end() <= at);
        // A comment may have a part for something else in front: `# noqa  # vramscope: …`.
        let blank = before.split('#').next().is_some_and(|code| code.trim().is_empty());
        let place = if blank && !ends_here { Place::OwnLine } else { Place::BehindCode };
        let covers = match (place, here) {
            (Place::OwnLine, Some(here)) if here.contains(at) => source.line_range(row + 1),
            (Place::OwnLine, _) => self.header(next, at),
            (Place::BehindCode, Some(here)) if here.end() <= at => here.cover(physical),
            (Place::BehindCode, _) => physical,
        };
        (place, covers)
    }

    /// The header that begins with the logical line `next`, unless that is in another cell than `at`.
    fn header(&self, next: usize, at: TextSize) -> TextRange {
        let cell_end = self.bounds.iter().find(|bound| **bound > at).copied().unwrap_or(at);
        let lines = self.lines.get(next..).unwrap_or_default();
        let decorators = lines.iter().take_while(|(kind, _)| *kind == TokenKind::At).count();
        match (lines.first(), lines.get(decorators).or_else(|| lines.last())) {
            (Some((_, first)), Some((_, last))) if first.start() < cell_end => first.cover(*last),
            _ => TextRange::empty(at),
        }
    }
}

#[cfg(test)]
mod tests;
