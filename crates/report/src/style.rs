//! What a piece of text is, and how that looks in a terminal.
//!
//! Colour only repeats what the words say. Text that came out of a file passes through here on its way to the
//! terminal, so this is also where control characters end that could otherwise move the cursor or change the title.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What a piece of text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Nothing special.
    #[default]
    Plain,
    /// The beginning of a part.
    Heading,
    /// Trouble.
    Bad,
    /// Perhaps trouble.
    Warn,
    /// All well.
    Good,
    /// Secondary.
    Dim,
    /// A place in the user's files.
    Path,
}

impl Role {
    fn style(self) -> Style {
        let of = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Heading => Style::new().bold(),
            Self::Bad => of(AnsiColor::Red).bold(),
            Self::Warn => of(AnsiColor::Yellow).bold(),
            Self::Good => of(AnsiColor::Green).bold(),
            Self::Dim => Style::new().dimmed(),
            Self::Path => of(AnsiColor::Cyan),
        }
    }
}

/// A piece of text and what it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The text, without control characters.
    text: String,
    /// What it is.
    role: Role,
}

impl Span {
    /// A piece of text; control characters in it are made visible.
    pub fn new(role: Role, text: impl AsRef<str>) -> Self {
        Self { text: printable(text.as_ref()).into_owned(), role }
    }

    /// How many columns it takes.
    pub fn width(&self) -> usize {
        self.text.width()
    }
}

impl Span {
    /// Its lines of at most so many columns.
    pub(crate) fn wrapped(&self, room: usize) -> Vec<Self> {
        wrapped(&self.text, room).into_iter().map(|text| Self { text, role: self.role }).collect()
    }
}

/// Breaks a text into lines of at most `room` columns: at spaces, else behind the joints of paths and names, else where
/// the line is full.
pub(crate) fn wrapped(text: &str, room: usize) -> Vec<String> {
    let (room, mut lines, mut rest) = (room.max(1), Vec::new(), text);
    while rest.width() > room {
        let mut columns = 0;
        // The first character always goes on the line, or there would be no end.
        let full = rest
            .char_indices()
            .find(|&(at, c)| {
                columns += c.width().unwrap_or(0);
                at > 0 && columns > room
            })
            .map_or(rest.len(), |(at, _)| at);
        let (line, next) = (rest.get(..full).unwrap_or(rest), rest.get(full..).unwrap_or(""));
        let at_space = if next.starts_with(' ') { Some(full) } else { line.rfind(' ').filter(|&at| at > 0) };
        let at_joint = || line.rfind(['/', '\\', '.', '_', ':', '#', ',']).map(|at| at + 1);
        let end = at_space.or_else(at_joint).unwrap_or(full);
        lines.push(rest.get(..end).unwrap_or(rest).to_owned());
        rest = rest.get(end..).unwrap_or("").trim_start();
    }
    if !rest.is_empty() || lines.is_empty() {
        lines.push(rest.to_owned());
    }
    lines
}

/// Shortens a text in its middle, where paths and qualified names tell least.
pub(crate) fn shortened(text: &str, room: usize) -> String {
    let n = text.chars().count();
    if n <= room {
        return text.to_owned();
    }
    let head = room / 2;
    let tail = room.saturating_sub(head + 1);
    text.chars().take(head).chain(['…']).chain(text.chars().skip(n - tail)).collect()
}

impl From<&str> for Span {
    fn from(text: &str) -> Self {
        Self::new(Role::Plain, text)
    }
}

impl From<String> for Span {
    fn from(text: String) -> Self {
        Self::new(Role::Plain, text)
    }
}

/// Whether styles are written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// Text only.
    Plain,
    /// With ANSI escape codes.
    Coloured,
}

impl Palette {
    /// Appends a piece of text.
    pub fn write(self, out: &mut String, span: &Span) {
        let style = span.role.style();
        if self == Self::Plain || style == Style::new() || span.text.is_empty() {
            out.push_str(&span.text);
        } else {
            out.push_str(&format!("{style}{}{style:#}", span.text));
        }
    }

    /// A piece of text as it is written out.
    pub fn paint(self, role: Role, text: &str) -> String {
        let mut out = String::new();
        self.write(&mut out, &Span::new(role, text));
        out
    }
}

/// Text with its control characters replaced by the pictures that Unicode has for them.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .map(|c| match c {
                '\t' => ' ',
                '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
                '\x7f' => '\u{2421}',
                c if is_unsafe(c) => '\u{fffd}',
                c => c,
            })
            .collect(),
    )
}

/// Control characters, and those that change the direction of text.
fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_is_only_written_where_it_is_wanted() {
        assert_eq!(Palette::Plain.paint(Role::Bad, "LEAK"), "LEAK");
        assert_eq!(Palette::Coloured.paint(Role::Bad, "LEAK"), "\x1b[1m\x1b[31mLEAK\x1b[0m");
        assert_eq!(Palette::Coloured.paint(Role::Plain, "x"), "x");
    }

    #[test]
    fn texts_break_where_they_can() {
        for (text, room, want) in [
            ("fits", 4, &["fits"][..]),
            ("", 4, &[""]),
            ("two words", 5, &["two", "words"]),
            ("a/long/path.py", 8, &["a/long/", "path.py"]),
            ("abcdefghij", 4, &["abcd", "efgh", "ij"]),
            ("文件文件", 5, &["文件", "文件"]),
            ("文", 1, &["文"]),
        ] {
            assert_eq!(wrapped(text, room), want, "{text}");
        }
    }

    #[test]
    fn a_file_cannot_send_commands_to_the_terminal() {
        assert_eq!(Palette::Plain.paint(Role::Path, "a\x1b]0;owned\x07b"), "a␛]0;owned␇b");
        assert_eq!(printable("a\u{202e}b\u{85}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(printable("naïve/文件.py"), "naïve/文件.py");
    }
}
