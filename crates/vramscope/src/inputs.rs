//! From what the user typed to a list of files, each with the rank that its path names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Directories deeper than this below a given one are not entered.
const DEPTH: usize = 16;

/// A file that may be a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    /// The rank that the path names.
    pub(crate) rank: Option<u32>,
    /// Whether the user named this very file, rather than a directory with it.
    pub(crate) named: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    pub(crate) files: Vec<Input>,
    /// Paths that lead nowhere.
    pub(crate) errors: Vec<anyhow::Error>,
}

/// Looks up paths, directories and patterns, in the order given; in directories, numbers in names count as numbers.
/// A file that is named twice is taken once.
pub(crate) fn find(paths: &[PathBuf]) -> Inputs {
    let mut inputs = Inputs::default();
    let mut seen = BTreeSet::new();
    for path in paths {
        if path.is_dir() {
            let mut files = Vec::new();
            walk(path, 0, &mut BTreeSet::new(), &mut files);
            if files.is_empty() {
                inputs.errors.push(Failure::error(
                    format!("`{}` holds no files", path.display()),
                    "give the directory that the snapshots were written to",
                ));
            }
            inputs.add(files, false, &mut seen);
        } else if path.exists() {
            inputs.add(vec![path.clone()], true, &mut seen);
        } else {
            match matches(path) {
                Ok(files) => inputs.add(files, false, &mut seen),
                Err(error) => inputs.errors.push(error),
            }
        }
    }
    inputs
}

impl Inputs {
    fn add(&mut self, paths: Vec<PathBuf>, named: bool, seen: &mut BTreeSet<PathBuf>) {
        for path in paths {
            if seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())) {
                let rank = rank(&path);
                self.files.push(Input { path, rank, named });
            }
        }
    }
}

/// The files that a pattern matches, for shells that leave patterns as they are.
fn matches(pattern: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let missing = || {
        Failure::error(
            format!("`{}` does not exist", pattern.display()),
            "give a snapshot, a directory with snapshots or a pattern such as `run/*.pickle`",
        )
    };
    let text = pattern.to_str().filter(|text| text.contains(['*', '?', '['])).ok_or_else(missing)?;
    let found = glob::glob(text).map_err(|e| {
        Failure::error(
            format!("`{text}` is not a pattern: {}", e.msg),
            "put characters such as `[` in brackets: `[[]`",
        )
    })?;
    let mut files: Vec<PathBuf> = Vec::new();
    for path in found.filter_map(Result::ok) {
        if path.is_dir() {
            walk(&path, 0, &mut BTreeSet::new(), &mut files);
        } else {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(Failure::error(
            format!("`{text}` matches no file"),
            "the pattern is relative to the current directory; `**` stands for any directories",
        ));
    }
    files.sort_by_cached_key(|path| natural(path));
    Ok(files)
}

/// Collects files below a directory. Hidden ones are left out; links are followed, but no directory is entered twice.
fn walk(directory: &Path, depth: usize, entered: &mut BTreeSet<PathBuf>, files: &mut Vec<PathBuf>) {
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    if depth > DEPTH || !entered.insert(real) {
        return;
    }
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| entry.path())
        .collect();
    paths.sort_by_cached_key(|path| natural(path));
    for path in paths {
        if path.is_dir() {
            walk(&path, depth + 1, entered, files);
        } else if path.is_file() {
            files.push(path);
        }
    }
}

/// A part of a name, so that `step9` comes before `step10`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Number(u128),
    Text(String),
}

pub(crate) fn natural(path: &Path) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest: &str = &path.to_string_lossy();
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        parts.push(match part.parse() {
            Ok(number) if is_digit => Part::Number(number),
            _ => Part::Text(part.to_owned()),
        });
        rest = after;
    }
    parts
}

/// The rank that a path names: `rank0/…`, `rank_1/…`, `…_rank1.pickle`, `rank=2`. The file's own name counts more than
/// its directory's.
pub(crate) fn rank(path: &Path) -> Option<u32> {
    path.components().rev().find_map(|component| rank_in(&component.as_os_str().to_string_lossy()))
}

fn rank_in(name: &str) -> Option<u32> {
    let name = name.to_ascii_lowercase();
    name.match_indices("rank").find_map(|(at, word)| {
        // `frank1` is no rank; `local_rank1` is one.
        if name.get(..at)?.ends_with(|c: char| c.is_alphanumeric()) {
            return None;
        }
        let rest = name.get(at + word.len()..)?;
        let rest = rest.strip_prefix(['_', '-', '.', '=', ' ']).unwrap_or(rest);
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest.get(..end)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_read_from_paths() {
        for (path, want) in [
            ("run/rank0/step20.pickle", Some(0)),
            ("run/rank_12/step20.pickle", Some(12)),
            ("run/rank3_memory_snapshot.pickle", Some(3)),
            ("run/snapshot_rank1.pickle", Some(1)),
            ("run/snapshot-rank-7.pickle.gz", Some(7)),
            ("run/global_rank=5.pickle", Some(5)),
            ("rank0/snapshot_Rank1.pickle", Some(1)),
            ("run/frank1.pickle", None),
            ("run/ranking.pickle", None),
            ("run/step20.pickle", None),
        ] {
            assert_eq!(rank(Path::new(path)), want, "{path}");
        }
    }

    #[test]
    fn numbers_in_names_count_as_numbers() {
        let mut names: Vec<&Path> = ["s10", "s9", "s1.b", "a2/s1", "a10/s1"].map(Path::new).to_vec();
        names.sort_by_cached_key(|path| natural(path));
        assert_eq!(names, ["a2/s1", "a10/s1", "s1.b", "s9", "s10"].map(Path::new));
    }

    #[test]
    fn directories_are_walked_in_natural_order_without_hidden_files() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["rank10/s.pickle", "rank2/s.pickle", "rank2/.hidden", ".git/x"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let inputs = find(&[dir.path().to_owned(), dir.path().join("rank2/s.pickle")]);
        let ranks: Vec<_> = inputs.files.iter().map(|input| (input.rank, input.named)).collect();
        assert_eq!(ranks, [(Some(2), false), (Some(10), false)]);
        let pattern = find(&[dir.path().join("rank*/*.pickle")]);
        assert_eq!(pattern.files.len(), 2);
        let nothing = find(&[dir.path().join("nothing"), dir.path().join("no*")]);
        let errors: Vec<String> = nothing.errors.iter().map(ToString::to_string).collect();
        assert!(errors[0].ends_with("nothing` does not exist"), "{errors:?}");
        assert!(errors[1].ends_with("no*` matches no file"), "{errors:?}");
    }
}
