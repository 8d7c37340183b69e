//! Any bytes as a file: containers, pickles, JSON.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use vramscope_model::Symbols;

fuzz_target!(|bytes: &[u8]| {
    let mut symbols = Symbols::default();
    match vramscope_formats::read(Cursor::new(bytes), &mut symbols) {
        Ok(document) => assert!(!document.snapshot.truncated || !document.warnings.is_empty()),
        Err(e) => assert!(!e.to_string().is_empty()),
    }
});
