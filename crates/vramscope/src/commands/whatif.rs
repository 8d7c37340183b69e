//! `vramscope whatif`.

use std::collections::BTreeSet;

use vramscope_model::Symbols;
use vramscope_report::{Excerpts, json, markdown, text};
use vramscope_view::whatif::{Options, WhatIf};

use crate::args::{Format, Global, Whatif};
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::progress::Replays;
use crate::recording_directory::{self, Part};
use crate::recordings::{self, Snapshot};
use crate::{recorder_files, runs};

pub(crate) fn run(args: &Whatif, global: &Global, printer: &Printer) -> anyhow::Result<ExitStatus> {
    let mut symbols = Symbols::default();
    let paths = recording_directory::chosen_aloud(&args.paths, printer);
    let snapshots = recordings::read_chosen(&paths, args.rank, false, &mut symbols, printer)?;
    let devices: BTreeSet<u32> = snapshots.iter().flat_map(Snapshot::devices).collect();
    recordings::check_device(&devices, args.device)?;
    let recordings = recordings::group(snapshots, printer)?;
    // Of what the recorder wrote beside snapshots only the settings matter here.
    let surroundings = recording_directory::parts(&paths).into_iter().map(|part| {
        recorder_files::read(&Part {
            environment: part.environment,
            directory: part.directory,
            ..Part::default()
        })
    });
    let runs = runs::paired(recordings, surroundings.collect(), &mut symbols);
    let of_snapshots = runs.into_iter().filter(|run| !run.inputs.is_empty());
    let recordings: Vec<_> = of_snapshots.map(|run| (run.recording, run.inputs)).collect();
    let options = Options {
        confs: args.conf.clone(),
        sweep: args.sweep || args.conf.is_empty(),
        capacity: args.capacity,
        memory_fraction: args.memory_fraction,
        device: args.device,
    };
    let replays = Replays::new(printer.progress);
    let answer =
        vramscope_view::whatif::whatif(&recordings, &symbols, &options, &|progress| replays.show(progress))
            .map_err(|none| Failure::error(none.message, none.hint))?;
    drop(replays);
    let text = match global.format {
        Format::Json => json::whatif::render(&answer),
        Format::Markdown => markdown::whatif::render(&answer, global.verbose),
        _ => text::whatif::render(&answer, &printer.layout(0, global.verbose, &Excerpts::default())),
    };
    printer.answer(&text)?;
    Ok(if runs_out(&answer) { ExitStatus::Trouble } else { ExitStatus::Clean })
}

/// Whether memory runs out: of the settings that were asked about under each, else under the recording's own.
fn runs_out(answer: &WhatIf) -> bool {
    let mut asked = answer.settings.iter().filter(|setting| answer.swept == setting.is_own);
    (answer.swept && answer.failure_served) || asked.all(|setting| setting.oom.is_some())
}
