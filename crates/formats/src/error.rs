//! What can be wrong with a file, in words that say what to do next.

/// Why nothing could be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There are no bytes.
    #[error("the file is empty")]
    Empty,
    /// The beginning is of no format that is known.
    #[error("not a memory snapshot: {looks_like}")]
    Unknown {
        /// What the file looks like instead.
        looks_like: &'static str,
    },
    /// The file is of a known format but holds something else.
    #[error("{format} that holds no memory snapshot: {found}")]
    NoSnapshot {
        /// The format it is written in.
        format: &'static str,
        /// What it holds instead.
        found: String,
    },
    /// The bytes are damaged before anything could be read.
    #[error("damaged at byte {offset}: {reason}")]
    Damaged {
        /// Where, in bytes of the uncompressed stream.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// A container could not be opened.
    #[error("damaged {layer} file: {reason}")]
    Container {
        /// Which container.
        layer: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The system could not read the file.
    #[error("could not be read")]
    Io(#[from] std::io::Error),
}

impl Error {
    /// What to do about it, if there is something to say.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Empty | Self::Damaged { .. } | Self::Container { .. } => Some(
                "the program may have died while writing it; take the snapshot again or use an earlier one",
            ),
            Self::Unknown { .. } | Self::NoSnapshot { .. } => Some(
                "a snapshot is what `torch.cuda.memory._dump_snapshot(\"file.pickle\")` writes, or \
                 `torch.cuda.memory_snapshot()` saved with pickle, torch.save or JSON",
            ),
            Self::Io(_) => None,
        }
    }

    /// Guesses what a file is that no format knows, from its beginning.
    pub(crate) fn unknown(head: &[u8]) -> Self {
        // The beginning may end within a character.
        let is_text = match std::str::from_utf8(head) {
            Ok(_) => true,
            Err(e) => e.error_len().is_none() && e.valid_up_to() > 0,
        };
        let text = String::from_utf8_lossy(head);
        let text = text.trim_start().to_ascii_lowercase();
        let looks_like = if text.starts_with("<!doctype html") || text.starts_with("<html") {
            "it is a web page; if memory_viz wrote it, give the snapshot it was made from"
        } else if head.starts_with(b"\x7fELF") {
            "it is a program"
        } else if head.starts_with(b"\x89PNG") || head.starts_with(b"\xff\xd8") {
            "it is a picture"
        } else if head.starts_with(b"BZh") {
            "it is compressed with bzip2, which is not supported; unpack it first"
        } else if head.starts_with(b"SQLite format 3") {
            "it is an SQLite database"
        } else if is_text && head.iter().all(|&b| b >= 0x20 || matches!(b, b'\n' | b'\r' | b'\t')) {
            "it is plain text"
        } else {
            "it begins like no format known here"
        };
        Self::Unknown { looks_like }
    }
}

/// A text of the file for use in a message: on one line, and not longer than fits.
pub(crate) fn excerpt(text: &str) -> String {
    const MOST: usize = 60;
    let mut shown: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

/// Something about a file that was read all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where, in bytes of the uncompressed stream, if there is one place.
    pub offset: Option<u64>,
    /// What is wrong and what it means, as one sentence without a full stop.
    pub text: String,
}

impl Warning {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { offset: None, text: text.into() }
    }

    pub(crate) fn at(offset: u64, text: impl Into<String>) -> Self {
        Self { offset: Some(offset), text: text.into() }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{} (byte {offset})", self.text),
            None => f.write_str(&self.text),
        }
    }
}
