//! From the findings of a recording to the patterns in the source code that they come from, and from what came and went to those that are
//! harmless.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use vramscope_lint::{Checked, Selection, Severity, Source};
use vramscope_view::analysis::{Analysis, Finding};
use vramscope_view::pattern::{self, Match, MatchedBy, SourceFile};

use super::python_files::PythonFile;
use super::reading::{self, Origin};
use super::source_age;
use crate::source::{SourceRoot, locate};

/// Larger files are not looked at.
const MOST_BYTES: u64 = 16 << 20;
/// Of a folder with more Python files than that, only those that findings name are looked at.
const MOST_BESIDE: usize = 50;

/// The sources that findings name, and which patterns in them belong to which findings.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    pub(crate) sources: Vec<Source>,
    pub(crate) checked: Vec<Checked>,
    /// Where each source is.
    pub(crate) origins: Vec<Origin>,
    pub(crate) matches: Vec<Match>,
    /// What is to be said of files that were changed after the recording was made.
    pub(crate) note: Option<String>,
    /// The files that findings name, the others being their neighbours.
    named: BTreeSet<PathBuf>,
}

impl Joined {
    /// What the linter warns of in the files that findings name, by rules that are on by default: the worst first, `file:line code name`.
    pub(crate) fn warnings(&self, most: usize) -> Vec<String> {
        let files = self.sources.iter().zip(&self.checked);
        let mut found: Vec<_> = files
            .filter(|(source, _)| self.named.contains(Path::new(source.name())))
            .flat_map(|(source, checked)| checked.diagnostics.iter().map(move |it| (source, it)))
            .filter(|(_, it)| it.severity >= Severity::Warning && it.rule.default)
            .collect();
        found.sort_by_key(|(_, it)| std::cmp::Reverse(it.severity));
        let name = |source: &Source| {
            let path = Path::new(source.name());
            path.file_name().map_or_else(|| source.name().to_owned(), |it| it.to_string_lossy().into_owned())
        };
        let told = found.iter().take(most).map(|(source, it)| {
            let line = source.location(it.range.start()).line;
            format!("{}:{line} {} {}", name(source), it.rule.code, it.rule.name)
        });
        told.collect()
    }
}

/// Looks for the patterns of findings below `roots`, and names them in the findings; where nothing is kept, for patterns that are harmless.
pub(crate) fn join(analysis: &mut Analysis, roots: &[SourceRoot]) -> Joined {
    let recorded_as = located(analysis, roots);
    if recorded_as.is_empty() {
        return Joined { note: not_found(analysis, roots), ..Joined::default() };
    }
    let files: Vec<PythonFile> = with_neighbours(recorded_as.keys())
        .into_iter()
        .filter_map(|path| Some(PythonFile { real: path.canonicalize().ok()?, path }))
        .filter(|file| file.real.metadata().is_ok_and(|metadata| metadata.len() <= MOST_BYTES))
        .collect();
    let read = reading::read(&files, &|| {});
    // Where a holder is known, rules are believed, too, that are often wrong by themselves.
    let checked = vramscope_lint::check(&read.sources, &Selection::of(|_| true), &|| {});
    let mut joined = Joined {
        sources: read.sources,
        checked,
        origins: read.origins,
        matches: Vec::new(),
        note: None,
        named: recorded_as.keys().cloned().collect(),
    };
    let with_names = joined.sources.iter().zip(&joined.checked).map(|(source, checked)| SourceFile {
        source,
        checked,
        recorded: recorded_as.get(Path::new(source.name())).cloned().unwrap_or_default(),
    });
    let files: Vec<SourceFile<'_>> = with_names.collect();
    let changed = source_age::changed_since(&analysis.inputs, joined.named.iter());
    let mut matches = pattern::matches(analysis, &files);
    // The pattern may be fixed already; another one in a function that was running is no second best then.
    matches.retain(|it| {
        let is_changed = files.get(it.file).is_some_and(|it| changed.contains(Path::new(it.source.name())));
        it.by != MatchedBy::Stack || !is_changed
    });
    pattern::attach(analysis, &files, &matches);
    analysis.harmless = pattern::harmless(analysis, &files);
    drop(files);
    joined.matches = matches;
    // Where a file was changed, another line may have run than the one that stands there now: that acquits nobody.
    let n_harmless = analysis.harmless.len();
    analysis.harmless.retain(|it| !changed.contains(Path::new(&it.found.file)));
    if n_harmless > analysis.harmless.len() || analysis.findings.iter().any(Finding::is_growth) {
        joined.note = source_age::note(&changed);
        analysis.caveats.splice(..0, joined.note.clone());
    }
    joined
}

/// What to say where no file is here that a leak names.
fn not_found(analysis: &Analysis, roots: &[SourceRoot]) -> Option<String> {
    let growth = analysis.findings.iter().filter(|finding| finding.is_growth());
    let user_frames = growth.flat_map(|finding| finding.stack.iter().filter(|frame| frame.is_user));
    let file = &user_frames.map(|frame| &frame.location.file).next()?;
    Some(match roots {
        [] => format!("`{file}` is not here: say with `--source DIR` where the source code is"),
        _ => format!(
            "`{file}` was not found by `--source`: give the directory that it is in, or `RECORDED=HERE`"
        ),
    })
}

/// The files here that findings about kept memory name, or that ran where nothing is kept, each with the paths under which they do.
fn located(analysis: &Analysis, roots: &[SourceRoot]) -> BTreeMap<PathBuf, Vec<String>> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for finding in analysis.findings.iter().filter(|finding| finding.is_growth()) {
        let frames = finding.stack.iter().filter(|frame| frame.is_user).map(|frame| &frame.location);
        names.extend(frames.chain(&finding.site).map(|place| place.file.clone()));
        names.extend(finding.holder.iter().flat_map(|found| modules_of(&found.holder.path)));
    }
    // Where nothing is kept, all that ran may hold a pattern that is harmless.
    names.extend(analysis.turnover.iter().map(|line| line.place.file.clone()));
    if !names.is_empty() || analysis.findings.iter().any(Finding::is_growth) {
        names.extend(analysis.recorded.iter().filter_map(pattern::script_of));
    }
    let mut found: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for name in names {
        if let Some(path) = locate(&name, roots) {
            found.entry(path).or_default().push(name);
        }
    }
    found
}

/// The files that the module at the beginning of a holder's path can be: of `pkg.data.cache[*]` it is `pkg/data.py`,
/// `pkg/data/__init__.py`, and so on.
fn modules_of(path: &str) -> Vec<String> {
    let before = path.split(['[', ':', ' ', '<']).next().unwrap_or_default();
    let names: Vec<&str> = before.split('.').filter(|name| !name.is_empty()).collect();
    let prefixes = (1..=names.len()).rev().filter_map(|length| names.get(..length)).map(|it| it.join("/"));
    prefixes.flat_map(|module| [format!("{module}.py"), format!("{module}/__init__.py")]).collect()
}

/// Those files, and the others of their folders: what a function returns matters where it is called.
fn with_neighbours<'p>(files: impl Iterator<Item = &'p PathBuf>) -> BTreeSet<PathBuf> {
    let files: BTreeSet<PathBuf> = files.cloned().collect();
    let folders: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    let mut all = files.clone();
    for folder in folders {
        let beside = python_files_in(folder);
        if beside.len() <= MOST_BESIDE {
            all.extend(beside);
        }
    }
    all
}

/// The Python files directly in a folder.
fn python_files_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| path.extension().is_some_and(|it| it == "py") && path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_holder_names_modules() {
        assert_eq!(
            modules_of("pkg.data:f"),
            ["pkg/data.py", "pkg/data/__init__.py", "pkg.py", "pkg/__init__.py"]
        );
        assert_eq!(modules_of("data[*]"), ["data.py", "data/__init__.py"]);
        assert_eq!(modules_of(""), [""; 0]);
        assert!(modules_of("../../etc/x.y").iter().all(|it| it.ends_with(".py")), "only Python is opened");
    }
}
