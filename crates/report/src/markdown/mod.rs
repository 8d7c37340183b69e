//! The answers as Markdown, for pasting in an issue or a chat.

pub mod analysis;
pub mod diff;
pub mod holders;
pub mod inspect;
pub mod rules;
pub mod whatif;

use vramscope_view::analysis::Location;

use crate::place::Places;
use crate::style::printable;

/// Text that Markdown must not read as markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '<' | '>' | '|' | '[' | ']' | '#' | '~') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A sentence of ours, which may hold code in backticks; all outside of them is escaped.
fn sentence(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        // A backtick without its partner.
        return escaped(text);
    }
    parts.iter().enumerate().map(|(i, part)| if i % 2 == 1 { code(part) } else { escaped(part) }).collect()
}

/// Text as code. In a table, `|` must be escaped even there.
fn code(text: &str) -> String {
    let text = printable(text).replace('|', "\\|");
    if !text.contains('`') {
        return format!("`{text}`");
    }
    // A fence longer than any run of backticks inside cannot be closed from there.
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    format!("{fence} {text} {fence}")
}

/// A place as code; what it is called where there is none, as words.
fn place(places: &Places, site: Option<&Location>, label: &str) -> String {
    let text = places.or_label(site, label);
    if site.is_some() { code(&text) } else { escaped(&text) }
}

/// A block of code, with a fence that nothing in it can close.
fn block(language: &str, text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    // Each line by itself: what a file names must not bring lines or control characters of its own.
    let lines: Vec<String> = text.trim_end().lines().map(|line| printable(line).into()).collect();
    format!("{fence}{language}\n{}\n{fence}\n", lines.join("\n"))
}

/// A table of figures. The first column is left-aligned, the others are right-aligned.
fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    aligned(head, |i| if i == 0 { "---" } else { "---:" }, rows)
}

/// A table of figures and what they are of. The last column is left-aligned, the others are right-aligned.
fn table_by_last(head: &[&str], rows: &[Vec<String>]) -> String {
    aligned(head, |i| if i + 1 == head.len() { "---" } else { "---:" }, rows)
}

/// A table of words, all of whose columns are left-aligned.
fn prose_table(head: &[&str], rows: &[Vec<String>]) -> String {
    aligned(head, |_| "---", rows)
}

/// A table; `rule` is what a column has below its head.
fn aligned(head: &[&str], rule: impl Fn(usize) -> &'static str, rows: &[Vec<String>]) -> String {
    let rule: Vec<&str> = (0..head.len()).map(rule).collect();
    let mut out = format!("| {} |\n|{}|\n", head.join(" | "), rule.join("|"));
    for row in rows {
        out.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_a_file_becomes_markup() {
        assert_eq!(escaped("<module> a_b*"), "\\<module\\> a\\_b\\*");
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(code("a`b"), "`` a`b ``");
        assert_eq!(code("a`` <img>"), "``` a`` <img> ```");
        assert!(!block("", "a\u{1b}[31m\u{202e}b").contains(['\u{1b}', '\u{202e}']));
        assert_eq!(sentence("call `losses.clear()` in <module>"), "call `losses.clear()` in \\<module\\>");
        assert_eq!(sentence("a ` b_c"), "a \\` b\\_c");
        assert_eq!(block("", "x\n```\ny"), "````\nx\n```\ny\n````\n");
        assert_eq!(prose_table(&["a", "b"], &[]), "| a | b |\n|---|---|\n");
        assert_eq!(table(&["a", "b"], &[vec!["1".into(), "2".into()]]), "| a | b |\n|---|---:|\n| 1 | 2 |\n");
    }
}
