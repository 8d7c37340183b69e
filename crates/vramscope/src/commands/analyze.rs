//! `vramscope analyze`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use vramscope_model::Symbols;
use vramscope_report::{json, markdown, text};
use vramscope_view::analysis::Options;
use vramscope_view::recorded::{RecorderFiles, Run};

use crate::args::{Analyze, Format, Global};
use crate::checking::joining;
use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::recordings::{self, Snapshot};
use crate::source::{SourceRoot, Sources};
use crate::{recorder_files, recording_directory, runs};

pub(crate) fn run(args: &Analyze, global: &Global, printer: &Printer) -> anyhow::Result<ExitStatus> {
    args.source.iter().try_for_each(SourceRoot::check)?;
    let mut symbols = Symbols::default();
    let runs = read(&args.paths, args.rank, args.device, &mut symbols, printer)?;
    let options = Options {
        device: args.device,
        capacity: args.capacity,
        since: args.since,
        until: args.until,
        turnover: !args.source.is_empty(),
    };
    let mut analysis = vramscope_view::analyze_runs(&runs, &symbols, &options);
    joining::join(&mut analysis, &args.source);
    let places = analysis.findings.iter().take(args.top).filter_map(|finding| finding.site.as_ref());
    let answer = match global.format {
        Format::Json => json::analysis::render(&analysis),
        Format::Markdown => {
            let excerpts = Sources::new(&args.source).excerpts(places);
            markdown::analysis::render(&analysis, args.top, global.verbose, &excerpts)
        }
        _ => {
            let excerpts = Sources::new(&args.source).excerpts(places);
            text::analysis::render(&analysis, &printer.layout(args.top, global.verbose, &excerpts))
        }
    };
    printer.answer(&answer)?;
    Ok(if analysis.verdict.is_trouble() { ExitStatus::Trouble } else { ExitStatus::Clean })
}

/// Snapshots, and what the recorder wrote beside them.
pub(crate) fn read(
    paths: &[PathBuf],
    rank: Option<u32>,
    device: Option<u32>,
    symbols: &mut Symbols,
    printer: &Printer,
) -> anyhow::Result<Vec<Run>> {
    let named = recording_directory::named_or_here(paths)?;
    let paths = recording_directory::chosen_aloud(&named, printer);
    let mut files: Vec<RecorderFiles> =
        recording_directory::parts(&paths).iter().map(recorder_files::read).collect();
    let of_rank = |files: &RecorderFiles| rank.is_none_or(|rank| files.rank == Some(rank));
    files.retain(of_rank);
    for warning in files.iter().flat_map(|files| &files.warnings) {
        printer.warning(warning);
    }
    // A program may have ended before the first snapshot, or have used no device.
    let snapshots = recordings::read_chosen(&paths, rank, !files.is_empty(), symbols, printer)?;
    let mut devices: BTreeSet<u32> = snapshots.iter().flat_map(Snapshot::devices).collect();
    devices.extend(recorder_files::devices(&files));
    recordings::check_device(&devices, device)?;
    let recordings = recordings::group(snapshots, printer)?;
    Ok(runs::paired(recordings, files, symbols))
}
