//! Suppressions that are written for people, and what theirs mean.

use crate::{
    fix::Edit,
    rule::{Rule, rules},
    source::Source,
    syntax::{ModModule, Parsed, Ranged, TextRange, TextSize, Token, TokenKind},
};

use super::{
    Statements,
    directive::{self, Directive, Extent},
};

/// The edit that suppresses `rule` for what begins at `at`: it extends a suppression that is there, or writes one behind
/// the line, or in front of the statement where the line has no room for a comment. Nothing if the text cannot be read.
pub fn suppression(source: &Source, rule: &Rule, at: TextSize) -> Option<Edit> {
    let parsed = source.parse().ok()?;
    let statements = Statements::of(source, &parsed);
    if let Some(bracket) = closing_bracket(source, &parsed, &statements, at) {
        return Some(Edit::insert(bracket, format!(", {}", rule.code)));
    }
    let comment = format!("# vramscope: ignore[{}]", rule.code);
    let line = source.line_range(source.line_at(at));
    let text = source.text().get(line.to_std_range())?;
    let end = line.start() + size(text.trim_end().len());
    if has_room_behind(&parsed, line, text) {
        return Some(Edit::replace(TextRange::new(end, line.end()), format!("  {comment}")));
    }
    let before = statements.lines.partition_point(|(_, it)| it.start() <= at);
    let (_, statement) = statements.lines.get(before.checked_sub(1)?)?;
    let first = source.line_range(source.line_at(statement.start()));
    let indentation = source.text().get(first.start().into()..statement.start().into())?;
    let line_end = line_end_behind(source.text(), first.end());
    indentation
        .trim()
        .is_empty()
        .then(|| Edit::insert(first.start(), format!("{indentation}{comment}{line_end}")))
}

/// The rules that the suppression at `at` names; all of them where it names none.
pub fn rules_named_at(source: &Source, at: TextSize) -> Vec<&'static Rule> {
    let Ok(parsed) = source.parse() else { return Vec::new() };
    let directives = directives(source, &parsed);
    let Some(here) = directives.iter().find(|it| it.range.contains_inclusive(at)) else { return Vec::new() };
    let pointed_at = here.selectors.iter().find(|it| it.range.contains_inclusive(at));
    rules()
        .filter(|rule| match pointed_at {
            Some(selector) => selector.selects(rule),
            None => here.selectors.iter().any(|selector| selector.selects(rule)),
        })
        .collect()
}

fn directives(source: &Source, parsed: &Parsed<ModModule>) -> Vec<Directive> {
    let mut found = Vec::new();
    for comment in parsed.tokens().iter().filter(|token| token.kind() == TokenKind::Comment) {
        let words = source.text().get(comment.range().to_std_range()).unwrap_or_default();
        directive::read(words, comment.start(), &mut found, &mut Vec::new());
    }
    found
}

/// Where the list of rules ends of a suppression that is for what begins at `at`.
fn closing_bracket(
    source: &Source,
    parsed: &Parsed<ModModule>,
    statements: &Statements,
    at: TextSize,
) -> Option<TextSize> {
    let is_for_it = |directive: &Directive| {
        directive.extent == Extent::Statement
            && statements.covered_by(source, directive.range.start()).1.contains_inclusive(at)
    };
    directives(source, parsed).iter().filter(|it| is_for_it(it)).find_map(|directive| {
        // A list may end with a comma: what is new goes behind its last rule.
        directive.selectors.iter().filter(|it| it.rules.is_some()).map(|it| it.range.end()).max()
    })
}

/// Whether a comment can be written behind a line: not where a string or a backslash carries it on.
fn has_room_behind(parsed: &Parsed<ModModule>, line: TextRange, text: &str) -> bool {
    let has_comment = || {
        parsed.tokens().iter().any(|it| it.kind() == TokenKind::Comment && line.contains_range(it.range()))
    };
    if text.ends_with('\\') && !has_comment() {
        return false;
    }
    let mut open = 0_u32;
    for token in parsed.tokens().iter().take_while(|token| token.start() < line.end()) {
        match token.kind() {
            TokenKind::FStringStart | TokenKind::TStringStart => open += 1,
            TokenKind::FStringEnd | TokenKind::TStringEnd => open = open.saturating_sub(1),
            _ if is_text(token) && token.end() > line.end() => return false,
            _ => {}
        }
    }
    open == 0
}

fn is_text(token: &Token) -> bool {
    matches!(token.kind(), TokenKind::String | TokenKind::IpyEscapeCommand | TokenKind::Unknown)
}

fn line_end_behind(text: &str, at: TextSize) -> &'static str {
    let rest = text.get(at.into()..).unwrap_or_default();
    if rest.starts_with("\r\n") {
        "\r\n"
    } else if rest.starts_with('\r') {
        "\r"
    } else {
        "\n"
    }
}

fn size(bytes: usize) -> TextSize {
    TextSize::try_from(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        check::Selection, diagnostic::Diagnostic, diagnostic::Severity, rule::find_rule,
        suppress::Suppressions,
    };

    /// The text once LK101 at `!` is suppressed, which must silence it and leave the text without a mistake.
    fn check(marked: &str, expect: &str) {
        let at = marked.find('!').unwrap();
        let text = marked.replacen('!', "", 1);
        let source = Source::read("a.py", text.as_bytes()).unwrap();
        let rule = find_rule("LK101").unwrap();
        let edit = suppression(&source, rule, size(at)).unwrap();
        let span = edit.range.start as usize..edit.range.end as usize;
        let mut new = text.clone();
        new.replace_range(span.clone(), &edit.content);
        assert_eq!(new, expect);
        let at = if span.start <= at { at + edit.content.len() - span.len() } else { at };
        let source = Source::read("a.py", new.as_bytes()).unwrap();
        let parsed = source.parse().unwrap();
        assert!(parsed.errors().is_empty(), "{new}");
        let found = Diagnostic::new(rule, Severity::Error, TextRange::empty(size(at)), "x");
        let (kept, suppressed, _) =
            Suppressions::of(&source, &parsed).apply(vec![found], &Selection::default());
        assert_eq!((kept.len(), suppressed), (0, 1), "{new}");
    }

    #[test]
    fn a_comment_is_written_behind_the_line() {
        check("!x = 1", "x = 1  # vramscope: ignore[LK101]");
        check("if y:\r\n  !x = 1 \r\n", "if y:\r\n  x = 1  # vramscope: ignore[LK101]\r\n");
        check("!x = f(\n  1)\n", "x = f(  # vramscope: ignore[LK101]\n  1)\n");
        check("f(\n  !x,\n  1)\n", "f(\n  x,  # vramscope: ignore[LK101]\n  1)\n");
        check("!x = '#'  # noqa\n", "x = '#'  # noqa  # vramscope: ignore[LK101]\n");
        check("!x  # \\\n", "x  # \\  # vramscope: ignore[LK101]\n");
        check("for x in !y:\n  pass\n", "for x in y:  # vramscope: ignore[LK101]\n  pass\n");
    }

    #[test]
    fn a_suppression_that_is_there_is_extended() {
        check("!x  # vramscope: ignore[LK102]\n", "x  # vramscope: ignore[LK102, LK101]\n");
        check("!x  # vramscope: ignore[LK102 , ] so\n", "x  # vramscope: ignore[LK102, LK101 , ] so\n");
        check("# vramscope: ignore[LK102]\n!x\n", "# vramscope: ignore[LK102, LK101]\nx\n");
        check(
            "f(\n !x,\n y\n)  # vramscope: ignore[LK102]\n",
            "f(\n x,\n y\n)  # vramscope: ignore[LK102, LK101]\n",
        );
        check(
            "# vramscope: ignore-file[LK102]\n!x\n",
            "# vramscope: ignore-file[LK102]\nx  # vramscope: ignore[LK101]\n",
        );
    }

    #[test]
    fn where_the_line_has_no_room_it_stands_in_front_of_the_statement() {
        check("if y:\n\t!x = '''\n'''\n", "if y:\n\t# vramscope: ignore[LK101]\n\tx = '''\n'''\n");
        check("!x = 1 + \\\r\n 2\r\n", "# vramscope: ignore[LK101]\r\nx = 1 + \\\r\n 2\r\n");
        check("x = f'''\n{!y}\n'''\n", "# vramscope: ignore[LK101]\nx = f'''\n{y}\n'''\n");
        check("x = '''\n''' + !y\n", "x = '''\n''' + y  # vramscope: ignore[LK101]\n");
        check("@a\ndef f(x=!'''\n'''): 1\n", "@a\n# vramscope: ignore[LK101]\ndef f(x='''\n'''): 1\n");
    }

    #[test]
    fn a_suppression_names_rules() {
        let source = Source::read("a.py", b"x  # vramscope: ignore[LK101, lk102] so\n").unwrap();
        let named = |at: u32| {
            rules_named_at(&source, at.into()).iter().map(|rule| rule.code).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            [named(0), named(6), named(24), named(32), named(38), named(900)],
            ["", "LK101 LK102", "LK101", "LK102", "", ""]
        );
    }
}
