//! `vramscope inspect`.

use vramscope_model::Symbols;
use vramscope_report::{Excerpts, json, markdown, text};
use vramscope_view::InspectInput;
use vramscope_view::inspect::Health;

use crate::args::{Format, Global, Inspect};
use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::recordings;

pub(crate) fn run(args: &Inspect, global: &Global, printer: &Printer) -> anyhow::Result<ExitStatus> {
    let mut symbols = Symbols::default();
    let snapshots = recordings::read(&args.paths, None, &mut symbols, printer)?;
    let files: Vec<_> = snapshots
        .iter()
        .map(|s| {
            let warnings: Vec<String> = s.document.warnings.iter().map(ToString::to_string).collect();
            let input = InspectInput {
                path: &s.path,
                format: &s.document.format,
                rank: s.rank,
                snapshot: &s.document.snapshot,
                warnings: &warnings,
            };
            vramscope_view::inspect(&input, &symbols)
        })
        .collect();
    let answer = match global.format {
        Format::Json => json::inspect::render(&files),
        Format::Markdown => markdown::inspect::render(&files, global.verbose),
        _ => text::inspect::render(&files, &printer.layout(0, global.verbose, &Excerpts::default())),
    };
    printer.answer(&answer)?;
    let bad = files.iter().flat_map(|file| &file.checks).any(|check| check.health == Health::Bad);
    Ok(if bad { ExitStatus::Trouble } else { ExitStatus::Clean })
}
