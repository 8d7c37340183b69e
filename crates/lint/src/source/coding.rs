//! How the characters of a file are stored: PEP 263, as Python reads it.

use encoding_rs::{DecoderResult, Encoding};

use super::Unreadable;

/// More than this, offsets might not fit once the text is decoded.
const LARGEST: usize = (u32::MAX / 2) as usize;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How the characters of one file are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Utf8 {
        marked: bool,
    },
    Latin1,
    Ascii,
    /// `exact`: encoding what was decoded gives the bytes of the file.
    Other {
        encoding: &'static Encoding,
        exact: bool,
    },
}

/// The text of a file that says itself how it is stored.
pub(super) fn decode(bytes: &[u8]) -> Result<(String, Coding), Unreadable> {
    let Some(name) = declared(bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)) else {
        return decode_utf8(bytes);
    };
    let marked = bytes.starts_with(BYTE_ORDER_MARK);
    let coding = coding_named(&name).ok_or_else(|| {
        Unreadable(format!("it is declared to be stored as `{name}`, which is not supported"))
    })?;
    if marked && !matches!(coding, Coding::Utf8 { .. }) {
        return Err(Unreadable(format!(
            "it begins with a byte order mark of UTF-8 and is declared to be stored as `{name}`"
        )));
    }
    refuse_large(bytes.len())?;
    let undecodable = |at: usize| {
        Unreadable(format!(
            "byte {at}, in line {}, is not valid in `{name}`, as which the file is declared to be stored",
            line_at(bytes, at)
        ))
    };
    let (text, coding) = match coding {
        Coding::Utf8 { .. } => return decode_utf8(bytes),
        Coding::Latin1 => (bytes.iter().map(|byte| char::from(*byte)).collect(), coding),
        Coding::Ascii => match bytes.iter().position(|byte| !byte.is_ascii()) {
            Some(at) => return Err(undecodable(at)),
            None => (bytes.iter().map(|byte| char::from(*byte)).collect(), coding),
        },
        Coding::Other { encoding, .. } => {
            let text = decode_other(encoding, bytes).map_err(undecodable)?;
            let (again, _, lossy) = encoding.encode(&text);
            let exact = !lossy && *again == *bytes;
            (text, Coding::Other { encoding, exact })
        }
    };
    refuse_large(text.len())?;
    Ok((text, coding))
}

/// The text of a file that must be UTF-8.
pub(super) fn decode_utf8(bytes: &[u8]) -> Result<(String, Coding), Unreadable> {
    refuse_large(bytes.len())?;
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(Unreadable("it is stored as UTF-16, which Python does not read".into()));
    }
    let marked = bytes.starts_with(BYTE_ORDER_MARK);
    let rest = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = str::from_utf8(rest).map_err(|error| {
        let at = bytes.len() - rest.len() + error.valid_up_to();
        Unreadable(format!("byte {at}, in line {}, is not valid in UTF-8", line_at(bytes, at)))
    })?;
    Ok((text.to_owned(), Coding::Utf8 { marked }))
}

/// Python compiles no source with a NUL.
pub(super) fn refuse_nul(text: &str) -> Result<(), Unreadable> {
    if !text.as_bytes().contains(&0) {
        return Ok(());
    }
    let at = text.find('\0').unwrap_or_default();
    let line = line_at(text.as_bytes(), at);
    Err(Unreadable(format!("line {line} holds a NUL byte, with which Python compiles no file")))
}

impl Coding {
    /// The bytes in front of the text.
    pub(super) fn byte_order_mark(self) -> &'static [u8] {
        if self == (Self::Utf8 { marked: true }) { BYTE_ORDER_MARK } else { b"" }
    }

    pub(super) fn encode(self, text: &str) -> Result<Vec<u8>, Unreadable> {
        let unencodable =
            || Unreadable("its encoding has no bytes for a character of the edited text".to_owned());
        match self {
            Self::Utf8 { .. } => Ok([self.byte_order_mark(), text.as_bytes()].concat()),
            Self::Latin1 => {
                text.chars().map(u8::try_from).collect::<Result<_, _>>().map_err(|_| unencodable())
            }
            Self::Ascii if text.is_ascii() => Ok(text.as_bytes().to_vec()),
            Self::Ascii => Err(unencodable()),
            Self::Other { encoding, exact: false } => Err(Unreadable(format!(
                "{} stores some of its characters in more than one way, and lines that nobody edited would change",
                encoding.name()
            ))),
            Self::Other { encoding, exact: true } => match encoding.encode(text) {
                (bytes, _, false) => Ok(bytes.into_owned()),
                (_, _, true) => Err(unencodable()),
            },
        }
    }
}

/// Decodes, or gives the offset of the first byte that cannot be.
fn decode_other(encoding: &'static Encoding, bytes: &[u8]) -> Result<String, usize> {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let room = decoder.max_utf8_buffer_length_without_replacement(bytes.len()).ok_or(0_usize)?;
    let mut text = String::with_capacity(room);
    match decoder.decode_to_string_without_replacement(bytes, &mut text, true) {
        (DecoderResult::InputEmpty, _) => Ok(text),
        (DecoderResult::OutputFull, read) => Err(read),
        (DecoderResult::Malformed(bad, after), read) => Err(read.saturating_sub(usize::from(bad + after))),
    }
}

/// What a comment in the first two lines says: the expression of PEP 263.
fn declared(bytes: &[u8]) -> Option<String> {
    let mut lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r'));
    let first = lines.next()?;
    let after = bytes.get(first.len()..).unwrap_or_default();
    // The end of a line may be two bytes, between which `split` sees an empty line.
    let second = if after.starts_with(b"\r\n") { lines.nth(1) } else { lines.next() };
    [Some(first), second].into_iter().flatten().map_while(comment_or_blank).find_map(name_in_comment)
}

/// What is behind the `#`, or nothing of a blank line; no answer for code, behind which no declaration counts.
fn comment_or_blank(line: &[u8]) -> Option<&[u8]> {
    match line.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\x0c')) {
        None => Some(b""),
        Some(at) => line.get(at..)?.strip_prefix(b"#"),
    }
}

fn name_in_comment(comment: &[u8]) -> Option<String> {
    const WORD: &[u8] = b"coding";
    comment.windows(WORD.len()).enumerate().filter(|(_, window)| *window == WORD).find_map(|(at, _)| {
        let rest = comment.get(at + WORD.len()..)?;
        let rest = rest.strip_prefix(b":").or_else(|| rest.strip_prefix(b"="))?.trim_ascii_start();
        let name: String = rest
            .iter()
            .map(|byte| char::from(*byte))
            .take_while(|it| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.'))
            .collect();
        (!name.is_empty()).then_some(name)
    })
}

/// Python's names of encodings, of which the standard of the web knows most under the same ones.
fn coding_named(name: &str) -> Option<Coding> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let is_or_begins =
        |short: &str| name.strip_prefix(short).is_some_and(|it| it.is_empty() || it.starts_with('-'));
    let web = match &*name {
        "utf8" | "utf" | "u8" | "cp65001" => return Some(Coding::Utf8 { marked: false }),
        "latin1" | "iso8859-1" | "iso8859" | "8859" | "l1" | "latin" | "cp819" => {
            return Some(Coding::Latin1);
        }
        "ascii" | "us-ascii" | "646" | "ansi-x3.4-1968" | "iso646-us" | "us" => return Some(Coding::Ascii),
        _ if is_or_begins("utf-8") => return Some(Coding::Utf8 { marked: false }),
        _ if ["latin-1", "iso-8859-1", "iso-latin-1"].into_iter().any(is_or_begins) => {
            return Some(Coding::Latin1);
        }
        "cp932" | "ms932" | "mskanji" | "shiftjis" | "s-jis" | "shift-jis" | "sjis" => "shift_jis",
        "cp936" | "ms936" | "936" | "euccn" | "euc-cn" => "gbk",
        "cp949" | "ms949" | "949" | "uhc" | "euckr" => "euc-kr",
        "cp950" | "ms950" | "950" | "big5-tw" => "big5",
        "eucjp" | "ujis" | "u-jis" => "euc-jp",
        "gb18030-2000" => "gb18030",
        "iso2022-jp" | "iso2022jp" => "iso-2022-jp",
        "koi8r" => "koi8-r",
        "koi8u" => "koi8-u",
        "mac-roman" | "macroman" => "macintosh",
        "mac-cyrillic" | "maccyrillic" => "x-mac-cyrillic",
        "cp874" => "windows-874",
        other => other,
    };
    let encoding = Encoding::for_label_no_replacement(web.as_bytes())?;
    let of_python = encoding != encoding_rs::X_USER_DEFINED
        && encoding != encoding_rs::UTF_16LE
        && encoding != encoding_rs::UTF_16BE
        && encoding != encoding_rs::UTF_8;
    of_python.then_some(Coding::Other { encoding, exact: false })
}

pub(super) fn refuse_large(length: usize) -> Result<(), Unreadable> {
    if length > LARGEST {
        return Err(Unreadable(format!("it is larger than the {} MiB that can be looked at", LARGEST >> 20)));
    }
    Ok(())
}

/// The line of a byte, one-based.
fn line_at(bytes: &[u8], at: usize) -> usize {
    let before = bytes.get(..at).unwrap_or(bytes);
    let pairs = before.windows(2).filter(|it| *it == b"\r\n").count();
    before.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() - pairs + 1
}
