//! The directories that `vramscope run` writes: which files of one belong to which process, and which of several
//! recordings is meant.
//!
//! A recording is a directory with `environment.json`, `statistics.csv`, `events.jsonl`, snapshots and holders; a job of
//! several processes has one with `rank0/`, `rank1/` … in it, and processes that the program started have `process<id>/`. `.vramscope` holds the recordings, and `latest` is a link to
//! the newest.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::inputs;
use crate::printer::Printer;

/// Where the recorder writes unless told otherwise.
pub(crate) const HOME: &str = ".vramscope";

const ENVIRONMENT: &str = "environment.json";
const STATISTICS: &str = "statistics.csv";
const EVENTS: &str = "events.jsonl";
/// How the names of files with holders end.
const HOLDERS: &str = ".holders.json";
/// What was found, as text.
const REPORT: &str = "report.txt";
/// The link to the newest recording.
const LATEST: &str = "latest";

/// The files of one process of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// The directory that they are in.
    pub(crate) directory: PathBuf,
    /// The rank that its path names.
    pub(crate) rank: Option<u32>,
    pub(crate) environment: Option<PathBuf>,
    pub(crate) statistics: Option<PathBuf>,
    /// In the order of their names.
    pub(crate) holders: Vec<PathBuf>,
}

/// What a directory of several recordings was taken for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) home: PathBuf,
    pub(crate) taken: PathBuf,
    /// How many there are.
    pub(crate) of: usize,
}

/// Puts the newest recording in the place of each directory that holds recordings.
pub(crate) fn chosen(paths: &[PathBuf]) -> (Vec<PathBuf>, Vec<Choice>) {
    let mut choices = Vec::new();
    let paths = paths.iter().map(|path| match choose(path) {
        Some(choice) => {
            let taken = choice.taken.clone();
            choices.push(choice);
            taken
        }
        None => path.clone(),
    });
    (paths.collect(), choices)
}

/// The same, and says which one was taken.
pub(crate) fn chosen_aloud(paths: &[PathBuf], printer: &Printer) -> Vec<PathBuf> {
    let (paths, choices) = chosen(paths);
    for Choice { home, taken, of } in choices {
        let (home, taken) = (home.display(), taken.display());
        let all = if of == 1 { "one recording".to_owned() } else { format!("{of} recordings") };
        printer.note(&format!("`{home}` holds {all}; the latest is taken: `{taken}`"));
    }
    paths
}

/// The paths that were named; where none was, those of the recorder.
///
/// # Errors
/// When nothing was named and the recorder wrote nothing here.
pub(crate) fn named_or_here(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    if !paths.is_empty() {
        return Ok(paths.to_vec());
    }
    let here = PathBuf::from(HOME);
    if here.is_dir() {
        return Ok(vec![here]);
    }
    Err(Failure::error(
        format!("nothing was named, and there is no `{HOME}` here"),
        "name snapshots or a directory, or record the program with `vramscope run train.py`",
    ))
}

/// The directory of the recorder that a snapshot lies in, as one name however it is reached.
pub(crate) fn part_of(snapshot: &Path) -> Option<PathBuf> {
    let directory = snapshot.canonicalize().ok()?.parent()?.to_owned();
    part(&directory, None)?;
    Some(directory)
}

fn choose(home: &Path) -> Option<Choice> {
    if !home.is_dir() || is_recording(home) {
        return None;
    }
    let recordings: Vec<PathBuf> =
        subdirectories(home).into_iter().filter(|path| is_recording(path)).collect();
    let is_link = |path: &Path| path.file_name().is_some_and(|name| name == LATEST);
    // What the link leads to is shown by its own name, which says when it was recorded.
    let latest = home.join(LATEST).canonicalize().ok();
    let named: Vec<&PathBuf> = recordings.iter().filter(|path| !is_link(path)).collect();
    let same = |path: &&&PathBuf| latest.is_some() && path.canonicalize().ok() == latest;
    let linked = named.iter().find(same).copied();
    let taken = linked.or_else(|| recordings.iter().find(|path| is_link(path))).or(named.last().copied())?;
    Some(Choice { home: home.to_owned(), taken: taken.clone(), of: named.len().max(1) })
}

/// The parts of the recordings among some paths, each once.
pub(crate) fn parts(paths: &[PathBuf]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for path in paths.iter().filter(|path| path.is_dir()) {
        for part in parts_of(path) {
            let same =
                |known: &Part| known.directory.canonicalize().ok() == part.directory.canonicalize().ok();
            if !parts.iter().any(same) {
                parts.push(part);
            }
        }
    }
    parts
}

fn parts_of(recording: &Path) -> Vec<Part> {
    let below = processes(recording);
    let mut parts: Vec<Part> = below.iter().filter_map(|path| part(path, Some(recording))).collect();
    // One rank of a job may be named by itself; its surroundings are then written above it.
    let above = recording.parent().filter(|_| inputs::rank(recording).is_some());
    let own = part(recording, above);
    // Where there are ranks, the surroundings are all that is written for the job as a whole.
    let is_process = |own: &Part| parts.is_empty() || own.statistics.is_some() || !own.holders.is_empty();
    parts.splice(0..0, own.filter(is_process));
    parts
}

fn part(directory: &Path, above: Option<&Path>) -> Option<Part> {
    let file = |name: &str| Some(directory.join(name)).filter(|path| path.is_file());
    let holders: Vec<PathBuf> =
        files(directory).into_iter().filter(|path| name(path).ends_with(HOLDERS)).collect();
    let (own, statistics) = (file(ENVIRONMENT), file(STATISTICS));
    if own.is_none() && statistics.is_none() && holders.is_empty() && file(EVENTS).is_none() {
        return None;
    }
    let shared = || above.map(|above| above.join(ENVIRONMENT)).filter(|path| path.is_file());
    let rank = directory.file_name().and_then(|name| inputs::rank(Path::new(name)));
    Some(Part {
        directory: directory.to_owned(),
        rank,
        environment: own.or_else(shared),
        statistics,
        holders,
    })
}

fn is_recording(directory: &Path) -> bool {
    part(directory, None).is_some() || processes(directory).iter().any(|path| part(path, None).is_some())
}

/// Whether a file is one that the recorder writes beside snapshots.
pub(crate) fn is_beside_snapshots(path: &Path) -> bool {
    let name = name(path);
    [ENVIRONMENT, STATISTICS, EVENTS, REPORT].contains(&name.as_str()) || name.ends_with(HOLDERS)
}

/// Whether a file is the answer that the recorder leaves in a recording. It is not read.
pub(crate) fn is_report(path: &Path) -> bool {
    name(path) == REPORT && path.parent().is_some_and(is_recording)
}

/// Whether a file holds holders, by its name.
pub(crate) fn is_of_holders(path: &Path) -> bool {
    name(path).ends_with(HOLDERS)
}

/// `rank0/`, `rank1/` …, `process4711/` below a directory.
fn processes(directory: &Path) -> Vec<PathBuf> {
    let is_numbered =
        |name: &str, word: &str| name.strip_prefix(word).is_some_and(|n| n.parse::<u32>().is_ok());
    let is_process = |path: &PathBuf| {
        let name = name(path);
        is_numbered(&name, "rank") || is_numbered(&name, "process")
    };
    subdirectories(directory).into_iter().filter(is_process).collect()
}

fn subdirectories(directory: &Path) -> Vec<PathBuf> {
    entries(directory, Metadata::is_dir)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    entries(directory, Metadata::is_file)
}

fn entries(directory: &Path, wanted: impl Fn(&Metadata) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.metadata().is_ok_and(|data| wanted(&data))).collect();
    paths.sort_by_cached_key(|path| inputs::natural(path));
    paths
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        dir
    }

    fn shown(dir: &tempfile::TempDir, path: &Path) -> String {
        path.strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn a_recording_has_a_part_for_each_process() {
        let dir = directory(&[
            "a/environment.json",
            "a/rank0/statistics.csv",
            "a/rank1/statistics.csv",
            "a/rank1/window10.holders.json",
            "a/rank1/window9.holders.json",
            "c/statistics.csv",
            "c/process12/statistics.csv",
            "b/environment.json",
            "b/window1.pickle",
            "plain/step1.pickle",
        ]);
        let paths = ["a", "a/rank1", "b", "c", "plain"].map(|name| dir.path().join(name));
        let parts = parts(&paths);
        let found: Vec<(String, Option<u32>, bool, usize)> = parts
            .iter()
            .map(|part| {
                (shown(&dir, &part.directory), part.rank, part.environment.is_some(), part.holders.len())
            })
            .collect();
        assert_eq!(
            found,
            [
                ("a/rank0".to_owned(), Some(0), true, 0),
                ("a/rank1".to_owned(), Some(1), true, 2),
                ("b".to_owned(), None, true, 0),
                ("c".to_owned(), None, false, 0),
                ("c/process12".to_owned(), None, false, 0)
            ]
        );
        assert!(parts[1].holders[0].ends_with("window9.holders.json"));
    }

    #[test]
    fn of_several_recordings_the_newest_is_taken() {
        let dir = directory(&[
            ".vramscope/2026-01-01T10-00-00-7/environment.json",
            ".vramscope/2026-01-02T10-00-00-8/rank0/events.jsonl",
            ".vramscope/notes/x.txt",
        ]);
        let home = dir.path().join(".vramscope");
        let check = |want: &str| {
            let (paths, choices) = chosen(std::slice::from_ref(&home));
            assert_eq!(shown(&dir, &paths[0]), format!(".vramscope/{want}"));
            assert_eq!(choices[0].of, 2);
        };
        check("2026-01-02T10-00-00-8");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("2026-01-01T10-00-00-7", home.join("latest")).unwrap();
            check("2026-01-01T10-00-00-7");
            std::fs::remove_dir_all(home.join("2026-01-01T10-00-00-7")).unwrap();
            let (paths, _) = chosen(&[home]);
            assert_eq!(shown(&dir, &paths[0]), ".vramscope/2026-01-02T10-00-00-8", "the link leads nowhere");
        }
    }

    #[test]
    fn other_directories_stay_what_they_are() {
        let dir = directory(&["a/environment.json", "plain/step1.pickle"]);
        for name in ["a", "plain", "nothing"] {
            let path = dir.path().join(name);
            assert_eq!(chosen(std::slice::from_ref(&path)), (vec![path], vec![]));
        }
    }
}
