//! Puts recordings together with what the recorder wrote beside their snapshots.

use std::path::{Path, PathBuf};

use vramscope_model::{Recording, Symbols, join};
use vramscope_view::analysis::Input;
use vramscope_view::recorded::{RecorderFiles, Run, completed};

/// Each recording with the other files of its process, completed by them; those without any snapshot stand by
/// themselves.
pub(crate) fn paired(
    recordings: Vec<(Recording, Vec<Input>)>,
    mut files: Vec<RecorderFiles>,
    symbols: &mut Symbols,
) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (recording, inputs) in recordings {
        let directory = inputs.first().and_then(|input| real(Path::new(&input.path).parent()?));
        let its = |files: &RecorderFiles| directory.is_some() && real(Path::new(&files.path)) == directory;
        let files = files.iter().position(its).map(|i| files.remove(i));
        let recording = match &files {
            Some(files) => completed(recording, files, symbols),
            None => recording,
        };
        runs.push(Run { recording, inputs, files });
    }
    runs.extend(files.into_iter().map(|files| Run {
        recording: join(Vec::new(), files.rank),
        inputs: Vec::new(),
        files: Some(files),
    }));
    runs
}

fn real(path: &Path) -> Option<PathBuf> {
    // A file in the current directory has no directory in its name.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    path.canonicalize().ok()
}
