//! What can be typed for `check`, `lsp` and `rule`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{Format, one_of};

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "switches, each on its own")]
pub(crate) struct Check {
    /// Python files, notebooks, or directories with them; `-` is the standard input
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// Run these rules instead of those that are on by default: codes, beginnings of codes such as `LK1`, names, or `ALL`;
    /// the more exact of two selectors wins
    #[arg(long, value_name = "RULE", value_delimiter = ',', help_heading = "Rules")]
    pub(crate) select: Vec<String>,
    /// Run these rules, too
    #[arg(long, value_name = "RULE", value_delimiter = ',', help_heading = "Rules")]
    pub(crate) extend_select: Vec<String>,
    /// Do not run these rules
    #[arg(long, value_name = "RULE", value_delimiter = ',', help_heading = "Rules")]
    pub(crate) ignore: Vec<String>,
    /// Leave out what is less bad
    #[arg(long, value_enum, value_name = "SEVERITY", help_heading = "Rules")]
    pub(crate) min_severity: Option<Least>,
    /// Leave out files and directories that match: a name such as `*_pb2.py`, or a path such as `src/generated`; may be given
    /// more than once
    #[arg(long, value_name = "GLOB", help_heading = "Files")]
    pub(crate) exclude: Vec<String>,
    /// Check what `.gitignore` and its like leave out, too
    #[arg(long, help_heading = "Files")]
    pub(crate) no_respect_gitignore: bool,
    /// The path of what comes from the standard input
    #[arg(long, value_name = "PATH", help_heading = "Files")]
    pub(crate) stdin_filename: Option<PathBuf>,
    /// Write the safe fixes into the files: those that change nothing but what is kept in memory
    #[arg(long, help_heading = "Fixes")]
    pub(crate) fix: bool,
    /// With `--fix` or `--diff`: also the fixes that may change what the program does
    #[arg(long, help_heading = "Fixes")]
    pub(crate) unsafe_fixes: bool,
    /// Show what `--fix` would change as a diff, and write nothing
    #[arg(long, conflicts_with_all = ["fix", "format", "statistics"], help_heading = "Fixes")]
    pub(crate) diff: bool,
    /// Show how many each rule found instead of what
    #[arg(long, help_heading = "Output")]
    pub(crate) statistics: bool,
    /// End with 0 even if something was found
    #[arg(long, help_heading = "Output")]
    pub(crate) exit_zero: bool,
    /// How the answer is written
    #[arg(
        long,
        value_parser = one_of(&[Format::Text, Format::Concise, Format::Json, Format::Sarif, Format::Github, Format::Junit]),
        default_value = "text",
        help_heading = "Output"
    )]
    pub(crate) format: Format,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Rule {
    /// Codes such as `LK102`, beginnings of codes, or names; without any, all rules are listed
    #[arg(value_name = "RULE")]
    pub(crate) rules: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Lsp {
    /// What editors say to servers that can be reached in several ways
    #[arg(long, hide = true)]
    pub(crate) stdio: bool,
}

/// The mildest severity that is of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Least {
    /// Everything
    Info,
    /// Warnings and errors
    Warning,
    /// Errors only
    Error,
}
