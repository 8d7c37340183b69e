//! Writes files back: as a whole or not at all.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;

use super::reading::{Content, Origin};
use crate::failure::Failure;

/// Puts `bytes` in the place of a file, which keeps its owner and its permissions. If anything goes wrong, it is as it was.
pub(crate) fn replace(origin: &Origin, bytes: &[u8]) -> anyhow::Result<()> {
    let path = &origin.real;
    let shown = path.display();
    let metadata = path.metadata().with_context(|| format!("`{shown}` could not be written"))?;
    // Its other names would go on naming the old text.
    if names(&metadata) > 1 {
        return Err(Failure::error(
            format!("`{shown}` has other names (hard links), which a new file would not have"),
            "show the changes with `--diff`, and apply them with `patch`",
        ));
    }
    // Replacing a file needs no leave to write to it, so it is asked for here.
    if metadata.permissions().readonly() {
        return Err(Failure::error(
            format!("`{shown}` may not be written to"),
            "allow it, or show the changes with `--diff`",
        ));
    }
    let file =
        write_beside(path, &metadata, bytes).with_context(|| format!("`{shown}` could not be written"))?;
    // Writing to the disk takes a while, in which an editor may have saved.
    check_unchanged(origin)?;
    file.persist(path)
        .map_err(|error| error.error)
        .with_context(|| format!("`{shown}` could not be written"))?;
    Ok(())
}

fn check_unchanged(origin: &Origin) -> anyhow::Result<()> {
    let shown = origin.real.display();
    #[expect(clippy::disallowed_methods, reason = "the command line opens files")]
    let present = std::fs::read(&origin.real).with_context(|| format!("`{shown}` could not be written"))?;
    if origin.content.is_some_and(|it| it != Content::of(&present)) {
        return Err(Failure::error(
            format!("`{shown}` was changed while it was checked"),
            "run the command again",
        ));
    }
    Ok(())
}

/// The new text in a file of its own, for now.
fn write_beside(
    path: &Path,
    metadata: &std::fs::Metadata,
    bytes: &[u8],
) -> std::io::Result<tempfile::NamedTempFile> {
    // In the same directory, so that it can be renamed.
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".vramscope-").tempfile_in(directory)?;
    file.write_all(bytes)?;
    keep_owner(file.as_file(), metadata)?;
    // After the owner, whose change takes special permissions away.
    file.as_file().set_permissions(metadata.permissions())?;
    file.as_file().sync_all()?;
    Ok(file)
}

#[cfg(unix)]
fn names(metadata: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

#[cfg(not(unix))]
fn names(_: &std::fs::Metadata) -> u64 {
    1
}

#[cfg(unix)]
fn keep_owner(file: &std::fs::File, metadata: &std::fs::Metadata) -> std::io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let new = file.metadata()?;
    if (new.uid(), new.gid()) == (metadata.uid(), metadata.gid()) {
        return Ok(());
    }
    fchown(file, Some(metadata.uid()), Some(metadata.gid()))
}

#[cfg(not(unix))]
fn keep_owner(_: &std::fs::File, _: &std::fs::Metadata) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn origin(path: &Path) -> Origin {
        let real = path.canonicalize().unwrap();
        Origin { content: Some(Content::of(std::fs::read_to_string(&real).unwrap().as_bytes())), real }
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
        // Tools that copy files set the time of the last change back.
        let stale = Origin { content: Some(Content::of(b"odd")), ..origin(&file) };
        assert!(
            replace(&stale, b"new").unwrap_err().to_string().ends_with("was changed while it was checked")
        );
        let other = dir.path().join("b.py");
        std::fs::hard_link(&file, &other).unwrap();
        assert!(replace(&origin(&file), b"new").unwrap_err().to_string().contains("has other names"));
        std::fs::remove_file(other).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
        assert!(replace(&origin(&file), b"new").unwrap_err().to_string().ends_with("may not be written to"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
