//! From files to recordings: reads them all, tells ranks and processes apart, puts snapshots of one process together.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read as _};
use std::path::PathBuf;

use anyhow::Context;
use vramscope_formats::{Document, Error};
use vramscope_model::{Action, Device, Recording, Relation, Symbols, join, relation};
use vramscope_view::analysis;

use crate::failure::Failure;
use crate::inputs::{self, Input};
use crate::printer::Printer;
use crate::progress::Progress;
use crate::recording_directory;

/// A file that was read.
pub(crate) struct Snapshot {
    /// The path as given.
    pub(crate) path: String,
    /// The rank that the path names.
    pub(crate) rank: Option<u32>,
    /// The directory that the recorder wrote it to, with all else of its process.
    part: Option<PathBuf>,
    /// What it holds.
    pub(crate) document: Document,
}

impl Snapshot {
    /// The devices that the process used. Taking a snapshot leaves a mark on each one it could have used.
    pub(crate) fn devices(&self) -> impl Iterator<Item = u32> {
        let used = |device: &&Device| {
            !device.segments.is_empty() || device.events.iter().any(|event| event.action != Action::Snapshot)
        };
        self.document.snapshot.devices.iter().filter(used).map(|device| device.ordinal)
    }
}

/// Reads all snapshots at or below some paths, in the order given. What cannot be read is said and left out. Of a directory
/// of several recordings the newest is meant.
///
/// # Errors
/// When nothing is left.
pub(crate) fn read(
    paths: &[PathBuf],
    rank: Option<u32>,
    symbols: &mut Symbols,
    printer: &Printer,
) -> anyhow::Result<Vec<Snapshot>> {
    let paths = recording_directory::chosen_aloud(paths, printer);
    read_chosen(&paths, rank, false, symbols, printer)
}

/// The same of paths that were chosen already. Where that is allowed, there need not be any.
pub(crate) fn read_chosen(
    paths: &[PathBuf],
    rank: Option<u32>,
    none_is_enough: bool,
    symbols: &mut Symbols,
    printer: &Printer,
) -> anyhow::Result<Vec<Snapshot>> {
    let mut found = inputs::find(paths);
    found.files.retain(|input| input.named || !recording_directory::is_beside_snapshots(&input.path));
    let mut errors = std::mem::take(&mut found.errors);
    let of_rank =
        if none_is_enough && found.files.is_empty() { Vec::new() } else { only_rank(found.files, rank)? };
    let size = |input: &Input| input.path.metadata().map_or(0, |data| data.len());
    let mut progress = Progress::new(of_rank.iter().map(size).sum(), printer.progress);
    let n_files = of_rank.len();
    let mut snapshots = Vec::new();
    for input in of_rank {
        match read_one(&input, symbols, &mut progress) {
            Ok(Some(document)) => {
                let path = input.path.display().to_string();
                let part = recording_directory::part_of(&input.path);
                snapshots.push(Snapshot { path, rank: input.rank, part, document });
            }
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
    }
    drop(progress);
    if snapshots.is_empty() && !none_is_enough {
        // The last one is returned and shown like the others.
        let last = errors.pop();
        printer.errors(&errors);
        return Err(last.unwrap_or_else(|| nothing_found(paths, n_files)));
    }
    printer.errors(&errors);
    for snapshot in &snapshots {
        for warning in &snapshot.document.warnings {
            printer.warning(&format!("{}: {warning}", snapshot.path));
        }
    }
    Ok(snapshots)
}

/// Reads a file; nothing if it is no snapshot and was only come across in a directory.
fn read_one(
    input: &Input,
    symbols: &mut Symbols,
    progress: &mut Progress,
) -> anyhow::Result<Option<Document>> {
    let name = || format!("`{}`", input.path.display());
    #[expect(clippy::disallowed_methods, reason = "the CLI opens the files")]
    let file = std::fs::File::open(&input.path).with_context(|| format!("{} could not be opened", name()))?;
    // A pipe cannot be gone back in, which reading needs: it is kept. A device may never end.
    let kind = file.metadata().with_context(|| format!("{} could not be opened", name()))?.file_type();
    if !kind.is_file() && !input.named {
        return Ok(None);
    }
    if is_endless(kind) {
        let hint = "give a file, or the output of a program as `<(zcat file.gz)`";
        return Err(Failure::error(format!("{} is a device, not a file", name()), hint));
    }
    if !kind.is_file() {
        let mut kept = Vec::new();
        file.take(MOST_KEPT)
            .read_to_end(&mut kept)
            .with_context(|| format!("{} could not be read", name()))?;
        return match vramscope_formats::read(Cursor::new(kept), symbols) {
            Ok(document) => Ok(Some(document)),
            Err(error) => Err(anyhow::Error::new(error).context(format!("{} could not be read", name()))),
        };
    }
    let shown = input.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    match vramscope_formats::read(progress.reader(file, &shown), symbols) {
        // Any JSON object that was only come across could pass for a snapshot of nothing.
        Ok(document) if !input.named && document.snapshot.devices.is_empty() => Ok(None),
        Ok(document) => Ok(Some(document)),
        Err(Error::Empty | Error::Unknown { .. } | Error::NoSnapshot { .. }) if !input.named => Ok(None),
        Err(Error::NoSnapshot { .. } | Error::Unknown { .. })
            if recording_directory::is_of_holders(&input.path) =>
        {
            let hint = format!("show them with `vramscope holders {}`", input.path.display());
            Err(Failure::error(format!("{} holds no snapshot but who held the memory", name()), hint))
        }
        Err(error) => Err(anyhow::Error::new(error).context(format!("{} could not be read", name()))),
    }
}

/// The most that is kept of a pipe.
const MOST_KEPT: u64 = 8 << 30;

/// Whether reading may never come to an end.
#[cfg(unix)]
fn is_endless(kind: std::fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_endless(_: std::fs::FileType) -> bool {
    false
}

fn only_rank(files: Vec<Input>, rank: Option<u32>) -> anyhow::Result<Vec<Input>> {
    let Some(rank) = rank else { return Ok(files) };
    let ranks: BTreeSet<u32> = files.iter().filter_map(|input| input.rank).collect();
    if files.is_empty() || ranks.contains(&rank) {
        return Ok(files.into_iter().filter(|input| input.rank == Some(rank)).collect());
    }
    let hint = if ranks.is_empty() {
        "ranks are read from paths such as `rank0/step20.pickle` or `snapshot_rank0.pickle`; leave out `--rank`".into()
    } else {
        format!("there are snapshots of rank {}", listed(&ranks))
    };
    Err(Failure::error(format!("no snapshot is of rank {rank}"), hint))
}

fn nothing_found(paths: &[PathBuf], n_files: usize) -> anyhow::Error {
    let names: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    let files = if n_files == 1 { "one file".to_owned() } else { format!("any of the {n_files} files") };
    let hint = if recording_directory::parts(paths).is_empty() {
        "a snapshot is what `torch.cuda.memory._dump_snapshot(\"file.pickle\")` writes"
    } else {
        "no CUDA memory was in use while the program was recorded; `vramscope analyze` and `vramscope holders` show the rest"
    };
    Failure::error(format!("no memory snapshot in {files} at {}", names.join(", ")), hint)
}

/// Puts snapshots together by rank and process. Each recording comes with its files in time order.
///
/// # Errors
/// When snapshots of one rank are of different processes.
pub(crate) fn group(
    snapshots: Vec<Snapshot>,
    printer: &Printer,
) -> anyhow::Result<Vec<(Recording, Vec<analysis::Input>)>> {
    let mut by_rank: BTreeMap<Option<u32>, Vec<Snapshot>> = BTreeMap::new();
    for snapshot in snapshots {
        by_rank.entry(snapshot.rank).or_default().push(snapshot);
    }
    let mut recordings = Vec::new();
    for (rank, snapshots) in by_rank {
        let processes = processes(snapshots);
        // The recorder knows its processes: a program and those that it started.
        let are_told = processes.iter().flatten().all(|snapshot| snapshot.part.is_some());
        if processes.len() > 1 && !are_told {
            if rank.is_some() || !hold_different_devices(&processes) {
                return Err(unrelated(rank, &processes));
            }
            printer.note(&format!(
                "the snapshots are of {} processes with a device each; they are taken as one job",
                processes.len()
            ));
        }
        recordings.extend(processes.into_iter().map(|process| one_process(process, rank, printer)));
    }
    Ok(recordings)
}

/// Sorts snapshots into processes.
fn processes(snapshots: Vec<Snapshot>) -> Vec<Vec<Snapshot>> {
    let mut processes: Vec<Vec<Snapshot>> = Vec::new();
    // A snapshot from before the first allocation holds nothing by which to tell its process.
    let (empty, telling): (Vec<_>, Vec<_>) =
        snapshots.into_iter().partition(|s| s.devices().next().is_none());
    for snapshot in telling {
        // One may connect two that had nothing in common before.
        let (mut same, other): (Vec<_>, Vec<_>) = std::mem::take(&mut processes)
            .into_iter()
            .partition(|p| p.iter().any(|s| same_process(s, &snapshot)));
        processes = other;
        let mut process: Vec<Snapshot> = same.drain(..).flatten().collect();
        process.push(snapshot);
        processes.push(process);
    }
    if let Some(first) = processes.first_mut() {
        first.splice(0..0, empty);
    } else if !empty.is_empty() {
        processes.push(empty);
    }
    processes
}

fn same_process(a: &Snapshot, b: &Snapshot) -> bool {
    // Between windows of the recorder nothing may be left by which a process could be told.
    if let (Some(a), Some(b)) = (&a.part, &b.part) {
        return a == b;
    }
    relation(&a.document.snapshot, &b.document.snapshot).is_same_process()
}

fn hold_different_devices(processes: &[Vec<Snapshot>]) -> bool {
    let mut seen = BTreeSet::new();
    processes.iter().all(|process| {
        let devices: BTreeSet<u32> = process.iter().flat_map(Snapshot::devices).collect();
        devices.into_iter().all(|device| seen.insert(device))
    })
}

/// Why two processes of one rank cannot be looked at together.
fn unrelated(rank: Option<u32>, processes: &[Vec<Snapshot>]) -> anyhow::Error {
    let firsts: Vec<&Snapshot> = processes.iter().filter_map(|process| process.first()).collect();
    let (names, reason) = match firsts.as_slice() {
        [a, b, ..] => (
            format!("`{}` and `{}`", a.path, b.path),
            match relation(&a.document.snapshot, &b.document.snapshot) {
                Relation::Contradictory => "their traces cover the same time but hold different events",
                _ => "they share neither events nor segments",
            },
        ),
        _ => ("the snapshots".to_owned(), "they have nothing in common"),
    };
    let whose = rank.map(|rank| format!(", both of rank {rank},")).unwrap_or_default();
    Failure::error(
        format!("{names}{whose} are of different processes: {reason}"),
        "analyze them one at a time, compare them with `vramscope diff`, \
         or put those of each rank in a directory of its own: `rank0/`, `rank1/`",
    )
}

fn one_process(
    mut process: Vec<Snapshot>,
    rank: Option<u32>,
    printer: &Printer,
) -> (Recording, Vec<analysis::Input>) {
    // As `join` does it, so that the files are listed in the order of its states.
    sort_by_time(&mut process);
    let n_taken = up_to_last_good_window(&process);
    if n_taken < process.len()
        && let Some(last) = process.get(n_taken - 1)
    {
        let left_out = process.len() - n_taken;
        printer.note(&format!(
            "the history after `{}` is too short to judge, so {left_out} later {} left out",
            last.path,
            if left_out == 1 { "snapshot is" } else { "snapshots are" }
        ));
        process.truncate(n_taken);
    }
    let inputs = process.iter().map(describe).collect();
    let snapshots = process.into_iter().map(|s| s.document.snapshot).collect();
    (join(snapshots, rank), inputs)
}

/// How many of the snapshots of the recorder to take: up to the last window whose history is not much shorter than the
/// longest. Each window begins its history anew, and the last one may have been cut off by the program's end.
fn up_to_last_good_window(process: &[Snapshot]) -> usize {
    if process.iter().any(|snapshot| snapshot.part.is_none()) {
        return process.len();
    }
    let events = |snapshot: &Snapshot| snapshot.document.snapshot.n_events();
    let longest = process.iter().map(events).max().unwrap_or(0);
    // Where nothing has a history, states are all there is.
    let is_good = |snapshot: &Snapshot| events(snapshot) * GOOD_WINDOW >= longest;
    process.iter().rposition(is_good).map_or(process.len(), |i| i + 1)
}

/// A window with so many times fewer events than the longest is too short.
const GOOD_WINDOW: usize = 4;

/// Puts snapshots in time order, if all of them hold times.
pub(crate) fn sort_by_time(snapshots: &mut [Snapshot]) {
    let last = |s: &Snapshot| s.document.snapshot.time_span().map(|(_, last)| last);
    if snapshots.iter().all(|s| last(s).is_some()) {
        snapshots.sort_by_key(last);
    }
}

fn describe(file: &Snapshot) -> analysis::Input {
    let snapshot = &file.document.snapshot;
    let span = snapshot.time_span();
    analysis::Input {
        path: file.path.clone(),
        format: file.document.format.clone(),
        torch: snapshot.features.era().to_owned(),
        devices: file.devices().collect(),
        rank: file.rank,
        events: snapshot.n_events() as u64,
        first_us: span.map(|(first, _)| first.0),
        last_us: span.map(|(_, last)| last.0),
        warnings: file.document.warnings.iter().map(ToString::to_string).collect(),
    }
}

/// Checks that a device is there.
///
/// # Errors
/// When it is not: which ones are.
pub(crate) fn check_device(devices: &BTreeSet<u32>, wanted: Option<u32>) -> anyhow::Result<()> {
    match wanted {
        Some(device) if !devices.contains(&device) => Err(Failure::error(
            format!("no snapshot holds device {device}"),
            if devices.is_empty() {
                "they hold no device at all".to_owned()
            } else {
                format!("they hold device {}", listed(devices))
            },
        )),
        _ => Ok(()),
    }
}

fn listed(numbers: &BTreeSet<u32>) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
