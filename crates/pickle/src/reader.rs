//! The arguments of opcodes, read from a piece of the file.

use crate::error::ErrorKind;
use crate::sink::Limits;

/// The bytes at hand and a place in them. Where an argument is not all there, `needed` says how many bytes
/// beyond `at` would be.
pub(crate) struct Reader<'a> {
    pub(crate) buf: &'a [u8],
    pub(crate) at: usize,
    pub(crate) needed: usize,
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        if let Some(bytes) = self.buf.get(self.at..).and_then(|rest| rest.get(..n)) {
            self.at += n;
            Some(bytes)
        } else {
            self.needed = n;
            None
        }
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        if let Some(&bytes) = self.buf.get(self.at..).and_then(|rest| rest.first_chunk::<N>()) {
            self.at += N;
            Some(bytes)
        } else {
            self.needed = N;
            None
        }
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[b]| b)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn long_bytes(&mut self, n: u64, limits: &Limits) -> Result<Option<&'a [u8]>, ErrorKind> {
        if n > limits.value_bytes {
            return Err(ErrorKind::TooLong { declared: n, limit: limits.value_bytes });
        }
        Ok(self.bytes(n as usize))
    }

    /// Bytes up to the next newline, which is passed over.
    pub(crate) fn line(&mut self, limits: &Limits) -> Result<Option<&'a [u8]>, ErrorKind> {
        let rest = self.buf.get(self.at..).unwrap_or(&[]);
        if let Some(n) = rest.iter().position(|&b| b == b'\n') {
            let line = rest.get(..n).unwrap_or(&[]);
            self.at += n + 1;
            return Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)));
        }
        if rest.len() as u64 > limits.value_bytes {
            return Err(ErrorKind::TooLong { declared: rest.len() as u64, limit: limits.value_bytes });
        }
        self.needed = rest.len() + 1;
        Ok(None)
    }
}
