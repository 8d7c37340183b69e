//! Lines of a text by offsets into it. A line ends with `\n`, `\r\n` or `\r`, as in Python.

use std::ops::Range;

const BREAKS: [char; 2] = ['\n', '\r'];

/// Lines of a long range beyond these are not shown.
const MOST: usize = 5;

/// The line around the byte at `offset`, without its end.
pub(super) fn line_at(text: &str, offset: usize) -> Range<usize> {
    let offset = floor(text, offset);
    let (before, after) = text.split_at(offset);
    // Between the two characters of one line break is the end of that line.
    let is_within_break = before.ends_with('\r') && after.starts_with('\n');
    let end_of_before = if is_within_break { offset.saturating_sub(1) } else { offset };
    let head = text.get(..end_of_before).unwrap_or(before);
    let start = head.rfind(BREAKS).map_or(0, |at| at + 1);
    let end =
        if is_within_break { end_of_before } else { after.find(BREAKS).map_or(text.len(), |at| offset + at) };
    start..end
}

/// Where the line after the one that ends at `end` begins, if there is one.
pub(super) fn next_line(text: &str, end: usize) -> Option<usize> {
    let rest = text.get(end..)?;
    let width = if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with(BREAKS)) };
    (width > 0).then_some(end + width)
}

/// The lines from the one before `range` to the one after it, each with its number; `first_line` is the number of the line in
/// which the range begins, `before` and `after` say whether there is context on that side.
pub(super) fn around(
    text: &str,
    range: Range<usize>,
    first_line: u32,
    before: bool,
    after: impl Fn(usize) -> bool,
) -> Vec<(u32, String)> {
    let mut lines = Vec::new();
    let mut push = |number: u32, line: &Range<usize>| {
        lines.push((number, text.get(line.clone()).unwrap_or_default().to_owned()));
    };
    let mut line = line_at(text, range.start);
    let mut number = first_line;
    if before && line.start > 0 {
        push(number.saturating_sub(1), &line_at(text, line.start.saturating_sub(1)));
    }
    let mut shown = 0;
    loop {
        push(number, &line);
        shown += 1;
        let Some(next) = next_line(text, line.end) else { break };
        if shown == MOST {
            break;
        }
        let is_context = next > range.end || (next == range.end && !range.is_empty());
        line = line_at(text, next);
        number += 1;
        if is_context {
            if after(next) && next < text.len() {
                push(number, &line);
            }
            break;
        }
    }
    lines
}

/// The nearest offset at or before this one that lies between characters.
pub(super) fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_as_they_do_in_python() {
        let text = "a\r\nbb\rccc\ndddd";
        let line = |at| &text[line_at(text, at)];
        assert_eq!(
            [line(0), line(1), line(2), line(3), line(5), line(6), line(10)],
            ["a", "a", "a", "bb", "bb", "ccc", "dddd"]
        );
        assert_eq!(line(100), "dddd");
        assert_eq!(
            [next_line(text, 1), next_line(text, 5), next_line(text, text.len())],
            [Some(3), Some(6), None]
        );
        assert_eq!(line_at("", 0), 0..0);
        assert_eq!(line_at("ü", 1), 0..2);
    }

    #[test]
    fn a_line_of_context_stands_on_either_side() {
        let text = "a\nb\nc\nd\n";
        let shown = |range, line| {
            around(text, range, line, line > 1, |_| true)
                .into_iter()
                .map(|(n, t)| format!("{n}{t}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(shown(2..3, 2), "1a 2b 3c");
        assert_eq!(shown(0..1, 1), "1a 2b");
        assert_eq!(shown(6..7, 4), "3c 4d");
        assert_eq!(shown(2..5, 2), "1a 2b 3c 4d");
        assert_eq!(shown(2..2, 2), "1a 2b 3c");
        assert_eq!(around("x\n".repeat(50).as_str(), 2..80, 2, true, |_| true).len(), 1 + MOST);
    }
}
