//! Patterns of paths: `*_pb2.py` is a name anywhere, `src/generated` a path from where it is written down.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Patterns that were written down in one place.
#[derive(Clone, Debug)]
pub(crate) struct Patterns {
    base: PathBuf,
    names: GlobSet,
    paths: GlobSet,
}

impl Patterns {
    /// Patterns relative to `base`, an absolute path without links. The error is a sentence about the pattern at fault.
    pub(crate) fn new<'a>(base: &Path, texts: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let (mut names, mut paths) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for text in texts {
            let text = text.trim_start_matches("./").trim_end_matches('/');
            let glob = GlobBuilder::new(text).literal_separator(true).build();
            let glob = glob.map_err(|e| format!("`{text}` is not a pattern: {}", e.kind()))?;
            if text.contains('/') {
                paths.add(glob)
            } else {
                names.add(glob)
            };
        }
        let built = |set: GlobSetBuilder| set.build().map_err(|e| e.kind().to_string());
        Ok(Self { base: base.to_owned(), names: built(names)?, paths: built(paths)? })
    }

    /// Whether they match a path or a directory that it is in; `path` is absolute and without links.
    pub(crate) fn match_path(&self, path: &Path) -> bool {
        let Ok(below) = path.strip_prefix(&self.base) else {
            return self.paths.is_match(path)
                || path.file_name().is_some_and(|name| self.names.is_match(name));
        };
        below.ancestors().filter(|part| !part.as_os_str().is_empty()).any(|part| {
            self.paths.is_match(part)
                || self.paths.is_match(self.base.join(part))
                || part.file_name().is_some_and(|name| self.names.is_match(name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_anywhere_and_paths_from_their_base() {
        let patterns = Patterns::new(
            Path::new("/p"),
            ["*_pb2.py", "./src/generated/", "old", "a/**/z.py", "/p/abs/*.py"],
        )
        .unwrap();
        for (path, want) in [
            ("/p/x_pb2.py", true),
            ("/p/d/e/x_pb2.py", true),
            ("/p/src/generated/deep/x.py", true),
            ("/p/src/generator.py", false),
            ("/p/d/src/generated/x.py", false),
            ("/p/d/old/x.py", true),
            ("/p/a/b/c/z.py", true),
            ("/p/abs/x.py", true),
            ("/q/x_pb2.py", true),
            ("/old/p/x.py", false),
        ] {
            assert_eq!(patterns.match_path(Path::new(path)), want, "{path}");
        }
        assert!(Patterns::new(Path::new("/p"), ["a[b"]).unwrap_err().starts_with("`a[b` is not a pattern"));
    }
}
