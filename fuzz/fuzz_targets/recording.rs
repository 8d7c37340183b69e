//! Any bytes as each of the small files of a recording, and what is shown of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vramscope_report::{Excerpts, Palette, json, markdown, text};

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = vramscope_formats::recorder::statistics(bytes) {
        assert!(!error.to_string().is_empty());
    }
    if let Err(error) = vramscope_formats::recorder::environment(bytes) {
        assert!(!error.to_string().is_empty());
    }
    match json::holders::parse(bytes) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(file) => {
            let again = json::holders::parse(json::holders::render(&file).as_bytes());
            assert_eq!(again.map(|file| file.holders.holders).ok().as_ref(), Some(&file.holders.holders));
            let (files, excerpts) = ([file], Excerpts::default());
            let palette = Palette::Plain;
            let layout = text::Layout { palette, width: 80, top: 5, verbose: true, excerpts: &excerpts };
            assert!(text::holders::render(&files, &layout).starts_with("HELD"));
            assert!(markdown::holders::render(&files, 5, true).starts_with("## Held"));
        }
    }
});
