//! The project's settings: `[tool.vramscope]` of `pyproject.toml`, or `vramscope.toml`.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;
use vramscope_lint::Severity;

use super::patterns::Patterns;
use super::selection::{Choice, HINT, Selector};
use crate::failure::Failure;

/// What a project wants.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// Which rules run.
    pub(crate) choice: Choice,
    /// What is not checked.
    pub(crate) exclude: Option<Patterns>,
    /// The mildest severity that is reported.
    pub(crate) min_severity: Option<Severity>,
    /// Rules that do not hold for some files.
    pub(crate) per_file_ignores: Vec<(Patterns, Vec<Selector>)>,
}

/// The settings as they are written down.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    select: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    extend_select: Vec<Spanned<String>>,
    #[serde(default)]
    ignore: Vec<Spanned<String>>,
    #[serde(default)]
    exclude: Vec<Spanned<String>>,
    min_severity: Option<Spanned<String>>,
    #[serde(default)]
    per_file_ignores: std::collections::BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
}

/// What matters to us of a `pyproject.toml`.
#[derive(Debug, Deserialize)]
struct Pyproject {
    tool: Option<Tools>,
}

#[derive(Debug, Deserialize)]
struct Tools {
    vramscope: Option<Written>,
}

const KEYS: &str = "the keys are `select`, `extend-select`, `ignore` and `exclude` (lists of texts), `min-severity` (\"info\", \"warning\" or \
                    \"error\") and `per-file-ignores` (a table of lists by pattern); docs/check.md explains them";

impl Settings {
    /// The settings that hold for `path`: those of the nearest directory at or above it that has any.
    pub(crate) fn of_project(path: &Path) -> anyhow::Result<Self> {
        let Ok(real) = path.canonicalize() else { return Ok(Self::default()) };
        for directory in real.ancestors().filter(|directory| directory.is_dir()) {
            for (name, is_own) in [("vramscope.toml", true), ("pyproject.toml", false)] {
                let file = directory.join(name);
                // What is not there, no file or not ours to read has no settings for us.
                if !file.is_file() {
                    continue;
                }
                let text = match std::fs::read_to_string(&file) {
                    Ok(text) => text,
                    Err(error) if is_own && error.kind() == std::io::ErrorKind::InvalidData => {
                        return Err(Failure::error(
                            format!("`{}` is not in UTF-8, as TOML is", file.display()),
                            "save it in UTF-8",
                        ));
                    }
                    Err(_) => continue,
                };
                if let Some(written) = written(&file, &text, is_own)? {
                    return Self::new(&written, &file, &text, directory);
                }
            }
        }
        Ok(Self::default())
    }

    fn new(written: &Written, file: &Path, text: &str, directory: &Path) -> anyhow::Result<Self> {
        let place = Place { file, text };
        let selectors = |texts: &[Spanned<String>]| -> anyhow::Result<Vec<Selector>> {
            texts.iter().map(|one| place.selector(one)).collect()
        };
        let mut per_file_ignores = Vec::new();
        for (pattern, ignored) in &written.per_file_ignores {
            per_file_ignores
                .push((place.patterns(directory, std::slice::from_ref(pattern))?, selectors(ignored)?));
        }
        Ok(Self {
            choice: Choice {
                select: written.select.as_deref().map(selectors).transpose()?,
                extend: selectors(&written.extend_select)?,
                ignore: selectors(&written.ignore)?,
            },
            exclude: (!written.exclude.is_empty())
                .then(|| place.patterns(directory, &written.exclude))
                .transpose()?,
            min_severity: written.min_severity.as_ref().map(|one| place.severity(one)).transpose()?,
            per_file_ignores,
        })
    }

    /// Whether a rule is not to be reported of a file, whose path is absolute.
    pub(crate) fn ignores(&self, real: &Path, rule: &vramscope_lint::Rule) -> bool {
        self.per_file_ignores.iter().any(|(patterns, ignored)| {
            ignored.iter().any(|one| one.covers(rule)) && patterns.match_path(real)
        })
    }
}

/// The settings in a file, if it has any.
fn written(file: &Path, text: &str, is_own: bool) -> anyhow::Result<Option<Written>> {
    let place = Place { file, text };
    let wrong =
        |error: toml::de::Error| place.wrong(error.span().map(|span| span.start), error.message(), KEYS);
    if is_own {
        return toml::from_str(text).map(Some).map_err(wrong);
    }
    match toml::from_str::<Pyproject>(text) {
        Ok(project) => Ok(project.tool.and_then(|tools| tools.vramscope)),
        // What is wrong with files that say nothing to us is for others to tell.
        Err(_) if !text.contains("vramscope") => Ok(None),
        Err(error) => Err(wrong(error)),
    }
}

/// A file of settings, for messages about it.
#[derive(Clone, Copy)]
struct Place<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Place<'_> {
    fn wrong(self, at: Option<usize>, message: &str, hint: &str) -> anyhow::Error {
        let line = at.and_then(|at| self.text.get(..at)).map(|before| before.matches('\n').count() + 1);
        let line = line.map_or_else(String::new, |line| format!(":{line}"));
        // Messages of the parser can have several lines.
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        Failure::error(format!("{}{line}: {message}", shown(self.file).display()), hint)
    }

    fn selector(self, one: &Spanned<String>) -> anyhow::Result<Selector> {
        let text = one.get_ref();
        Selector::parse(text)
            .ok_or_else(|| self.wrong(Some(one.span().start), &format!("there is no rule `{text}`"), HINT))
    }

    fn patterns(self, directory: &Path, texts: &[Spanned<String>]) -> anyhow::Result<Patterns> {
        let at = texts.first().map(|one| one.span().start);
        Patterns::new(directory, texts.iter().map(|one| one.get_ref().as_str()))
            .map_err(|message| self.wrong(at, &message, "put characters such as `[` in brackets: `[[]`"))
    }

    fn severity(self, one: &Spanned<String>) -> anyhow::Result<Severity> {
        match one.get_ref().as_str() {
            "info" => Ok(Severity::Info),
            "warning" => Ok(Severity::Warning),
            "error" => Ok(Severity::Error),
            other => Err(self.wrong(
                Some(one.span().start),
                &format!("`{other}` is no severity"),
                "there are `info`, `warning` and `error`",
            )),
        }
    }
}

/// A path as it is shown: from the current directory if it is below that.
fn shown(file: &Path) -> PathBuf {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    here.ok().and_then(|here| file.strip_prefix(here).ok()).map_or_else(|| file.to_owned(), Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_lint::rules;

    fn read(files: &[(&str, &str)], of: &str) -> Result<Settings, String> {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = format!("{}/", dir.path().canonicalize().unwrap().display());
        Settings::of_project(&dir.path().join(of)).map_err(|error| {
            format!("{error} | {}", crate::failure::hint(&error).unwrap()).replace(&root, "")
        })
    }

    fn error(text: &str) -> String {
        read(&[("pyproject.toml", text)], "").unwrap_err().split(" | ").next().unwrap().to_owned()
    }

    #[test]
    fn the_nearest_settings_hold() {
        let outer = ("pyproject.toml", "[tool.vramscope]\nmin-severity = \"error\"\n");
        let other = ("sub/pyproject.toml", "[tool.ruff]\nselect = 3\n");
        let broken = ("sub/deep/pyproject.toml", "{{ a template }}");
        let file = ("sub/deep/a.py", "");
        let settings = read(&[outer, other, broken, file], "sub/deep/a.py").unwrap();
        assert_eq!(settings.min_severity, Some(Severity::Error));
        let own = ("sub/vramscope.toml", "min-severity = \"info\"\nselect = []\n");
        let settings = read(&[outer, other, own, file], "sub/deep").unwrap();
        assert_eq!(settings.min_severity, Some(Severity::Info));
        assert!(settings.choice.select.is_some_and(|selected| selected.is_empty()));
        assert!(read(&[file], "sub").unwrap().choice.select.is_none());
        assert!(read(&[], "nowhere").unwrap().choice.select.is_none());
    }

    #[test]
    fn rules_can_be_ignored_by_file() {
        let rule = rules().next().unwrap();
        let text =
            format!("[per-file-ignores]\n\"tests/*\" = [\"{}\"]\n\"*.ipynb\" = [\"ALL\"]\n", rule.code);
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("vramscope.toml"), text).unwrap();
        let settings = Settings::of_project(dir.path()).unwrap();
        let real = dir.path().canonicalize().unwrap();
        let ignores = |path: &str| settings.ignores(&real.join(path), rule);
        assert_eq!([ignores("tests/a.py"), ignores("a.py"), ignores("d/a.ipynb")], [true, false, true]);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, want) in [
            ("[tool.vramscope]\nselekt = []\n", "pyproject.toml:2: unknown field `selekt`, expected one of"),
            ("[tool.vramscope]\n\nselect = 3\n", "pyproject.toml:3: invalid type: integer `3`"),
            (
                "[tool.vramscope]\nignore = [\n\"LK101\",\n\"LK9999\"]\n",
                "pyproject.toml:4: there is no rule `LK9999`",
            ),
            ("[tool.vramscope]\nmin-severity = \"bad\"\n", "pyproject.toml:2: `bad` is no severity"),
            ("[tool.vramscope]\nexclude = [\"a[b\"]\n", "pyproject.toml:2: `a[b` is not a pattern"),
            ("[tool.vramscope]\nselect = [\n", "pyproject.toml:"),
        ] {
            assert!(error(text).starts_with(want), "{text}: {}", error(text));
        }
        let whole = read(&[("vramscope.toml", "x = 1")], "").unwrap_err();
        assert!(
            whole.starts_with("vramscope.toml:1: ") && whole.ends_with("docs/check.md explains them"),
            "{whole}"
        );
    }
}
