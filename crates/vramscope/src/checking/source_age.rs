//! Whether source files were changed after a recording was made, so that its lines may no longer be theirs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use vramscope_view::analysis::Input;

/// Files that were written one after the other, as a program ends, may be this far apart.
const TOGETHER: Duration = Duration::from_secs(10);
/// Files that were copied or checked out together may be this far apart.
const CHECKED_OUT: Duration = Duration::from_mins(2);

/// The files that were changed after the snapshots were written; none where it is not known when that was.
pub(super) fn changed_since<'p>(
    inputs: &[Input],
    files: impl Iterator<Item = &'p PathBuf>,
) -> BTreeSet<PathBuf> {
    let ages: Option<Vec<Age>> = inputs.iter().map(Age::of).collect();
    let Some(ages) = ages.filter(|it| !it.is_empty()) else { return BTreeSet::new() };
    let is_younger =
        |file: &Path| modified(file).is_some_and(|time| ages.iter().all(|it| it.is_before(time)));
    files.filter(|file| is_younger(file)).cloned().collect()
}

/// When a snapshot was made.
struct Age {
    /// Its last event, where events have times.
    last_event: Option<SystemTime>,
    /// When its file was written, perhaps as a copy.
    file: SystemTime,
}

impl Age {
    fn of(input: &Input) -> Option<Self> {
        let since = input.last_us.and_then(|us| u64::try_from(us).ok()).map(Duration::from_micros);
        let last_event = since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
        Some(Self { last_event, file: modified(Path::new(&input.path))? })
    }

    /// Whether a source of this age is younger. One that is younger than the events and older than the file was changed before the file
    /// was copied, or came here with it.
    fn is_before(&self, source: SystemTime) -> bool {
        let is_later = |than: SystemTime, by: Duration| source.duration_since(than).is_ok_and(|gap| gap > by);
        let came_together = match source.duration_since(self.file) {
            Ok(gap) => gap <= TOGETHER,
            Err(earlier) => earlier.duration() <= CHECKED_OUT,
        };
        match self.last_event {
            Some(event) => is_later(event, TOGETHER) && !came_together,
            None => is_later(self.file, TOGETHER),
        }
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}

/// What is to be said of such files.
pub(super) fn note(changed: &BTreeSet<PathBuf>) -> Option<String> {
    let name = |path: &PathBuf| path.file_name().map(|it| format!("`{}`", it.to_string_lossy()));
    let first = changed.first().and_then(name)?;
    Some(match changed.len() - 1 {
        0 => format!(
            "{first} was changed after the recording was made: lines may have moved, and what was wrong may be fixed already"
        ),
        1 => format!(
            "{first} and another file were changed after the recording was made: lines may have moved, and what was wrong may be fixed already"
        ),
        n => format!(
            "{first} and {n} other files were changed after the recording was made: lines may have moved, and what was wrong may be fixed already"
        ),
    })
}
