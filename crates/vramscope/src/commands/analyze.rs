//! `vramscope analyze`.

use std::collections::BTreeSet;

use vramscope_model::Symbols;
use vramscope_report::{json, markdown, text};
use vramscope_view::analysis::Options;

use crate::args::{Analyze, Format, Global};
use crate::exit::ExitStatus;
use crate::printer::Printer;
use crate::recordings::{self, Snapshot};
use crate::source::{SourceRoot, Sources};

pub(crate) fn run(args: &Analyze, global: &Global, printer: &Printer) -> anyhow::Result<ExitStatus> {
    args.source.iter().try_for_each(SourceRoot::check)?;
    let mut symbols = Symbols::default();
    let snapshots = recordings::read(&args.paths, args.rank, &mut symbols, printer)?;
    let devices: BTreeSet<u32> = snapshots.iter().flat_map(Snapshot::devices).collect();
    recordings::check_device(&devices, args.device)?;
    let recordings = recordings::group(snapshots, printer)?;
    let options =
        Options { device: args.device, capacity: args.capacity, since: args.since, until: args.until };
    let analysis = vramscope_view::analyze(&recordings, &symbols, &options);
    let places = analysis.findings.iter().take(args.top).filter_map(|finding| finding.site.as_ref());
    let answer = match global.format {
        Format::Json => json::analysis::render(&analysis),
        Format::Markdown => {
            let excerpts = Sources::new(&args.source).excerpts(places);
            markdown::analysis::render(&analysis, args.top, global.verbose, &excerpts)
        }
        Format::Text => {
            let excerpts = Sources::new(&args.source).excerpts(places);
            text::analysis::render(&analysis, &printer.layout(args.top, global.verbose, &excerpts))
        }
    };
    printer.answer(&answer)?;
    Ok(if analysis.verdict.is_trouble() { ExitStatus::Trouble } else { ExitStatus::Clean })
}
