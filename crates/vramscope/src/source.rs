//! Source code around a place: which file here is the one that was recorded there, and what its lines say.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use vramscope_report::{Excerpt, Excerpts};
use vramscope_view::analysis::Location;

use crate::failure::Failure;

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

impl SourceRoot {
    /// Checks that it is there.
    ///
    /// # Errors
    /// When it is not: what was typed, and what can be.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let (here, typed) = match self {
            Self::Below(directory) if directory.is_dir() => return Ok(()),
            Self::Replace { here, .. } if here.exists() => return Ok(()),
            Self::Below(directory) => (directory, directory.display().to_string()),
            Self::Replace { recorded, here } => (here, format!("{recorded}={}", here.display())),
        };
        let reason = if here.exists() { "is not a directory" } else { "does not exist" };
        Err(Failure::error(
            format!("`--source {typed}`: `{}` {reason}", here.display()),
            "give the directory with the source code, or `RECORDED=HERE` to replace the beginning of paths",
        ))
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
pub(crate) fn locate(recorded: &str, roots: &[SourceRoot]) -> Option<PathBuf> {
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
    // Never the path as it was recorded: a snapshot must not choose which files of this machine are shown.
    None
}

fn lines(path: &Path) -> Option<Vec<String>> {
    if path.metadata().ok()?.len() > MOST_BYTES {
        return None;
    }
    #[expect(clippy::disallowed_methods, reason = "the CLI may open files")]
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}

/// A sign that the file was changed since: the line cannot be the one that allocated.
fn doubt(place: &Location, path: &Path, lines: &[String]) -> Option<String> {
    let index = (place.line as usize).checked_sub(1)?;
    let name = place.function.rsplit('.').next().unwrap_or("");
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let found = match lines.get(index).map(|line| line.trim()) {
        None => format!("has only {} lines", lines.len()),
        Some(line) if !can_allocate(line) => format!("has no call in line {}", place.line),
        Some(_) if is_name && !lines.iter().any(|line| defined(line) == Some(name)) => {
            format!("holds no `{name}`")
        }
        Some(_) if is_name && !is_inside(name, index, lines) => {
            format!("has line {} outside of `{name}`", place.line)
        }
        Some(_) => return None,
    };
    Some(format!(
        "`{}` {found}, so it seems to have changed since: compare with the version that ran",
        path.display()
    ))
}

/// Whether a line, without its indentation, can be one that runs and calls something.
fn can_allocate(line: &str) -> bool {
    const KEYWORDS: [&str; 6] = ["else:", "try:", "finally:", "pass", "break", "continue"];
    !line.is_empty() && !line.starts_with('#') && !KEYWORDS.contains(&line)
}

/// The name of the function or class whose definition begins in a line.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("async ").unwrap_or(line);
    let rest =
        ["def ", "cdef ", "cpdef ", "class "].iter().find_map(|word| line.strip_prefix(word))?.trim_start();
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    rest.get(..end)
}

/// Whether the innermost definition around a line is that of `name`, or begins in that very line.
fn is_inside(name: &str, index: usize, lines: &[String]) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let Some((line, before)) = lines.get(..=index).and_then(<[String]>::split_last) else { return false };
    if let Some(defined) = defined(line) {
        return defined == name;
    }
    let (mut least, mut in_text) = (indent(line), false);
    for other in before.iter().rev() {
        // Texts of several lines, and the ends of heads of several lines, may stand as far left as they like.
        if (other.matches("\"\"\"").count() + other.matches("'''").count()) % 2 == 1 {
            in_text = !in_text;
        }
        let trimmed = other.trim_start();
        if in_text
            || trimmed.is_empty()
            || trimmed.starts_with(['#', ')', ']', '}'])
            || indent(other) >= least
        {
            continue;
        }
        if let Some(defined) = defined(other) {
            return defined == name;
        }
        least = indent(other);
    }
    false
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
    fn a_line_that_cannot_have_allocated_is_doubted() {
        let text = "\
class Net:
    @hook
    def forward(
        self, x
    ):
        if x:
            def inner(y):
                return y + 1
        text = \"\"\"
all the way left\"\"\"
        return [
            inner(x),
        ]

    async def other(self): return 1

rows = [torch.ones(1)]
";
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let about =
            |line, function: &str| doubt(&place("net.py", line, function), Path::new("net.py"), &lines);
        for (line, function) in [
            (8, "inner"),
            (11, "forward"),
            (12, "Net.forward"),
            (15, "other"),
            (17, "<module>"),
            (12, "<lambda>"),
        ] {
            assert_eq!(about(line, function), None, "{line} {function}");
        }
        for (line, function, reason) in [
            (8, "forward", "has line 8 outside of `forward`"),
            (17, "forward", "has line 17 outside of `forward`"),
            (11, "backward", "holds no `backward`"),
            (14, "forward", "has no call in line 14"),
            (18, "<module>", "has only 17 lines"),
        ] {
            let doubt = about(line, function).unwrap();
            assert!(doubt.starts_with(&format!("`net.py` {reason}, so it seems to have changed")), "{doubt}");
        }
    }

    #[test]
    fn a_root_that_is_not_there_is_refused_by_its_flag() {
        let dir = project();
        let path = |name: &str| dir.path().join(name).display().to_string();
        for (text, wanted) in [
            (path("src"), None),
            (format!("/srv={}", path("src")), None),
            (path("nothing"), Some("does not exist")),
            (path("secret.txt"), Some("is not a directory")),
            (format!("/srv={}", path("nothing")), Some("does not exist")),
        ] {
            let Ok(root) = text.parse::<SourceRoot>();
            let error = root.check().err().map(|error| error.to_string());
            assert_eq!(error.is_some(), wanted.is_some(), "{text}: {error:?}");
            if let (Some(error), Some(wanted)) = (error, wanted) {
                assert!(
                    error.starts_with(&format!("`--source {text}`: ")) && error.ends_with(wanted),
                    "{error}"
                );
            }
        }
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
