//! From the bytes of a file to a [`Snapshot`], without ever failing half-way.
//!
//! A file is a format (pickle or JSON) inside any number of containers (gzip, zstd, xz, the zip that `torch.save`
//! writes). [`read`] peels the containers, asks each format of [`FORMATS`] whether it knows the beginning, and lets
//! that one read. What was readable is returned with warnings that say where it stopped and what that means;
//! only a file with nothing readable is an error.
//!
//! Formats do not know each other, nor what is done with what they read. They get a stream, never a path.

mod builder;
mod container;
mod error;
mod json;
mod keys;
mod pickle;
pub mod recorder;
mod tail;

use std::io::{Read, Seek};

use vramscope_model::{Snapshot, Symbols};

pub use container::Layer;
pub use error::{Error, Warning};

/// A way of writing snapshots down.
pub struct Format {
    /// What it is called when shown.
    pub name: &'static str,
    /// Whether a file that begins like this is one.
    sniff: fn(&[u8]) -> bool,
    /// Reads the stream to its end.
    read: fn(&mut dyn Read, &mut Symbols) -> Result<Parsed, Error>,
}

/// Every format, in the order in which they are asked.
pub const FORMATS: &[Format] = &[pickle::FORMAT, json::FORMAT];

/// What a format made of a stream.
struct Parsed {
    snapshot: Snapshot,
    warnings: Vec<Warning>,
    /// How it was written, in words: "pickle protocol 4".
    dialect: String,
    /// Where it ended; `None` if it did not come to its end.
    tail: Option<tail::Tail>,
}

/// What a file holds and what is wrong with it.
#[derive(Debug)]
pub struct Document {
    /// What was read.
    pub snapshot: Snapshot,
    /// What is wrong with the file, and what that means.
    pub warnings: Vec<Warning>,
    /// How the file is written, in words: "gzip, pickle protocol 5".
    pub format: String,
}

/// Reads one file.
///
/// Stacks, streams and texts go into `symbols`, which all files of a run should share.
///
/// # Errors
/// When nothing in the file can be read as a snapshot: the reason, and what to do about it.
pub fn read<R: Read + Seek>(mut file: R, symbols: &mut Symbols) -> Result<Document, Error> {
    let mut opened = container::open(&mut file)?;
    let head = opened.head.clone();
    if head.is_empty() {
        return Err(match opened.layers.last() {
            None => Error::Empty,
            Some(layer) => Error::Container { layer: layer.name(), reason: "it holds nothing".into() },
        });
    }
    let format = FORMATS.iter().find(|f| (f.sniff)(&head)).ok_or_else(|| Error::unknown(&head))?;
    let mut parsed = (format.read)(&mut opened.stream, symbols)?;
    parsed.warnings.splice(0..0, opened.warnings);
    if let Some(tail) = parsed.tail {
        let plain = opened.layers.is_empty().then_some(opened.length);
        parsed.warnings.extend(tail::examine(tail, &mut opened.stream, plain));
    }
    let mut words: Vec<String> = opened.layers.iter().map(|l| l.name().to_owned()).collect();
    words.push(parsed.dialect);
    Ok(Document { snapshot: parsed.snapshot, warnings: parsed.warnings, format: words.join(", ") })
}
