//! The text of a JSON file as the parser gets it.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};

use crate::tail::{LOOK, Tail};

/// Passes JSON on, counting its bytes so that damage can be told by its place.
///
/// Two things are mended on the way: the byte order mark that some editors put at the beginning is passed over, and the
/// numbers that Python's writer has and JSON has not (`NaN`, `Infinity`, `-Infinity`) become `null`.
pub(super) struct Text<'a> {
    stream: BufReader<&'a mut dyn Read>,
    /// How many bytes were passed over or on.
    n: &'a Cell<u64>,
    begun: bool,
    in_string: bool,
    escaped: bool,
    /// What is to be given instead of what was read, last first.
    instead: Vec<u8>,
}

/// The longest word that is looked at as a whole.
const LONGEST: usize = "Infinity".len();

impl<'a> Text<'a> {
    pub(super) fn new(stream: &'a mut dyn Read, n: &'a Cell<u64>) -> Self {
        Self {
            stream: BufReader::with_capacity(64 << 10, stream),
            n,
            begun: false,
            in_string: false,
            escaped: false,
            instead: Vec::new(),
        }
    }

    /// What was read beyond the value that has ended.
    pub(super) fn tail(&mut self) -> Tail {
        // White space may be long; it is no end.
        let mut offset = self.n.get();
        let error = loop {
            let ahead = match self.stream.fill_buf() {
                Ok(ahead) => ahead,
                Err(e) => break Some(e),
            };
            let blank = ahead.iter().take_while(|b| b.is_ascii_whitespace()).count();
            let is_all = blank == ahead.len() && blank > 0;
            self.stream.consume(blank);
            offset += blank as u64;
            if !is_all {
                break None;
            }
        };
        let rest = self.stream.buffer();
        Tail {
            offset,
            look: rest.get(..LOOK).unwrap_or(rest).to_vec(),
            read: rest.len() as u64,
            value: "JSON value",
            error,
            is_another: super::sniff,
            is_expected: false,
        }
    }

    fn next(&mut self) -> io::Result<Option<u8>> {
        let next = self.stream.fill_buf()?.first().copied();
        if next.is_some() {
            self.stream.consume(1);
            self.n.set(self.n.get() + 1);
        }
        Ok(next)
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        Ok(self.stream.fill_buf()?.first().copied())
    }

    #[cold]
    fn skip_mark(&mut self) -> io::Result<()> {
        self.begun = true;
        for want in *b"\xef\xbb\xbf" {
            if self.peek()? != Some(want) {
                break;
            }
            self.next()?;
        }
        Ok(())
    }

    /// Takes a word, of which the first byte was read, for what it means.
    #[cold]
    fn word(&mut self, first: u8) -> io::Result<u8> {
        let mut word = vec![first];
        let most = LONGEST + usize::from(first == b'-');
        while word.len() < most
            && let Some(letter) = self.peek()?.filter(u8::is_ascii_alphabetic)
        {
            word.push(letter);
            self.next()?;
        }
        if matches!(word.as_slice(), b"NaN" | b"Infinity" | b"-Infinity") {
            word = b"null".to_vec();
        }
        self.instead = word;
        self.instead.reverse();
        Ok(self.instead.pop().unwrap_or(first))
    }

    fn next_given(&mut self) -> io::Result<Option<u8>> {
        if let Some(byte) = self.instead.pop() {
            return Ok(Some(byte));
        }
        if !self.begun {
            self.skip_mark()?;
        }
        let Some(byte) = self.next()? else { return Ok(None) };
        if self.in_string {
            if self.escaped {
                self.escaped = false;
            } else if byte == b'\\' {
                self.escaped = true;
            } else if byte == b'"' {
                self.in_string = false;
            }
            return Ok(Some(byte));
        }
        Ok(Some(match byte {
            b'"' => {
                self.in_string = true;
                byte
            }
            b'N' | b'I' => self.word(byte)?,
            b'-' if self.peek()? == Some(b'I') => self.word(byte)?,
            _ => byte,
        }))
    }
}

impl Read for Text<'_> {
    /// The parser asks for one byte at a time.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut n = 0;
        for place in buf {
            let Some(byte) = self.next_given()? else { break };
            *place = byte;
            n += 1;
        }
        Ok(n)
    }
}
