//! Places in a text: as bytes, and as the lines and columns of editors.

use lsp_types::{Position, PositionEncodingKind, Range};

/// In which units columns are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Bytes.
    Utf8,
    /// What JavaScript counts; all clients can.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// The best one that a client offers.
    pub(super) fn of(offered: &[PositionEncodingKind]) -> Self {
        if offered.contains(&PositionEncodingKind::UTF8) {
            Self::Utf8
        } else if offered.is_empty() || offered.contains(&PositionEncodingKind::UTF16) {
            Self::Utf16
        } else if offered.contains(&PositionEncodingKind::UTF32) {
            Self::Utf32
        } else {
            Self::Utf16
        }
    }

    pub(super) fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf8 => PositionEncodingKind::UTF8,
            Self::Utf16 => PositionEncodingKind::UTF16,
            Self::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    fn width(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }
}

/// Where the lines of a text begin. A line ends with `\n`, `\r\n` or `\r`.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends = bytes.iter().enumerate().filter(|(at, byte)| match byte {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        });
        Self { starts: std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    /// Where each line begins.
    pub(super) fn starts(&self) -> impl Iterator<Item = usize> + '_ {
        self.starts.iter().copied()
    }

    /// The byte at a position: beyond the end of a line its end, beyond the last line the end of the text, within a
    /// character its beginning.
    pub(super) fn offset(&self, text: &str, position: Position, encoding: Encoding) -> usize {
        let line = position.line as usize;
        let Some(start) = self.starts.get(line).copied() else { return text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        let line = text.get(start..end).unwrap_or_default().trim_end_matches(['\r', '\n']);
        let mut left = position.character as usize;
        for (at, character) in line.char_indices() {
            let width = encoding.width(character);
            if left < width {
                return start + at;
            }
            left -= width;
        }
        start + line.len()
    }

    /// The position of a byte; within a character that of its beginning, beyond the text its end.
    pub(super) fn position(&self, text: &str, offset: usize, encoding: Encoding) -> Position {
        let offset = text.floor_char_boundary(offset);
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or_default();
        let before = text.get(start..offset).unwrap_or_default();
        let column: usize = before.chars().map(|character| encoding.width(character)).sum();
        Position::new(line as u32, column as u32)
    }

    /// The bytes of a range, whose ends may be given in either order.
    pub(super) fn bytes(&self, text: &str, range: Range, encoding: Encoding) -> std::ops::Range<usize> {
        let (start, end) = (self.offset(text, range.start, encoding), self.offset(text, range.end, encoding));
        start.min(end)..start.max(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_go_there_and_back() {
        let text = "a𝄞é\r\n\rx\n";
        let lines = Lines::of(text);
        for (encoding, of_e) in [(Encoding::Utf8, 5), (Encoding::Utf16, 3), (Encoding::Utf32, 2)] {
            let position = lines.position(text, 5, encoding);
            assert_eq!(position, Position::new(0, of_e), "{encoding:?}");
            for at in text.char_indices().map(|(at, _)| at).chain([text.len()]) {
                // Between `\r` and `\n` nothing can be.
                if at != 8 {
                    assert_eq!(lines.offset(text, lines.position(text, at, encoding), encoding), at);
                }
            }
        }
        assert_eq!(lines.position(text, text.len(), Encoding::Utf16), Position::new(3, 0));
    }

    #[test]
    fn what_is_beyond_or_within_is_brought_to_the_next_place_that_is_there() {
        let text = "a𝄞b\r\nc";
        let lines = Lines::of(text);
        let offset = |line, column| lines.offset(text, Position::new(line, column), Encoding::Utf16);
        assert_eq!([offset(0, 2), offset(0, 3), offset(0, 99), offset(1, 99), offset(7, 0)], [1, 5, 6, 9, 9]);
        assert_eq!(offset(u32::MAX, u32::MAX), 9);
        assert_eq!(lines.position(text, 3, Encoding::Utf16), Position::new(0, 1));
        assert_eq!(lines.position(text, 999, Encoding::Utf16), Position::new(1, 1));
        let wrong = Range::new(Position::new(1, 1), Position::new(0, 0));
        assert_eq!(lines.bytes(text, wrong, Encoding::Utf8), 0..9);
    }

    #[test]
    fn bytes_are_counted_where_the_client_can() {
        let kinds = |kinds: &[&'static str]| {
            Encoding::of(&kinds.iter().map(|it| PositionEncodingKind::new(it)).collect::<Vec<_>>())
        };
        assert_eq!(kinds(&["utf-16", "utf-8"]), Encoding::Utf8);
        assert_eq!(kinds(&["utf-32", "utf-16"]), Encoding::Utf16);
        assert_eq!([kinds(&[]), kinds(&["utf-7"])], [Encoding::Utf16; 2]);
        assert_eq!(kinds(&["utf-32"]), Encoding::Utf32);
    }
}
