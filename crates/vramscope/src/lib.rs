//! The command line: arguments in, files read, answers printed, an exit status out.
//!
//! Only this crate opens files, looks at the environment and writes; within it only `printer` writes, and
//! `language_server` to editors.

mod args;
mod checking;
mod commands;
mod exit;
mod failure;
mod inputs;
mod language_server;
mod moment;
mod printer;
mod progress;
mod recorder_files;
mod recording_directory;
mod recordings;
mod runs;
mod share;
mod size;
mod source;

use std::ffi::OsString;

use clap::{CommandFactory as _, Parser};

use args::{Args, Command};
pub use commands::run::Recorded;
pub use exit::ExitStatus;
use printer::Printer;

/// Runs the command as it was typed, its own name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitStatus {
    let words: Vec<OsString> = arguments.into_iter().collect();
    let args = match Args::try_parse_from(&words) {
        Ok(args) => args,
        Err(error) => {
            Printer::arguments(&error);
            return if error.use_stderr() { ExitStatus::Failure } else { ExitStatus::Clean };
        }
    };
    let printer = Printer::new(&args.global);
    let result = printer.check_output(args.command.paths()).and_then(|()| match &args.command {
        Command::Analyze(command) => commands::analyze::run(command, &args.global, &printer),
        Command::Check(command) => commands::check::run(command, &args.global, &printer),
        Command::Diff(command) => commands::diff::run(command, &args.global, &printer),
        Command::Fix(command) => commands::fix::run(command, &args.global, &printer),
        Command::Holders(command) => commands::holders::run(command, &args.global, &printer),
        Command::Inspect(command) => commands::inspect::run(command, &args.global, &printer),
        Command::Lsp(_) => commands::lsp::run(&args.global),
        Command::Rule(command) => commands::rule::run(command, &args.global, &printer),
        Command::Whatif(command) => commands::whatif::run(command, &args.global, &printer),
        Command::Run(_) => {
            commands::run::check_output(&args.global).and_then(|()| commands::run::by_python(words))
        }
    });
    match result {
        Ok(status) => status,
        Err(error) if printer::is_broken_pipe(&error) => ExitStatus::Clean,
        Err(error) => {
            printer.error(&error);
            ExitStatus::Failure
        }
    }
}

/// Whether the command that was typed reads recordings in this process, and starts no other.
pub fn reads_recordings(arguments: &[OsString]) -> bool {
    Args::try_parse_from(arguments).is_ok_and(|args| {
        matches!(
            args.command,
            Command::Analyze(_)
                | Command::Diff(_)
                | Command::Fix(_)
                | Command::Holders(_)
                | Command::Inspect(_)
                | Command::Whatif(_)
        )
    })
}

/// What `vramscope run` was asked for; none where another command was typed, or a wrong one, which [`run`] then says.
pub fn parse_run(arguments: impl IntoIterator<Item = OsString>) -> Option<Recorded> {
    let args = Args::try_parse_from(arguments).ok()?;
    match args.command {
        Command::Run(command) if commands::run::check_output(&args.global).is_ok() => {
            Some(Recorded::new(command, &args.global))
        }
        _ => None,
    }
}

/// The commands and flags, for writing them down.
pub fn command() -> clap::Command {
    Args::command()
}
