//! What commands answer, for documents.

use std::ffi::OsString;

use anyhow::Context as _;

use crate::generate::root;

/// What a command answers that is typed in the root of the repository: words apart by blanks, the first of them `vramscope`.
///
/// # Errors
/// If there is no answer, or if the width of answers is set, on which their lines depend.
pub fn answer(command: &str) -> anyhow::Result<String> {
    anyhow::ensure!(
        std::env::var_os("COLUMNS").is_none(),
        "the variable COLUMNS decides how answers are laid out; unset it"
    );
    // Paths in commands are those from the root; all others in this crate are absolute.
    std::env::set_current_dir(root())?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("answer");
    let options = [OsString::from("--quiet"), OsString::from("--output"), file.clone().into()];
    vramscope::run(command.split_whitespace().map(OsString::from).chain(options));
    std::fs::read_to_string(&file).with_context(|| format!("`{command}` has no answer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_answered_as_in_a_shell() {
        let shown = answer("vramscope whatif corpus/recordings/cycle_sawtooth").unwrap();
        assert!(shown.starts_with("WHAT IF  no setting helps: 100 % of the peak of 14.0 MiB"), "{shown}");
        assert!(answer("vramscope whatif nowhere").is_err());
    }
}
