//! `vramscope diff`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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
    let (snapshots, remark) = chosen(args, &mut symbols, printer)?;
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
    diff.caveats.splice(0..0, remark);
    if let Some(wanted) = args.device {
        for part in &mut diff.parts {
            part.devices.retain(|device| device.device == wanted);
        }
    }
    let answer = match global.format {
        Format::Json => json::diff::render(&diff),
        Format::Markdown => markdown::diff::render(&diff, args.top),
        _ => text::diff::render(&diff, &printer.layout(args.top, global.verbose, &Excerpts::default())),
    };
    printer.answer(&answer)?;
    Ok(ExitStatus::Clean)
}

/// The snapshots to compare, and what to know about the choice.
///
/// One argument may stand for the snapshots of one run, and plain files are compared each with the next. Where several
/// arguments stand for runs, to go through all files in turn would compare the end of one run with the beginning of
/// the next: then the last snapshots of the runs are compared.
fn chosen(
    args: &Diff,
    symbols: &mut Symbols,
    printer: &Printer,
) -> anyhow::Result<(Vec<Snapshot>, Option<String>)> {
    let of_files = args.paths.iter().all(|path| path.is_file());
    if of_files || args.paths.len() < 2 {
        let snapshots = recordings::read(&args.paths, None, symbols, printer)?;
        if let (false, [path]) = (of_files, args.paths.as_slice()) {
            check_ranks(path, &snapshots)?;
        }
        return Ok((snapshots, None));
    }
    let mut snapshots = Vec::new();
    let mut several = Vec::new();
    for path in &args.paths {
        let mut run = recordings::read(std::slice::from_ref(path), None, symbols, printer)?;
        check_ranks(path, &run)?;
        recordings::sort_by_time(&mut run);
        if run.len() > 1 {
            several.push(format!("`{}` stands for {} snapshots", path.display(), run.len()));
        }
        snapshots.extend(run.pop());
    }
    let of_each = if several.len() > 1 { " of each" } else { "" };
    let remark =
        (!several.is_empty()).then(|| format!("{}: the last{of_each} is compared", several.join(" and ")));
    Ok((snapshots, remark))
}

/// Refuses a path that stands for snapshots of several ranks: they are no series.
fn check_ranks(path: &Path, snapshots: &[Snapshot]) -> anyhow::Result<()> {
    let last_by_rank: BTreeMap<Option<u32>, &str> =
        snapshots.iter().map(|snapshot| (snapshot.rank, snapshot.path.as_str())).collect();
    let mut lasts = last_by_rank.values();
    match (lasts.next(), lasts.next()) {
        (Some(a), Some(b)) => Err(Failure::error(
            format!("`{}` stands for snapshots of {} ranks", path.display(), last_by_rank.len()),
            format!("name two of them, such as `{a}` and `{b}`, or the directory of one rank"),
        )),
        _ => Ok(()),
    }
}
