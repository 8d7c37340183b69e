//! From the settings' text to words and separators.

use std::ops::Range;

use crate::allocator::config::Parser;

/// A separator, or what stands between separators, without the white space in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// Where in the text, in bytes.
    pub span: Range<usize>,
    /// What it is.
    pub text: String,
}

/// What is white space in C.
pub(super) fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

/// Source: the allocator reference, §2.2.
pub(super) fn tokens(text: &str, parser: Parser) -> Vec<Token> {
    let is_dropped = |c: char| match parser {
        Parser::Until29 => c == ' ',
        Parser::Since210 => is_space(c),
    };
    let mut tokens: Vec<Token> = Vec::new();
    // Whether the last token is a word that goes on: white space within a word does not end it.
    let mut in_word = false;
    for (at, c) in text.char_indices() {
        let separator = matches!(c, ',' | ':' | '[' | ']');
        if !separator && is_dropped(c) {
            continue;
        }
        let end = at + c.len_utf8();
        match tokens.last_mut() {
            Some(word) if in_word && !separator => {
                word.text.push(c);
                word.span.end = end;
            }
            _ => tokens.push(Token { span: at..end, text: c.into() }),
        }
        in_word = !separator;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, parser: Parser, want: &[(usize, &str)]) {
        let found = tokens(text, parser);
        let found: Vec<_> = found.iter().map(|t| (t.span.start, t.text.as_str())).collect();
        assert_eq!(found, want, "{text:?}");
    }

    #[test]
    fn separators_stand_alone_and_white_space_is_dropped() {
        check("", Parser::Since210, &[]);
        check(" \t", Parser::Since210, &[]);
        check(
            "a:[b:1,>:2]",
            Parser::Since210,
            &[
                (0, "a"),
                (1, ":"),
                (2, "["),
                (3, "b"),
                (4, ":"),
                (5, "1"),
                (6, ","),
                (7, ">"),
                (8, ":"),
                (9, "2"),
                (10, "]"),
            ],
        );
        check(" a b : 1\n", Parser::Since210, &[(1, "ab"), (5, ":"), (7, "1")]);
        check("größe:1", Parser::Until29, &[(0, "größe"), (7, ":"), (8, "1")]);
    }

    #[test]
    fn a_span_is_what_was_read() {
        let text = " größe : 1 2 ";
        let spans = tokens(text, Parser::Since210).into_iter().map(|t| text.get(t.span).unwrap_or("?"));
        assert_eq!(spans.collect::<Vec<_>>(), ["größe", ":", "1 2"]);
    }

    #[test]
    fn the_older_parser_drops_blanks_only() {
        check(" a\t:1\n", Parser::Until29, &[(1, "a\t"), (3, ":"), (4, "1\n")]);
        check(" a\u{b}:1\u{a0}", Parser::Since210, &[(1, "a"), (3, ":"), (4, "1\u{a0}")]);
    }
}
