//! The recordings in `corpus/`, as the tests of this crate read them.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests read files and fail loudly"
)]

use std::io::{Cursor, Read as _};
use std::path::{Path, PathBuf};

use vramscope_formats::{Document, Error};
use vramscope_model::Symbols;

/// Where the recordings are.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

/// The bytes of a file, as they are on the disk.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let path = root().join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The bytes of a file without its compression.
pub(crate) fn unpacked(name: &str) -> Vec<u8> {
    let raw = bytes(name);
    let mut out = Vec::new();
    match Path::new(name).extension().and_then(|e| e.to_str()) {
        Some("zst") => zstd::stream::read::Decoder::new(&raw[..]).unwrap().read_to_end(&mut out).unwrap(),
        Some("gz") => flate2::read::GzDecoder::new(&raw[..]).read_to_end(&mut out).unwrap(),
        Some("xz") => liblzma::read::XzDecoder::new(&raw[..]).read_to_end(&mut out).unwrap(),
        _ => return raw,
    };
    out
}

/// Reads bytes as a file of their own.
pub(crate) fn read(bytes: &[u8]) -> (Result<Document, Error>, Symbols) {
    let mut symbols = Symbols::default();
    (vramscope_formats::read(Cursor::new(bytes), &mut symbols), symbols)
}
