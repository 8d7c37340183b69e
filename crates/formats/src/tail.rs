//! What comes behind the value that a file begins with.
//!
//! Containers keep their checksums at their end, so all of one is read; and what lies behind a snapshot unread is said to
//! lie there.

use std::io::{self, Read};

use crate::error::Warning;

/// How much of what follows is kept to be looked at.
pub(crate) const LOOK: usize = 4096;
/// How much behind the value is read to get to the end of a container. No snapshot has so much behind it.
const MOST: u64 = 1 << 30;

/// Where the value ended, and the first of what a format had read beyond that.
pub(crate) struct Tail {
    /// The place just behind the value, in bytes of the uncompressed stream.
    pub(crate) offset: u64,
    /// The beginning of what the format had read beyond that place, at most [`LOOK`] bytes.
    pub(crate) look: Vec<u8>,
    /// How many bytes the format had read beyond that place.
    pub(crate) read: u64,
    /// The error that the format met when it read beyond that place.
    pub(crate) error: Option<io::Error>,
    /// What the value is called.
    pub(crate) value: &'static str,
    /// Whether what follows begins like another value of that format.
    pub(crate) is_another: fn(&[u8]) -> bool,
    /// Whether what follows belongs there.
    pub(crate) is_expected: bool,
}

/// Reads to the end of the stream and says what is wrong there, or what was left unread.
///
/// `length` is that of the stream, where it is a plain file: such a one holds no checksum, and its end may be far.
pub(crate) fn examine(mut tail: Tail, stream: &mut dyn Read, length: Option<u64>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let looked = fill(&mut tail, stream);
    let (end, is_least) = if let Some(length) = length {
        (length, false)
    } else {
        let rest = looked.and_then(|()| io::copy(&mut stream.take(MOST), &mut io::sink()));
        if let Err(e) = &rest {
            let text = format!(
                "the container is damaged after the snapshot's end: {e}; what was read before may be wrong too"
            );
            warnings.push(Warning::at(tail.offset, text));
        }
        let known = tail.offset + tail.read;
        (known + rest.as_ref().map_or(0, |&n| n), !matches!(rest, Ok(n) if n < MOST))
    };
    if tail.look.is_empty() || tail.is_expected {
        return warnings;
    }
    let least = if is_least { "at least " } else { "" };
    let amount = match end.saturating_sub(tail.offset) {
        1 => format!("{least}1 byte"),
        n => format!("{least}{n} bytes"),
    };
    let value = tail.value;
    let text = if (tail.is_another)(&tail.look) {
        format!("another {value} follows right behind the first; it was not read ({amount})")
    } else {
        format!("the file goes on behind the end of the {value}; what follows was not read ({amount})")
    };
    warnings.push(Warning::at(tail.offset, text));
    warnings
}

/// Gets as much to look at as there is.
fn fill(tail: &mut Tail, stream: &mut dyn Read) -> io::Result<()> {
    if let Some(e) = tail.error.take() {
        return Err(e);
    }
    if tail.read < LOOK as u64 {
        let before = tail.look.len();
        let result = stream.take((LOOK - before) as u64).read_to_end(&mut tail.look);
        tail.read += (tail.look.len() - before) as u64;
        result?;
    }
    Ok(())
}
