//! From files to sources, several at once.

use std::hash::Hasher as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rustc_hash::FxHasher;
use vramscope_lint::Source;

use super::python_files::PythonFile;
use crate::failure::Failure;

/// Places in a source are 32-bit numbers, some of which are negative in formats that are written.
const LARGEST: u64 = 2 << 30;

/// Files as they were read.
#[derive(Debug, Default)]
pub(crate) struct ReadFiles {
    /// Those that could be read and decoded.
    pub(crate) sources: Vec<Source>,
    /// Where each of them is, in the same order.
    pub(crate) origins: Vec<Origin>,
    /// The others, by their paths as they are shown, and why not.
    pub(crate) unreadable: Vec<(String, String)>,
}

/// Where a source is from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// Absolute and without links; empty for the standard input.
    pub(crate) real: PathBuf,
    /// What was in it; nothing of the standard input.
    pub(crate) content: Option<Content>,
}

/// What a file held, so that it can be seen whether it still does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    length: usize,
    hash: u64,
}

impl Content {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(bytes);
        Self { length: bytes.len(), hash: hasher.finish() }
    }
}

/// Reads files; what cannot be read is told, and the others are there.
pub(crate) fn read(files: &[PythonFile], done: &(dyn Fn() + Sync)) -> ReadFiles {
    let each: Vec<_> = files
        .par_iter()
        .map(|file| {
            let result = read_one(file);
            done();
            result
        })
        .collect();
    let mut read = ReadFiles::default();
    for (file, result) in files.iter().zip(each) {
        read.add(&file.path, result);
    }
    read
}

/// Reads the standard input, as if it were a file of that name.
pub(crate) fn read_standard_input(name: Option<&Path>) -> anyhow::Result<ReadFiles> {
    let name = name.unwrap_or(Path::new("-"));
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| {
        Failure::error(
            format!("the standard input could not be read: {}", error.kind()),
            "pipe Python source into it",
        )
    })?;
    let real = name.canonicalize().or_else(|_| std::path::absolute(name)).unwrap_or_default();
    let mut read = ReadFiles::default();
    read.add(name, decoded(name, &bytes).map(|source| (source, Origin { real, content: None })));
    Ok(read)
}

impl ReadFiles {
    fn add(&mut self, path: &Path, result: Result<(Source, Origin), String>) {
        match result {
            Ok((source, origin)) => {
                self.sources.push(source);
                self.origins.push(origin);
            }
            Err(why) => self.unreadable.push((path.display().to_string(), why)),
        }
    }
}

fn read_one(file: &PythonFile) -> Result<(Source, Origin), String> {
    let failed = |error: &std::io::Error| format!("could not be read: {}", error.kind());
    let metadata = file.real.metadata().map_err(|error| failed(&error))?;
    // A pipe or a device may have no end.
    if !metadata.is_file() {
        return Err("no regular file, so it was not read; `-` reads the standard input".to_owned());
    }
    if metadata.len() > LARGEST {
        return Err(too_large());
    }
    #[expect(clippy::disallowed_methods, reason = "the command line opens files")]
    let bytes = std::fs::read(&file.real).map_err(|error| failed(&error))?;
    let source = decoded(&file.path, &bytes)?;
    Ok((source, Origin { real: file.real.clone(), content: Some(Content::of(&bytes)) }))
}

fn decoded(path: &Path, bytes: &[u8]) -> Result<Source, String> {
    if bytes.len() as u64 > LARGEST {
        return Err(too_large());
    }
    Source::read(path.display().to_string(), bytes).map_err(|why| why.0)
}

fn too_large() -> String {
    "larger than 2 GiB, so it was not read".to_owned()
}
