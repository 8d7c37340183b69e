//! Under which dotted names files can be imported, and which imports which.

use rustc_hash::FxHashSet;

use crate::{flow::value::FileId, names::Names, project::Project, source::Source};

/// The name of a module.
pub(crate) struct ModuleName {
    /// Dotted, from the outermost package among the sources.
    pub(crate) name: String,
    /// Whether it is the `__init__.py` of a package.
    pub(crate) is_package: bool,
}

/// The name of each source: folders with an `__init__.py` among the sources are packages.
pub(crate) fn module_names(sources: &[Source]) -> Vec<ModuleName> {
    let paths: Vec<String> = sources.iter().map(|it| it.name().replace('\\', "/")).collect();
    let packages: FxHashSet<&str> = paths
        .iter()
        .filter_map(|it| it.strip_suffix("/__init__.py").or_else(|| it.strip_suffix("/__init__.pyi")))
        .collect();
    paths
        .iter()
        .map(|path| {
            let (mut folder, file) = path.rsplit_once('/').unwrap_or(("", path));
            let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
            let is_package = stem == "__init__";
            let mut parts = if is_package { Vec::new() } else { vec![stem] };
            while packages.contains(folder) {
                let (outer, name) = folder.rsplit_once('/').unwrap_or(("", folder));
                parts.push(name);
                folder = outer;
            }
            parts.reverse();
            ModuleName { name: parts.join("."), is_package }
        })
        .collect()
}

/// The files in groups: each imports only files of groups before its own. Where files import each other in a circle, one of them
/// comes first.
pub(crate) fn import_order(names: &[Names<'_>], project: &Project) -> Vec<Vec<FileId>> {
    let imported: Vec<Vec<FileId>> = names
        .iter()
        .map(|names| {
            let mut files: Vec<_> = names.imports.iter().filter_map(|it| project.imported(it)).collect();
            files.sort_unstable();
            files.dedup();
            files
        })
        .collect();
    let mut groups: Vec<Vec<FileId>> = Vec::new();
    let mut group_of: Vec<Option<usize>> = vec![None; names.len()];
    let mut entered = vec![false; names.len()];
    for start in 0..names.len() {
        // Depth first, with a stack of its own: chains of imports can be long.
        let mut waiting = vec![(start, 0)];
        while let Some((file, next)) = waiting.pop() {
            if group_of[file].is_some() || next == 0 && std::mem::replace(&mut entered[file], true) {
                continue;
            }
            if let Some(import) = imported[file].get(next) {
                waiting.push((file, next + 1));
                waiting.push((import.0 as usize, 0));
                continue;
            }
            let group =
                imported[file].iter().filter_map(|it| group_of[it.0 as usize]).max().map_or(0, |it| it + 1);
            group_of[file] = Some(group);
            if groups.len() <= group {
                groups.resize_with(group + 1, Vec::new);
            }
            groups[group].push(FileId(file as u32));
        }
    }
    groups
}
