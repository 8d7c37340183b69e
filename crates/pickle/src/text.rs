//! How protocol 0 writes numbers and texts.

use crate::error::ErrorKind;

pub(crate) fn parse_text<T: std::str::FromStr>(line: &[u8]) -> Result<T, ErrorKind> {
    std::str::from_utf8(line).ok().and_then(|s| s.trim().parse().ok()).ok_or(ErrorKind::BadNumber)
}

/// The text of protocol 0's STRING: quoted, with Python's backslash escapes.
pub(crate) fn unquote(line: &[u8]) -> Vec<u8> {
    let inner = match line {
        [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] => inner,
        _ => line,
    };
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied();
    while let Some(b) = bytes.next() {
        if b != b'\\' {
            out.push(b);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(b'a') => out.push(0x07),
            Some(b'b') => out.push(0x08),
            Some(b'v') => out.push(0x0b),
            Some(b'f') => out.push(0x0c),
            Some(b'x') => {
                let digits = [bytes.next().unwrap_or(b'0'), bytes.next().unwrap_or(b'0')];
                out.push(parse_hex(&digits) as u8);
            }
            Some(other) => out.push(other),
            None => out.push(b'\\'),
        }
    }
    out
}

/// The text of protocol 0's UNICODE: `raw-unicode-escape`, that is Latin-1 with `\uXXXX` and `\UXXXXXXXX`.
pub(crate) fn unescape(line: &[u8]) -> Vec<u8> {
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    while let Some(&b) = line.get(at) {
        let digits = match line.get(at + 1) {
            Some(b'u') if b == b'\\' => 4,
            Some(b'U') if b == b'\\' => 8,
            _ => 0,
        };
        match line.get(at + 2..at + 2 + digits) {
            Some(hex) if digits > 0 => {
                out.push(char::from_u32(parse_hex(hex)).unwrap_or(char::REPLACEMENT_CHARACTER));
                at += 2 + digits;
            }
            _ => {
                out.push(char::from(b));
                at += 1;
            }
        }
    }
    out.into_bytes()
}

fn parse_hex(digits: &[u8]) -> u32 {
    std::str::from_utf8(digits).ok().and_then(|s| u32::from_str_radix(s, 16).ok()).unwrap_or(0)
}
