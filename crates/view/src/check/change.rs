//! What a fix does to lines: before and after.

use std::ops::Range;

use vramscope_lint::{Edit, Source};

use super::Hunk;
use super::lines::{floor, line_at, next_line};

/// The lines that `edits`, which are in order, change.
pub(super) fn change(source: &Source, edits: &[Edit]) -> Vec<Hunk> {
    let text = source.text();
    let mut groups: Vec<(Range<usize>, Vec<&Edit>)> = Vec::new();
    for edit in edits {
        let start = line_at(text, edit.range.start as usize).start;
        let end = line_at(text, edit.range.end as usize).end;
        match groups.last_mut() {
            Some((lines, of_group)) if start <= next_line(text, lines.end).unwrap_or(lines.end) => {
                lines.end = lines.end.max(end);
                of_group.push(edit);
            }
            _ => groups.push((start..end, vec![edit])),
        }
    }
    groups.into_iter().filter_map(|(lines, edits)| hunk(source, &lines, &edits)).collect()
}

fn hunk(source: &Source, lines: &Range<usize>, edits: &[&Edit]) -> Option<Hunk> {
    let text = source.text();
    let before = text.get(lines.clone())?;
    let mut after = String::new();
    let mut at = lines.start;
    for edit in edits {
        after.push_str(text.get(at..floor(text, edit.range.start as usize))?);
        after.push_str(&edit.content);
        at = floor(text, edit.range.end as usize);
    }
    after.push_str(text.get(at..lines.end)?);
    let mut removed: Vec<&str> = before.lines().collect();
    let mut added: Vec<&str> = after.lines().collect();
    let same = removed.iter().zip(&added).take_while(|(a, b)| a == b).count();
    removed.drain(..same);
    added.drain(..same);
    let same_end = removed.iter().rev().zip(added.iter().rev()).take_while(|(a, b)| a == b).count();
    removed.truncate(removed.len() - same_end);
    added.truncate(added.len() - same_end);
    if removed.is_empty() && added.is_empty() {
        return None;
    }
    let owned = |lines: Vec<&str>| lines.into_iter().map(str::to_owned).collect();
    let first = source.location((lines.start as u32).into()).line;
    Some(Hunk { line: first + same as u32, removed: owned(removed), added: owned(added) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_lint::Span;

    fn check(text: &str, edits: &[(u32, u32, &str)], expect: &str) {
        let source = Source::read("a.py", text.as_bytes()).unwrap();
        let edits: Vec<Edit> = edits
            .iter()
            .map(|&(start, end, content)| Edit { range: Span { start, end }, content: content.to_owned() })
            .collect();
        let mut shown = String::new();
        for hunk in change(&source, &edits) {
            let lines = |sign: &str, lines: &[String]| -> String {
                lines
                    .iter()
                    .flat_map(|line| [&hunk.line.to_string(), sign, line, " "].map(str::to_owned))
                    .collect()
            };
            shown += &(lines("-", &hunk.removed) + &lines("+", &hunk.added));
        }
        assert_eq!(shown.trim_end(), expect, "{text:?}");
    }

    #[test]
    fn only_lines_that_change_are_there() {
        check("a\nb\nc\n", &[(3, 3, ".x")], "2-b 2+b.x");
        check("a\nb\nc\n", &[(2, 2, "new\n")], "2+new");
        check("a\nb\nc\n", &[(2, 4, "")], "2-b");
        check("a\nb\nc\n", &[(0, 1, "x"), (2, 3, "y")], "1-a 1-b 1+x 1+y");
        check("a\nb\nc\nd\n", &[(0, 1, "x"), (6, 7, "y")], "1-a 1+x 4-d 4+y");
        check("a\r\nb\r\n", &[(3, 4, "y")], "2-b 2+y");
        check("a\nb\n", &[(0, 1, "a")], "");
        check("a\n", &[(90, 99, "x")], "2+x");
        check("", &[(0, 0, "x\n")], "1+x");
    }
}
