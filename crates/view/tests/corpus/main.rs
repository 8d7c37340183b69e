//! What is said of the recordings in the corpus.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests read files and may fail")]

use std::path::{Path, PathBuf};

use vramscope_formats::Document;
use vramscope_model::Symbols;

mod damage;
mod diff;
mod inspect;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

/// Reads a file of the corpus.
fn read(path: &str, symbols: &mut Symbols) -> Document {
    let file = std::fs::File::open(corpus().join(path)).unwrap();
    vramscope_formats::read(file, symbols).unwrap()
}

/// The snapshots below a folder of the corpus, folder by folder.
fn folders(path: &str) -> Vec<Vec<String>> {
    let mut folders = Vec::new();
    let mut files = Vec::new();
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(corpus().join(path)).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        let name = format!("{path}/{}", entry.file_name().unwrap().to_str().unwrap());
        if entry.is_dir() {
            folders.extend(self::folders(&name));
        } else if [".pickle", ".zst", ".pt", ".gz", ".xz"].iter().any(|ending| name.ends_with(ending)) {
            files.push(name);
        }
    }
    if !files.is_empty() {
        folders.push(files);
    }
    folders
}
