//! From paths to Python files and notebooks.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::{DirEntry, WalkBuilder};

use super::patterns::Patterns;
use crate::failure::Failure;

/// Directories of what others wrote or tools made; those of virtual environments are known by what is in them.
const LEFT_OUT: [&str; 9] = [
    "__pycache__",
    "__pypackages__",
    "_build",
    "build",
    "buck-out",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
];

/// A file to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PythonFile {
    /// As it was named or found.
    pub(crate) path: PathBuf,
    /// Absolute and without links.
    pub(crate) real: PathBuf,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct PythonFiles {
    pub(crate) files: Vec<PythonFile>,
    /// Paths that lead nowhere, and directories that cannot be read.
    pub(crate) errors: Vec<anyhow::Error>,
}

/// Looks up files, and directories for the files in them, by name. What is named outright is taken whatever its name; what
/// `excluded` matches never is. Links to files are followed, those to directories only if named. Each file is taken once.
pub(crate) fn find(paths: &[PathBuf], respects_gitignore: bool, excluded: &Arc<[Patterns]>) -> PythonFiles {
    let mut found = PythonFiles::default();
    let mut seen = HashSet::new();
    for path in paths {
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error) => {
                found.errors.push(nowhere(path, &error));
                continue;
            }
        };
        if real.is_dir() {
            let before = found.files.len();
            walk(path, &real, respects_gitignore, excluded, usize::MAX, &mut found);
            // What is named outright is taken even if a directory above ignores all that is in it.
            if respects_gitignore && found.files.len() == before {
                walk_ignored(path, &real, excluded, &mut found);
            }
        } else if !is_excluded(excluded, &real) {
            found.files.push(PythonFile { path: path.clone(), real });
        }
    }
    found.files.retain(|file| seen.insert(file.real.clone()));
    found
}

/// Looks up the files in a folder as [`find`] does; nothing if it has more than `most` entries.
pub(crate) fn find_in_folder(folder: &Path, excluded: &Arc<[Patterns]>, most: usize) -> Option<PythonFiles> {
    let mut found = PythonFiles::default();
    let mut seen = HashSet::new();
    walk(folder, folder, true, excluded, most, &mut found).then_some(())?;
    found.files.retain(|file| seen.insert(file.real.clone()));
    Some(found)
}

fn nowhere(path: &Path, error: &std::io::Error) -> anyhow::Error {
    let path = path.display();
    if error.kind() == std::io::ErrorKind::NotFound {
        Failure::error(
            format!("`{path}` does not exist"),
            "give Python files, notebooks or directories with them; without any, the current directory is checked",
        )
    } else {
        Failure::error(
            format!("`{path}` could not be opened: {}", error.kind()),
            "see to whom it belongs, and who may read it",
        )
    }
}

fn is_excluded(excluded: &[Patterns], real: &Path) -> bool {
    excluded.iter().any(|patterns| patterns.match_path(real))
}

/// Looks into a directory that those above it ignore.
fn walk_ignored(root: &Path, real: &Path, excluded: &Arc<[Patterns]>, found: &mut PythonFiles) {
    let mut builder = walker(root, real, true, excluded);
    builder.parents(false);
    collect(&builder, root, real, usize::MAX, found);
}

/// Whether there were no more than `most` entries.
fn walk(
    root: &Path,
    real: &Path,
    respects_gitignore: bool,
    excluded: &Arc<[Patterns]>,
    most: usize,
    found: &mut PythonFiles,
) -> bool {
    collect(&walker(root, real, respects_gitignore, excluded), root, real, most, found)
}

fn walker(root: &Path, real: &Path, respects_gitignore: bool, excluded: &Arc<[Patterns]>) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    builder
        .standard_filters(respects_gitignore)
        .hidden(true)
        .require_git(false)
        .follow_links(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry({
            let (root, real, excluded) = (root.to_owned(), real.to_owned(), Arc::clone(excluded));
            move |entry| {
                let is_root = entry.depth() == 0;
                let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
                (is_root || !is_directory || !is_of_others(entry.path()))
                    && !is_excluded(&excluded, &real_path(entry.path(), &root, &real))
            }
        });
    builder
}

fn collect(builder: &WalkBuilder, root: &Path, real: &Path, most: usize, found: &mut PythonFiles) -> bool {
    for (index, entry) in builder.build().enumerate() {
        if index >= most {
            return false;
        }
        match entry {
            Ok(entry) => found.files.extend(python_file(&entry, root, real)),
            Err(error) => found.errors.push(Failure::error(
                error.to_string(),
                "leave it out with `--exclude`, or see who may read it",
            )),
        }
    }
    true
}

/// The file of an entry, if it is one to check.
fn python_file(entry: &DirEntry, root: &Path, real: &Path) -> Option<PythonFile> {
    let path = entry.path();
    let is_python = path.extension().is_some_and(|ending| ending == "py" || ending == "ipynb");
    let kind = entry.file_type().filter(|_| is_python)?;
    let real = if kind.is_symlink() {
        // A link that leads nowhere or to a directory is no file of the project.
        path.canonicalize().ok().filter(|real| real.is_file())?
    } else {
        kind.is_file().then(|| real_path(path, root, real))?
    };
    let path = path.strip_prefix(".").unwrap_or(path).to_owned();
    Some(PythonFile { path, real })
}

/// Below a directory without links a path has none, either.
fn real_path(path: &Path, root: &Path, real: &Path) -> PathBuf {
    match path.strip_prefix(root) {
        Ok(below) if !below.as_os_str().is_empty() => real.join(below),
        _ => real.to_owned(),
    }
}

/// Whether a directory holds what others wrote or tools made.
pub(crate) fn is_of_others(directory: &Path) -> bool {
    let is_known =
        directory.file_name().and_then(|name| name.to_str()).is_some_and(|name| LEFT_OUT.contains(&name));
    is_known || directory.join("pyvenv.cfg").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, if name.ends_with(".gitignore") { "ignored.py\n" } else { "" }).unwrap();
        }
        dir
    }

    /// Names below `dir` of what is found at these paths, and errors.
    fn found(dir: &Path, paths: &[&str], respects_gitignore: bool, exclude: &[&str]) -> (String, usize) {
        let real = dir.canonicalize().unwrap();
        let patterns = Patterns::new(&real, exclude.iter().copied()).unwrap();
        let paths: Vec<PathBuf> = paths.iter().map(|path| dir.join(path)).collect();
        let found = find(&paths, respects_gitignore, &Arc::from([patterns]));
        let names: Vec<_> = found
            .files
            .iter()
            .map(|file| file.path.strip_prefix(dir).unwrap().display().to_string())
            .collect();
        (names.join(" "), found.errors.len())
    }

    #[test]
    fn what_is_python_is_found_and_what_others_wrote_is_left_out() {
        let dir = tree(&[
            "a.py",
            "b.ipynb",
            "c.pyi",
            "d.txt",
            "script",
            ".hidden/x.py",
            ".gitignore",
            "ignored.py",
            "build/x.py",
            "env/pyvenv.cfg",
            "env/lib/x.py",
            "env2/x.py",
            "node_modules/x.py",
            "sub/z.py",
        ]);
        let dir = dir.path();
        assert_eq!(found(dir, &[""], true, &[]), ("a.py b.ipynb env2/x.py sub/z.py".into(), 0));
        assert_eq!(found(dir, &[""], false, &["sub", "env2/*.py"]), ("a.py b.ipynb ignored.py".into(), 0));
        assert_eq!(
            found(dir, &["build", "c.pyi", "script", "ignored.py"], true, &[]),
            ("build/x.py c.pyi script ignored.py".into(), 0)
        );
        assert_eq!(
            found(dir, &["a.py", "", "sub/../a.py", "nothing"], true, &["env2"]),
            ("a.py b.ipynb sub/z.py".into(), 1)
        );
        assert_eq!(found(dir, &["a.py"], true, &["a.py"]), (String::new(), 0));
    }

    #[test]
    fn what_is_named_is_taken_even_if_a_directory_above_ignores_it() {
        let dir = tree(&["venv/lib/a.py", "venv/lib/deep/b.py"]);
        std::fs::write(dir.path().join("venv/.gitignore"), "*\n").unwrap();
        assert_eq!(
            found(dir.path(), &["venv/lib"], true, &[]),
            ("venv/lib/a.py venv/lib/deep/b.py".into(), 0)
        );
        assert_eq!(found(dir.path(), &["venv/lib"], true, &["deep"]), ("venv/lib/a.py".into(), 0));
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_each_file_once_and_never_in_circles() {
        let dir = tree(&["a.py", "sub/z.py"]);
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(dir.path().join(to), dir.path().join(name)).unwrap();
        };
        link("", "sub/loop");
        link("a.py", "same.py");
        link("nothing.py", "broken.py");
        link("sub", "directory.py");
        assert_eq!(found(dir.path(), &[""], true, &[]), ("a.py sub/z.py".into(), 0));
        assert_eq!(found(dir.path(), &["directory.py", "sub"], true, &[]), ("directory.py/z.py".into(), 0));
    }
}
