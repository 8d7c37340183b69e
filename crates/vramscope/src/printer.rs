//! The only place that writes: answers to the standard output or a file, all else to the standard error.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use vramscope_report::text::Layout;
use vramscope_report::{Excerpts, Palette, Role};

use crate::args::{Color, Global};
use crate::failure::{self, Failure};

/// How wide text is where neither the terminal nor `COLUMNS` says.
const WIDTH: usize = 100;
/// Lines longer than this are hard to read, however wide the terminal.
const MOST: usize = 120;

/// Writes for one run of the command.
pub(crate) struct Printer {
    quiet: bool,
    output: Option<(PathBuf, bool)>,
    /// How answers look.
    palette: Palette,
    /// How messages look.
    messages: Palette,
    /// Columns for answers.
    width: usize,
    /// Whether progress may be shown.
    pub(crate) progress: bool,
}

impl Printer {
    pub(crate) fn new(global: &Global) -> Self {
        let stdout = io::stdout().is_terminal();
        let stderr = io::stderr().is_terminal();
        let wanted = |terminal: bool| match global.color {
            Color::Always => Palette::Coloured,
            Color::Auto if terminal && environment_allows_colour() => Palette::Coloured,
            Color::Auto | Color::Never => Palette::Plain,
        };
        let terminal = terminal_size::terminal_size().filter(|_| stdout && global.output.is_none());
        Self {
            quiet: global.quiet,
            output: global.output.clone().map(|path| (path, global.force)),
            palette: wanted(stdout && global.output.is_none()),
            messages: wanted(stderr),
            width: terminal
                .map_or_else(|| columns().unwrap_or(WIDTH), |(width, _)| usize::from(width.0).min(MOST)),
            progress: stderr && !global.quiet,
        }
    }

    /// Fails early where the answer could not be written in the end.
    pub(crate) fn check_output(&self, inputs: &[PathBuf]) -> anyhow::Result<()> {
        match &self.output {
            Some((path, false)) if path.symlink_metadata().is_ok() => Err(exists(path)),
            Some((path, true)) if is_read(path, inputs) => Err(Failure::error(
                format!("`{}` is read, so it cannot be written to", path.display()),
                "give another name with `--output`",
            )),
            Some((path, _)) if path.parent().is_some_and(|it| !it.as_os_str().is_empty() && !it.is_dir()) => {
                Err(Failure::error(
                    format!("`{}` cannot be written: its directory is not there", path.display()),
                    "make the directory, or give another name with `--output`",
                ))
            }
            _ => Ok(()),
        }
    }

    /// How text answers are laid out.
    pub(crate) fn layout<'a>(&self, top: usize, verbose: bool, excerpts: &'a Excerpts) -> Layout<'a> {
        Layout { palette: self.palette, width: self.width, top, verbose, excerpts }
    }

    /// The answer.
    pub(crate) fn answer(&self, text: &str) -> anyhow::Result<()> {
        let Some((path, force)) = &self.output else {
            let mut out = io::stdout().lock();
            out.write_all(text.as_bytes())?;
            return Ok(out.flush()?);
        };
        let mut options = OpenOptions::new();
        options.write(true);
        if *force {
            options.create(true).truncate(true)
        } else {
            options.create_new(true)
        };
        match options.open(path) {
            Ok(mut file) => file.write_all(text.as_bytes()),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(exists(path)),
            Err(e) => Err(e),
        }
        .with_context(|| format!("`{}` could not be written", path.display()))
    }

    /// Something that went wrong, with its causes and what to do.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        let mut lines = vec![self.message(Role::Bad, "error", &error.to_string())];
        let mut last = error.to_string();
        for cause in error.chain().skip(1).map(ToString::to_string) {
            // Some errors repeat their cause in their own words.
            if !last.contains(&cause) {
                lines.push(format!("  caused by: {cause}"));
            }
            last = cause;
        }
        if let Some(hint) = failure::hint(error) {
            lines.push(self.message(Role::Path, "hint", hint));
        }
        Self::to_stderr(&lines.join("\n"));
    }

    /// Several things that went wrong.
    pub(crate) fn errors(&self, errors: &[anyhow::Error]) {
        for error in errors {
            self.error(error);
        }
    }

    /// Something about a file or an option that the user should know.
    pub(crate) fn warning(&self, text: &str) {
        if !self.quiet {
            Self::to_stderr(&self.message(Role::Warn, "warning", text));
        }
    }

    /// Something worth knowing.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            Self::to_stderr(&self.message(Role::Dim, "note", text));
        }
    }

    /// What the argument parser has to say: help or a mistake.
    pub(crate) fn arguments(error: &clap::Error) {
        // Nothing is left to be done where even this cannot be written.
        let _ = error.print();
    }

    fn message(&self, role: Role, label: &str, text: &str) -> String {
        format!("{}: {}", self.messages.paint(role, label), self.messages.paint(Role::Plain, text))
    }

    fn to_stderr(text: &str) {
        // As above.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

/// Whether a pipe was closed by its reader, who then wants no more of it.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}

/// Whether a file is among those that are read, by whatever name.
fn is_read(path: &Path, inputs: &[PathBuf]) -> bool {
    if crate::recording_directory::is_report(path) {
        return false;
    }
    path.canonicalize().is_ok_and(|path| {
        crate::inputs::find(inputs)
            .files
            .iter()
            .any(|input| input.path.canonicalize().is_ok_and(|input| is_same_file(&input, &path)))
    })
}

/// Whether two paths without symbolic links lead to one file, by whatever names.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(one), Ok(other)) = (one.metadata(), other.metadata()) {
        use std::os::unix::fs::MetadataExt as _;
        return (one.dev(), one.ino()) == (other.dev(), other.ino());
    }
    one == other
}

fn exists(path: &Path) -> anyhow::Error {
    Failure::error(
        format!("`{}` is already there", path.display()),
        "give another name, or `--force` to overwrite it",
    )
}

#[expect(clippy::disallowed_methods, reason = "the convention about the width is an environment variable")]
fn columns() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok()?.trim().parse().ok()?;
    (columns > 0).then_some(columns)
}

#[expect(clippy::disallowed_methods, reason = "the conventions about colour are environment variables")]
fn environment_allows_colour() -> bool {
    let set = |name: &str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    !set("NO_COLOR") && std::env::var("TERM").map_or(true, |term| term != "dumb")
}
