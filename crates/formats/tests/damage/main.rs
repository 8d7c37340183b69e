//! What damaged, foreign and hostile files do: never a panic, never endless work, always a message that helps.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests read files and fail loudly"
)]

mod bombs;
#[path = "../corpus/mod.rs"]
mod corpus;
mod flips;
mod recording;
mod strangers;
mod tails;
mod truncation;
mod values;

use std::time::{Duration, Instant};

use vramscope_formats::{Document, Error};
use vramscope_model::Symbols;

/// No file of this folder takes a second to read; one that takes so long makes the reader do what it should not.
const PATIENCE: Duration = Duration::from_secs(20);
/// Peak memory of all the tests here, which run side by side in one process.
const MEMORY: u64 = 1 << 30;

/// Reads bytes, and checks what holds whatever they are.
fn read(bytes: &[u8]) -> Result<(Document, Symbols), Error> {
    let begin = Instant::now();
    let (read, symbols) = corpus::read(bytes);
    assert!(begin.elapsed() < PATIENCE, "took {:?}", begin.elapsed());
    if let Some(peak) = peak_memory() {
        assert!(peak < MEMORY, "{} MiB of memory were needed", peak >> 20);
    }
    match read {
        Ok(document) => {
            for warning in &document.warnings {
                check_message(&warning.text);
                // The place is one in the unpacked stream, so it may lie behind the end of the file.
                assert!(!document.format.is_empty());
            }
            if document.snapshot.truncated {
                assert!(document.warnings.iter().any(|w| w.offset.is_some()), "no warning says where");
            }
            for event in document.snapshot.devices.iter().flat_map(|d| d.events.iter()) {
                for &frame in symbols.frames(event.stack) {
                    symbols.str(symbols.get_frame(frame).file);
                }
            }
            Ok((document, symbols))
        }
        Err(e) => {
            check_message(&e.to_string());
            assert!(e.hint().is_some(), "{e}: no hint");
            Err(e)
        }
    }
}

/// Lower case, one sentence, not a page long, no raw bytes.
fn check_message(text: &str) {
    assert!(!text.is_empty() && !text.ends_with('.'), "{text}");
    assert!(text.len() < 1000, "{} bytes: {}", text.len(), text.chars().take(200).collect::<String>());
    assert!(!text.chars().any(char::is_control), "{text:?}");
}

/// The message of an error.
fn refusal(bytes: &[u8]) -> String {
    match read(bytes) {
        Ok((document, _)) => panic!("it was read: {document:?}"),
        Err(e) => e.to_string(),
    }
}

/// The most memory that this process had at a time, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}
