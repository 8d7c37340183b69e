//! `vramscope holders`.

use vramscope_report::{Excerpts, json, markdown, text};
use vramscope_view::holders::HoldersFile;

use crate::args::{Format, Global, Holders};
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::{recorder_files, recording_directory};

pub(crate) fn run(args: &Holders, global: &Global, printer: &Printer) -> anyhow::Result<ExitStatus> {
    let files = read(args, printer)?;
    let answer = match global.format {
        Format::Json => json::holders::render_all(&files),
        Format::Markdown => markdown::holders::render(&files, args.top, global.verbose),
        _ => text::holders::render(&files, &printer.layout(args.top, global.verbose, &Excerpts::default())),
    };
    printer.answer(&answer)?;
    Ok(ExitStatus::Clean)
}

/// Files that were named, and those of recordings: the last of each process unless all are wanted.
fn read(args: &Holders, printer: &Printer) -> anyhow::Result<Vec<HoldersFile>> {
    let named = recording_directory::named_or_here(&args.paths)?;
    let paths = recording_directory::chosen_aloud(&named, printer);
    let mut files = Vec::new();
    let mut errors = Vec::new();
    for path in paths.iter().filter(|path| !path.is_dir()) {
        match recorder_files::holders(path) {
            Ok(file) => files.push(file),
            Err(error) => errors.push(error.context(format!("`{}` could not be read", path.display()))),
        }
    }
    for part in recording_directory::parts(&paths) {
        let mut read = recorder_files::read(&recording_directory::Part {
            // Only what is shown is read.
            statistics: None,
            ..part
        });
        for warning in &read.warnings {
            printer.warning(warning);
        }
        let passed = if args.all { 0 } else { read.holders.len().saturating_sub(1) };
        if passed > 0 {
            let n = read.holders.len();
            printer.note(&format!(
                "`{}` has {n} files of holders; the last is shown, `--all` shows them all",
                read.path
            ));
        }
        files.extend(read.holders.drain(passed..));
    }
    files.retain(|file| args.rank.is_none_or(|rank| file.rank == Some(rank)));
    if files.is_empty() {
        let last = errors.pop();
        printer.errors(&errors);
        return Err(last.unwrap_or_else(|| nothing_found(args, &paths)));
    }
    printer.errors(&errors);
    Ok(files)
}

fn nothing_found(args: &Holders, paths: &[std::path::PathBuf]) -> anyhow::Error {
    let names: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    let whose = args.rank.map_or_else(String::new, |rank| format!(" of rank {rank}"));
    Failure::error(
        format!("nothing says who held the memory{whose} at {}", names.join(", ")),
        "holders are what `vramscope run train.py` and `vramscope.holders()` find out; their files end with `.holders.json`",
    )
}
