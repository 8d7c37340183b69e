//! Under which dotted names files can be imported.

use rustc_hash::FxHashSet;

use crate::source::Source;

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
