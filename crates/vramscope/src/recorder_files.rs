//! Reads what the recorder wrote beside snapshots. What cannot be read is a warning: the rest is worth having.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use vramscope_formats::recorder;
use vramscope_report::json;
use vramscope_view::holders::HoldersFile;
use vramscope_view::recorded::RecorderFiles;

use crate::recording_directory::Part;

/// A file with holders of a large job has some tens of MB.
const MOST_BYTES: u64 = 1 << 30;
/// More moments are not looked at: of these the first and the last.
const MOST_MOMENTS: usize = 256;

/// Reads the files of one process. Each warning names its file.
pub(crate) fn read(part: &Part) -> RecorderFiles {
    let mut files = RecorderFiles {
        path: part.directory.display().to_string(),
        rank: part.rank,
        ..RecorderFiles::default()
    };
    if let Some(path) = &part.environment {
        match open(path).and_then(|file| recorder::environment(file).map_err(anyhow::Error::new)) {
            Ok((environment, warnings)) => {
                // A job of one process has no rank worth a word.
                let of_many = environment.world_size.is_some_and(|n| n > 1);
                files.rank = files.rank.or(environment.rank.filter(|_| of_many));
                files.environment = Some(environment);
                files.warnings.extend(warnings.iter().map(|warning| told(path, warning)));
            }
            Err(error) => files.warnings.push(left_out(path, &error)),
        }
    }
    if let Some(path) = &part.statistics {
        match open(path).and_then(|file| recorder::statistics(file).map_err(anyhow::Error::new)) {
            Ok((statistics, warnings)) => {
                files.statistics = statistics;
                files.warnings.extend(warnings.iter().map(|warning| told(path, warning)));
            }
            Err(error) => files.warnings.push(left_out(path, &error)),
        }
    }
    let n = part.holders.len();
    let is_wanted = |i: usize| i < MOST_MOMENTS / 2 || i + MOST_MOMENTS / 2 >= n;
    if n > MOST_MOMENTS {
        let passed = n - MOST_MOMENTS;
        files.warnings.push(format!("{}: {passed} of {n} files of holders were passed over", files.path));
    }
    for (_, path) in part.holders.iter().enumerate().filter(|(i, _)| is_wanted(*i)) {
        match holders(path) {
            Ok(found) => {
                let warnings = &found.holders.warnings;
                files.warnings.extend(warnings.iter().map(|warning| told(path, warning)));
                files.holders.push(HoldersFile { rank: found.rank.or(files.rank), ..found });
            }
            Err(error) => files.warnings.push(left_out(path, &error)),
        }
    }
    // Those without a time keep the order of their names.
    if files.holders.iter().all(|file| file.time_us.is_some()) {
        files.holders.sort_by_key(|file| file.time_us);
    }
    files
}

/// Reads one file of holders.
///
/// # Errors
/// When it cannot be read, or is damaged.
pub(crate) fn holders(path: &Path) -> anyhow::Result<HoldersFile> {
    let mut bytes = Vec::new();
    open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    let file = json::holders::parse(&bytes)?;
    Ok(HoldersFile { path: path.display().to_string(), ..file })
}

/// The files of some processes that hold statistics of a device.
pub(crate) fn devices(files: &[RecorderFiles]) -> BTreeSet<u32> {
    let of_holders =
        files.iter().flat_map(|files| &files.holders).flat_map(|file| file.devices.iter().copied());
    files.iter().flat_map(|files| files.statistics.devices()).chain(of_holders).collect()
}

#[expect(clippy::disallowed_methods, reason = "the CLI opens the files")]
fn open(path: &Path) -> anyhow::Result<File> {
    // A pipe would be waited for, and a device may never end.
    anyhow::ensure!(std::fs::metadata(path)?.is_file(), "not a file");
    Ok(File::open(path)?)
}

fn told(path: &Path, warning: &impl ToString) -> String {
    format!("{}: {}", path.display(), warning.to_string())
}

fn left_out(path: &Path, error: &anyhow::Error) -> String {
    format!("{}: left out, {error}", path.display())
}
