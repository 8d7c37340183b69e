//! How far reading and replaying are, shown in a terminal when they take more than a second.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use vramscope_view::whatif;

/// Work that is done sooner shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Counts the bytes of all files of a run.
pub(crate) struct Progress {
    bar: ProgressBar,
    wanted: bool,
    since: Instant,
}

impl Progress {
    /// Of `total` bytes; never shown unless `wanted`.
    pub(crate) fn new(total: u64, wanted: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("reading {wide_msg} {bar:24} {percent:>3} % {eta:>4}")
        {
            bar.set_style(style);
        }
        Self { bar, wanted, since: Instant::now() }
    }

    /// A file whose reading counts.
    pub(crate) fn reader(&mut self, file: File, name: &str) -> Counted<'_> {
        // A file's name must not steer the terminal.
        self.bar.set_message(name.replace(char::is_control, "?"));
        Counted { file, progress: self, at: 0, furthest: 0 }
    }

    fn advance(&mut self, bytes: u64) {
        self.bar.inc(bytes);
        if self.wanted && self.bar.is_hidden() && self.since.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A file that counts how far it was read.
pub(crate) struct Counted<'a> {
    file: File,
    progress: &'a mut Progress,
    at: u64,
    furthest: u64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buf)?;
        self.at += n as u64;
        // Looking at the beginning again is no progress.
        if self.at > self.furthest {
            self.progress.advance(self.at - self.furthest);
            self.furthest = self.at;
        }
        Ok(n)
    }
}

impl Seek for Counted<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = self.file.seek(to)?;
        Ok(self.at)
    }
}

/// Counts the settings that were replayed.
pub(crate) struct Replays {
    bar: ProgressBar,
    wanted: bool,
    since: Instant,
}

impl Replays {
    /// Never shown unless `wanted`.
    pub(crate) fn new(wanted: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("replaying {bar:24} {pos} of {len} settings {eta:>4}")
        {
            bar.set_style(style);
        }
        Self { bar, wanted, since: Instant::now() }
    }

    /// Shows how far it is. Settings are done by several threads at once.
    pub(crate) fn show(&self, progress: whatif::Progress) {
        self.bar.set_length(progress.total as u64);
        self.bar.inc(1);
        if self.wanted && self.bar.is_hidden() && self.since.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Replays {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Counts files that are done, by several threads at once.
pub(crate) struct Files {
    bar: ProgressBar,
    wanted: bool,
    since: Instant,
}

impl Files {
    /// Of `total` files, to which is done what `doing` says; never shown unless `wanted`.
    pub(crate) fn new(doing: &str, total: usize, wanted: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:24} {pos} of {len} files {eta:>4}") {
            bar.set_style(style);
        }
        bar.set_message(doing.to_owned());
        Self { bar, wanted, since: Instant::now() }
    }

    /// One more is done.
    pub(crate) fn advance(&self) {
        self.bar.inc(1);
        if self.wanted && self.bar.is_hidden() && self.since.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
