//! `vramscope diff`.

use std::collections::BTreeSet;

use vramscope_model::Symbols;
use vramscope_report::{Excerpts, json, markdown, text};
use vramscope_view::DiffInput;

use crate::args::{Diff, Format, Global};
use crate::exit::ExitStatus;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::recordings::{self, Snapshot};

pub(crate) fn run(args: &Diff, global: &Global, printer: &Printer) -> anyhow::Result<ExitStatus> {
    let mut symbols = Symbols::default();
    let snapshots = recordings::read(&args.paths, None, &mut symbols, printer)?;
    if let [only] = snapshots.as_slice() {
        return Err(Failure::error(
            format!("`{}` is the only snapshot, so there is nothing to compare it with", only.path),
            "give two snapshots, or look at one with `vramscope analyze`",
        ));
    }
    let devices: BTreeSet<u32> = snapshots.iter().flat_map(Snapshot::devices).collect();
    recordings::check_device(&devices, args.device)?;
    let inputs: Vec<DiffInput<'_>> =
        snapshots.iter().map(|s| DiffInput { path: &s.path, snapshot: &s.document.snapshot }).collect();
    let mut diff = vramscope_view::diff(&inputs, &symbols);
    if let Some(wanted) = args.device {
        for part in &mut diff.parts {
            part.devices.retain(|device| device.device == wanted);
        }
    }
    let answer = match global.format {
        Format::Json => json::diff::render(&diff),
        Format::Markdown => markdown::diff::render(&diff, args.top),
        Format::Text => {
            text::diff::render(&diff, &printer.layout(args.top, global.verbose, &Excerpts::default()))
        }
    };
    printer.answer(&answer)?;
    Ok(ExitStatus::Clean)
}
