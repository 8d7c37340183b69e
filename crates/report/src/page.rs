//! A page of terminal text that is being written: lines of pieces, paragraphs that wrap, a fixed width.

use unicode_width::UnicodeWidthStr;

use crate::style::{Palette, Role, Span};

/// Text for a terminal.
pub(crate) struct Page {
    out: String,
    palette: Palette,
    width: usize,
}

impl Page {
    pub(crate) fn new(palette: Palette, width: usize) -> Self {
        Self { out: String::new(), palette, width: width.max(40) }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// One line.
    pub(crate) fn line<S: Into<Span>>(&mut self, spans: impl IntoIterator<Item = S>) {
        let start = self.out.len();
        for span in spans {
            self.palette.write(&mut self.out, &span.into());
        }
        let kept = self.out.get(start..).map_or(0, |line| line.trim_end_matches(' ').len());
        self.out.truncate(start + kept);
        self.out.push('\n');
    }

    /// An empty line; two never follow each other.
    pub(crate) fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// A line with something at its right end. What does not fit beside the left part goes on a line of its own.
    pub(crate) fn ends(&mut self, left: Vec<Span>, right: Span) {
        let used: usize = left.iter().map(Span::width).sum();
        let room = self.width.saturating_sub(used + right.width());
        if right.width() == 0 {
            self.line(left);
        } else if room >= 2 {
            self.line(left.into_iter().chain([" ".repeat(room).into(), right]));
        } else {
            self.line(left);
            let indent = self.width.saturating_sub(right.width());
            self.line([" ".repeat(indent).into(), right]);
        }
    }

    /// Words that wrap, after a label. Later lines are indented as far as the first one's words.
    pub(crate) fn paragraph(&mut self, label: Span, indent: usize, text: &str) {
        let words: Vec<&str> = text.split_whitespace().collect();
        self.pieces(label, indent, Role::Plain, &words);
    }

    /// Pieces that are parted by spaces and not broken, after a label.
    pub(crate) fn pieces(&mut self, label: Span, indent: usize, role: Role, pieces: &[impl AsRef<str>]) {
        let room = self.width.saturating_sub(indent).max(20);
        let mut first = Some(label);
        for line in wrap(pieces, room) {
            let label = first.take().unwrap_or_default();
            let pad = indent.saturating_sub(label.width());
            self.line([label, " ".repeat(pad).into(), Span::new(role, line)]);
        }
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }
}

/// Fills lines of at most `room` columns. A piece that is wider has a line of its own.
fn wrap(pieces: &[impl AsRef<str>], room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for piece in pieces {
        let piece = piece.as_ref();
        if !line.is_empty() && line.width() + 1 + piece.width() > room {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(piece);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_hang_under_their_first_word() {
        let mut page = Page::new(Palette::Plain, 40);
        page.paragraph("why".into(), 6, "every block ever born here is still alive, in all of the 100 steps");
        insta::assert_snapshot!(page.finish(), @r"
        why   every block ever born here is
              still alive, in all of the 100
              steps
        ");
    }

    #[test]
    fn what_does_not_fit_at_the_right_goes_below() {
        let mut page = Page::new(Palette::Plain, 40);
        page.ends(vec!["LEAK".into()], "99 %".into());
        page.ends(vec!["a line of nearly forty columns, so it".into()], "99 %".into());
        page.gap();
        page.gap();
        page.line(["end   "]);
        insta::assert_snapshot!(page.finish(), @r"
        LEAK                                99 %
        a line of nearly forty columns, so it
                                            99 %

        end
        ");
    }
}
