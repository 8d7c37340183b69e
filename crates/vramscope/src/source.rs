//! Source code around a place: which file here is the one that was recorded there, and what its lines say.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use vramscope_report::{Excerpt, Excerpts};
use vramscope_view::analysis::Location;

/// Larger files are no source code.
const MOST_BYTES: u64 = 16 << 20;
/// Lines shown before and after the place.
const CONTEXT: u32 = 1;

/// Where source code is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourceRoot {
    /// Below this directory, under some tail of the recorded path.
    Below(PathBuf),
    /// Where the recorded path with its beginning replaced leads.
    Replace {
        /// The beginning as recorded.
        recorded: String,
        /// What stands there here.
        here: PathBuf,
    },
}

impl FromStr for SourceRoot {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.split_once('=') {
            Some((recorded, here)) if !Path::new(text).is_dir() => {
                Self::Replace { recorded: recorded.to_owned(), here: PathBuf::from(here) }
            }
            _ => Self::Below(PathBuf::from(text)),
        })
    }
}

/// Finds and keeps source files.
pub(crate) struct Sources<'a> {
    roots: &'a [SourceRoot],
    files: BTreeMap<String, Option<(PathBuf, Vec<String>)>>,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(roots: &'a [SourceRoot]) -> Self {
        Self { roots, files: BTreeMap::new() }
    }

    /// The lines around each place for which the file can be found.
    pub(crate) fn excerpts<'l>(&mut self, places: impl IntoIterator<Item = &'l Location>) -> Excerpts {
        let mut excerpts = Excerpts::default();
        for place in places {
            if let Some(excerpt) = self.excerpt(place) {
                excerpts.insert(place, excerpt);
            }
        }
        excerpts
    }

    fn excerpt(&mut self, place: &Location) -> Option<Excerpt> {
        let roots = self.roots;
        let file = self.files.entry(place.file.clone()).or_insert_with(|| {
            locate(&place.file, roots).and_then(|path| Some((path.clone(), lines(&path)?)))
        });
        let (path, all) = file.as_ref()?;
        let index = place.line.checked_sub(1)?;
        all.get(index as usize)?;
        let first = index.saturating_sub(CONTEXT);
        let shown = all.iter().zip(1u32..).skip(first as usize).take((index + CONTEXT - first + 1) as usize);
        Some(Excerpt {
            read_from: path.display().to_string(),
            lines: shown.map(|(text, number)| (number, text.clone())).collect(),
            doubt: doubt(place, path, all),
        })
    }
}

/// The file here that was recorded under that path.
fn locate(recorded: &str, roots: &[SourceRoot]) -> Option<PathBuf> {
    // A snapshot can name any file; only source code is ever opened for it.
    let is_source = Path::new(recorded).extension().is_some_and(|e| e == "py" || e == "pyx" || e == "ipynb");
    let parts: Vec<&str> =
        recorded.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".").collect();
    if !is_source || parts.contains(&"..") {
        return None;
    }
    for root in roots {
        let found = match root {
            SourceRoot::Replace { recorded: old, here } => recorded
                .strip_prefix(old.as_str())
                .map(|rest| here.join(rest.trim_start_matches(['/', '\\'])))
                .filter(|path| path.is_file()),
            SourceRoot::Below(directory) => (0..parts.len())
                .filter_map(|skipped| parts.get(skipped..))
                .map(|tail| tail.iter().fold(directory.clone(), |path, part| path.join(part)))
                .find(|path| path.is_file()),
        };
        if found.is_some() {
            return found;
        }
    }
    let as_recorded = PathBuf::from(recorded);
    (as_recorded.is_absolute() && as_recorded.is_file()).then_some(as_recorded)
}

fn lines(path: &Path) -> Option<Vec<String>> {
    if path.metadata().ok()?.len() > MOST_BYTES {
        return None;
    }
    #[expect(clippy::disallowed_methods, reason = "the CLI may open files")]
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}

/// A sign that the file was changed since: the function is not in it, or the line is empty.
fn doubt(place: &Location, path: &Path, lines: &[String]) -> Option<String> {
    let name = place.function.rsplit('.').next().unwrap_or("");
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let has_function = !is_name || {
        let definition = format!("def {name}");
        lines.iter().any(|line| line.contains(&definition))
    };
    let line = lines.get(place.line as usize - 1).map_or("", |line| line.trim());
    if has_function && !line.is_empty() && !line.starts_with('#') {
        return None;
    }
    Some(format!("`{}` seems to have changed since: compare with the version that ran", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(file: &str, line: u32, function: &str) -> Location {
        Location { file: file.into(), line, function: function.into() }
    }

    fn project() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("src/models")).unwrap();
        std::fs::write(
            dir.path().join("src/models/unet.py"),
            "class Unet:\n    def forward(self):\n        x = 1\n",
        )
        .unwrap();
        std::fs::write(dir.path().join("secret.txt"), "secret\n").unwrap();
        dir
    }

    #[test]
    fn the_longest_tail_of_the_recorded_path_is_found() {
        let dir = project();
        let roots = [SourceRoot::Below(dir.path().to_owned())];
        let place = place("/srv/job/src/models/unet.py", 3, "forward");
        let excerpts = Sources::new(&roots).excerpts([&place]);
        let excerpt = excerpts.get(&place).unwrap();
        assert_eq!(excerpt.lines, [(2, "    def forward(self):".into()), (3, "        x = 1".into())]);
        assert_eq!(excerpt.doubt, None);
    }

    #[test]
    fn the_beginning_of_paths_can_be_replaced() {
        let dir = project();
        let root: SourceRoot = format!("C:\\job={}", dir.path().join("src").display()).parse().unwrap();
        let place = place("C:\\job/models/unet.py", 1, "<module>");
        assert_eq!(Sources::new(&[root]).excerpts([&place]).get(&place).unwrap().lines.len(), 2);
    }

    #[test]
    fn another_version_of_the_file_is_doubted() {
        let dir = project();
        let roots = [SourceRoot::Below(dir.path().to_owned())];
        let elsewhere = place("/srv/models/unet.py", 3, "backward");
        let other = place("/srv/src/models/unet.py", 3, "backward");
        let excerpts = Sources::new(&roots).excerpts([&elsewhere, &other]);
        assert_eq!(excerpts.get(&elsewhere), None, "there is no models/unet.py below the root");
        assert!(excerpts.get(&other).unwrap().doubt.as_ref().unwrap().contains("seems to have changed"));
    }

    #[test]
    fn only_source_code_is_opened() {
        let dir = project();
        let roots = [SourceRoot::Below(dir.path().to_owned())];
        for file in ["/srv/secret.txt", "/srv/../../src/models/unet.py", "secret.txt"] {
            let place = place(file, 1, "<module>");
            assert_eq!(Sources::new(&roots).excerpts([&place]).get(&place), None, "{file}");
        }
    }
}
