//! Writes files back: as a whole or not at all.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;

use super::reading::Origin;
use crate::failure::Failure;

/// Puts `bytes` in the place of a file, which keeps its permissions. If anything goes wrong, it is as it was.
pub(crate) fn replace(origin: &Origin, bytes: &[u8]) -> anyhow::Result<()> {
    let path = &origin.real;
    let shown = path.display();
    let metadata = path.metadata().with_context(|| format!("`{shown}` could not be written"))?;
    if origin.changed.is_some() && metadata.modified().ok() != origin.changed {
        return Err(Failure::error(
            format!("`{shown}` was changed while it was checked"),
            "run the command again",
        ));
    }
    // Replacing a file needs no leave to write to it, so it is asked for here.
    if metadata.permissions().readonly() {
        return Err(Failure::error(
            format!("`{shown}` may not be written to"),
            "allow it, or show the changes with `--diff`",
        ));
    }
    write_beside(path, &metadata, bytes).with_context(|| format!("`{shown}` could not be written"))
}

fn write_beside(path: &Path, metadata: &std::fs::Metadata, bytes: &[u8]) -> std::io::Result<()> {
    // In the same directory, so that it can be renamed.
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".vramscope-").tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().set_permissions(metadata.permissions())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn origin(path: &Path) -> Origin {
        let real = path.canonicalize().unwrap();
        Origin { changed: real.metadata().unwrap().modified().ok(), real }
    }

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_links_stay_links() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("a.py"), dir.path().join("link.py"));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o754)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&origin(&link), b"new").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o754);
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing else is left");
    }

    #[test]
    fn what_changed_meanwhile_or_may_not_be_written_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.py");
        std::fs::write(&file, "old").unwrap();
        let stale = Origin { changed: Some(std::time::SystemTime::UNIX_EPOCH), ..origin(&file) };
        assert!(
            replace(&stale, b"new").unwrap_err().to_string().ends_with("was changed while it was checked")
        );
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
        assert!(replace(&origin(&file), b"new").unwrap_err().to_string().ends_with("may not be written to"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
