//! What surrounds open files: the settings that hold for them, and the other files of their folder, which say what they call.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vramscope_lint::{Checked, Rule, Selection, Severity, Source};

use super::open_file::OpenFile;
use crate::checking::patterns::Patterns;
use crate::checking::python_files::{self, PythonFile};
use crate::checking::reading;
use crate::checking::selection::{self, Choice};
use crate::checking::settings::Settings;

/// With more files than these, or more bytes, only those are looked at that are open.
const MOST_FILES: usize = 2_000;
const MOST_BYTES: u64 = 32 << 20;
/// A folder with more entries is no project but all that somebody has.
const MOST_ENTRIES: usize = 100_000;

/// The folders of the editor, and files that are in none of them.
#[derive(Debug, Default)]
pub(super) struct Projects {
    /// Absolute and without links.
    folders: Vec<PathBuf>,
    /// By folder, or by file.
    loaded: BTreeMap<PathBuf, Project>,
    /// Troubles that were told.
    told: Vec<String>,
}

/// A folder, or a file that is in none.
#[derive(Debug, Default)]
struct Project {
    settings: Settings,
    selection: Selection,
    least: Option<Severity>,
    /// Where each source is.
    paths: Vec<PathBuf>,
    sources: Vec<Source>,
    /// What is wrong with the settings.
    trouble: Option<String>,
}

impl Projects {
    pub(super) fn add_folder(&mut self, folder: PathBuf) {
        let folder = folder.canonicalize().unwrap_or(folder);
        if !self.folders.contains(&folder) {
            self.folders.push(folder);
        }
        self.reload();
    }

    pub(super) fn remove_folder(&mut self, folder: &Path) {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        self.folders.retain(|one| *one != folder);
        self.reload();
    }

    /// Reads settings and files anew when they are next needed.
    pub(super) fn reload(&mut self) {
        self.loaded.clear();
    }

    /// Reads a file anew, which may be gone.
    pub(super) fn reread(&mut self, real: &Path) {
        for project in self.loaded.values_mut() {
            project.reread(real);
        }
    }

    /// What is in a file: by the rules and the files of its project. Nothing if it is not to be checked.
    pub(super) fn check(&mut self, files: &[&OpenFile]) -> Vec<Option<Checked>> {
        let mut by_project: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
        for (index, file) in files.iter().enumerate() {
            by_project.entry(self.project_of(file)).or_default().push(index);
        }
        let mut all: Vec<Option<Checked>> = files.iter().map(|_| None).collect();
        self.loaded.retain(|path, _| by_project.contains_key(path) || self.folders.contains(path));
        for (path, indices) in by_project {
            let is_folder = self.folders.contains(&path);
            let project = self.loaded.entry(path.clone()).or_insert_with(|| Project::load(&path, is_folder));
            let wanted = |index: &usize| {
                let file = files.get(*index).copied()?;
                project.is_wanted(file, is_folder.then_some(path.as_path())).then_some((*index, file))
            };
            let (indices, of_project): (Vec<_>, Vec<_>) = indices.iter().filter_map(wanted).unzip();
            for (index, checked) in indices.into_iter().zip(project.check(&of_project)) {
                if let Some(place) = all.get_mut(index) {
                    *place = Some(checked);
                }
            }
        }
        all
    }

    /// What is wrong with settings and was not told yet.
    pub(super) fn troubles(&mut self) -> Vec<String> {
        let troubles: Vec<String> =
            self.loaded.values().filter_map(|project| project.trouble.clone()).collect();
        // What was mended may be broken again.
        self.told.retain(|told| troubles.contains(told));
        let mut new: Vec<String> =
            troubles.into_iter().filter(|trouble| !self.told.contains(trouble)).collect();
        new.dedup();
        self.told.extend(new.iter().cloned());
        new
    }

    /// The innermost folder that a file is in, or the file itself.
    fn project_of(&self, file: &OpenFile) -> PathBuf {
        let real = file.real.clone().unwrap_or_else(|| PathBuf::from(file.uri.as_str()));
        let around = self.folders.iter().filter(|folder| real.starts_with(folder));
        around.max_by_key(|folder| folder.components().count()).cloned().unwrap_or(real)
    }
}

impl Project {
    fn load(path: &Path, is_folder: bool) -> Self {
        let there = path.ancestors().find(|path| path.exists()).unwrap_or(path);
        let (settings, trouble) = match Settings::of_project(there) {
            Ok(settings) => (settings, None),
            Err(error) => {
                let hint = crate::failure::hint(&error).map(|hint| format!("\nhint: {hint}"));
                (Settings::default(), Some(format!("{error}{}", hint.unwrap_or_default())))
            }
        };
        let least = settings.min_severity;
        let is_of_interest = |rule: &Rule| least.is_none_or(|least| rule.severity >= least);
        let selection = selection::selection(&settings.choice, &Choice::default(), is_of_interest);
        let mut project = Self { settings, selection, least, trouble, ..Self::default() };
        if is_folder {
            project.read_folder(path);
        }
        project
    }

    fn read_folder(&mut self, folder: &Path) {
        let excluded: Arc<[Patterns]> = self.settings.exclude.iter().cloned().collect();
        let Some(found) = python_files::find_in_folder(folder, &excluded, MOST_ENTRIES) else { return };
        let bytes = |file: &PythonFile| file.real.metadata().map_or(0, |metadata| metadata.len());
        if found.files.len() > MOST_FILES || found.files.iter().map(bytes).sum::<u64>() > MOST_BYTES {
            return;
        }
        let read = reading::read(&found.files, &|| {});
        self.paths = read.origins.into_iter().map(|origin| origin.real).collect();
        self.sources = read.sources;
    }

    fn reread(&mut self, real: &Path) {
        let Some(index) = self.paths.iter().position(|path| path == real) else { return };
        let file = PythonFile { path: real.to_owned(), real: real.to_owned() };
        if let Some(source) = reading::read(&[file], &|| {}).sources.pop() {
            if let Some(place) = self.sources.get_mut(index) {
                *place = source;
            }
        } else {
            self.paths.remove(index);
            self.sources.remove(index);
        }
    }

    /// Whether a file is to be checked: it is not excluded, and nothing that others wrote.
    fn is_wanted(&self, file: &OpenFile, folder: Option<&Path>) -> bool {
        let Some(real) = &file.real else { return true };
        let is_installed = real
            .components()
            .any(|part| part.as_os_str() == "site-packages" || part.as_os_str() == "dist-packages");
        let is_of_others = folder.is_some_and(|folder| {
            let between = real.ancestors().skip(1).take_while(|path| *path != folder);
            between.into_iter().any(python_files::is_of_others)
        });
        let is_excluded = self.settings.exclude.as_ref().is_some_and(|patterns| patterns.match_path(real));
        !is_installed && !is_of_others && !is_excluded
    }

    fn check(&mut self, files: &[&OpenFile]) -> Vec<Checked> {
        let own = self.sources.len();
        let mut places = Vec::new();
        for file in files {
            let known = file.real.as_ref().and_then(|real| self.paths.iter().position(|path| path == real));
            if let Some(place) = known.and_then(|at| self.sources.get_mut(at)) {
                *place = file.source.clone();
            } else {
                self.sources.push(file.source.clone());
            }
            places.push(known.unwrap_or(self.sources.len() - 1));
        }
        let mut checked = vramscope_lint::check(&self.sources, &self.selection, &|| {});
        self.sources.truncate(own);
        let of_files = files.iter().zip(places);
        of_files
            .map(|(file, place)| {
                let mut checked = checked.get_mut(place).map(std::mem::take).unwrap_or_default();
                checked.diagnostics.retain(|found| {
                    let is_ignored =
                        file.real.as_ref().is_some_and(|real| self.settings.ignores(real, found.rule));
                    self.least.is_none_or(|least| found.severity >= least) && !is_ignored
                });
                checked
            })
            .collect()
    }
}
