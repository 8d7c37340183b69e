//! JSON in the shape of a snapshot, as far as it goes, with any text behind.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use vramscope_model::Symbols;

fuzz_target!(|text: &[u8]| {
    let _ = vramscope_formats::read(Cursor::new(text), &mut Symbols::default());
    // The same as the value of a key, so that the words of a snapshot mean what they mean inside one.
    for head in [&b"{\"segments\":["[..], b"{\"device_traces\":[[", b"[{\"blocks\":["] {
        let _ = vramscope_formats::read(Cursor::new([head, text].concat()), &mut Symbols::default());
    }
});
