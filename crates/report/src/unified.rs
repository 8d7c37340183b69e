//! Two versions of a file as a unified diff, which `patch -p0` and `git apply -p0` understand.

use similar::TextDiff;

use crate::style::{Palette, Role};

/// Lines of context on either side of a change.
const CONTEXT: usize = 3;

/// The diff of one file; empty where the versions are equal.
pub fn render(file: &str, before: &str, after: &str, palette: Palette) -> String {
    if before == after {
        return String::new();
    }
    let diff = TextDiff::from_lines(before, after);
    let plain = diff.unified_diff().context_radius(CONTEXT).header(file, file).to_string();
    if palette == Palette::Plain {
        return plain;
    }
    let mut text = String::with_capacity(plain.len());
    for line in plain.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let role = match line.as_bytes().first() {
            Some(b'-') if line.starts_with("--- ") => Role::Heading,
            Some(b'+') if line.starts_with("+++ ") => Role::Heading,
            Some(b'-') => Role::Bad,
            Some(b'+') => Role::Good,
            Some(b'@') => Role::Path,
            _ => Role::Plain,
        };
        text.push_str(&palette.paint(role, line));
        text.push_str(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_stands_between_lines_of_context() {
        insta::assert_snapshot!(render("a.py", "1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\nfive\n6\n", Palette::Plain), @r"
        --- a.py
        +++ a.py
        @@ -2,5 +2,5 @@
         2
         3
         4
        -5
        +five
         6
        ");
        assert_eq!(render("a.py", "1\n", "1\n", Palette::Plain), "");
        let coloured = render("a.py", "1\n", "2\n", Palette::Coloured);
        assert!(coloured.contains("\x1b[32m+2"), "{coloured:?}");
    }
}
