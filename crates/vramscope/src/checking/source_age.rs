//! Whether source files were changed after a recording was made, so that its lines may no longer be theirs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use vramscope_view::analysis::Input;

/// Files that were copied or checked out together may be this far apart.
const TOGETHER: Duration = Duration::from_secs(10);

/// The files that were changed after the snapshots were written; none where it is not known when that was.
pub(super) fn changed_since<'p>(
    inputs: &[Input],
    files: impl Iterator<Item = &'p PathBuf>,
) -> BTreeSet<PathBuf> {
    let written: Option<Vec<SystemTime>> = inputs.iter().map(written).collect();
    let Some(last) = written.and_then(|times| times.into_iter().max()) else { return BTreeSet::new() };
    files
        .filter(|file| {
            modified(file).is_some_and(|time| time.duration_since(last).is_ok_and(|gap| gap > TOGETHER))
        })
        .cloned()
        .collect()
}

/// When a snapshot was written: a copy of it may be younger than what it tells of, never older.
fn written(input: &Input) -> Option<SystemTime> {
    let last_event = input.last_us.and_then(|us| u64::try_from(us).ok()).map(Duration::from_micros);
    let last_event = last_event.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
    modified(Path::new(&input.path)).map(|time| last_event.map_or(time, |event| event.max(time)))
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}

/// What is to be said of such files.
pub(super) fn note(changed: &BTreeSet<PathBuf>) -> Option<String> {
    let name = |path: &PathBuf| path.file_name().map(|it| format!("`{}`", it.to_string_lossy()));
    let first = changed.first().and_then(name)?;
    Some(match changed.len() - 1 {
        0 => format!("{first} was changed after the recording was made: lines may have moved"),
        1 => format!(
            "{first} and another file were changed after the recording was made: lines may have moved"
        ),
        n => format!(
            "{first} and {n} other files were changed after the recording was made: lines may have moved"
        ),
    })
}
