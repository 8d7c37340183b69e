//! What `inspect` says: what a file is, and its health.

mod checks;
mod figures;

use vramscope_model::{Snapshot, Symbols};
use vramscope_replay::health::{self, StackUse};

/// One file to describe.
#[derive(Clone, Copy, Debug)]
pub struct InspectInput<'a> {
    /// The path as given.
    pub path: &'a str,
    /// How it is written: "gzip, pickle protocol 5".
    pub format: &'a str,
    /// The rank that its path names, if any.
    pub rank: Option<u32>,
    /// What it holds.
    pub snapshot: &'a Snapshot,
    /// What was wrong while it was read.
    pub warnings: &'a [String],
}

/// One file, described.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The path as given.
    pub path: String,
    /// How it is written.
    pub format: String,
    /// The torch releases that write such files.
    pub torch: String,
    /// The rank that its path names, if any.
    pub rank: Option<u32>,
    /// First and last recorded time, µs since 1970 UTC.
    pub time_span_us: Option<(i64, i64)>,
    /// Each device.
    pub devices: Vec<DeviceInspection>,
    /// Marks in time, and how many distinct names they have.
    pub annotations: (u64, u64),
    /// Pinned host memory: segments, bytes, events.
    pub host: Option<(u64, u64, u64)>,
    /// Allocator settings as recorded, by name.
    pub settings: Vec<(String, String)>,
    /// Distinct stacks and distinct frames that this file uses.
    pub stacks: (u64, u64),
    /// How many of those frames are user, library, generated and native code, in that order.
    pub frames_by_origin: [u64; 4],
    /// Everything that was checked. What was read without trouble and is not in the file is not mentioned.
    pub checks: Vec<Check>,
}

/// One device of a file.
#[derive(Clone, Debug)]
pub struct DeviceInspection {
    /// Its number.
    pub device: u32,
    /// Events by action, in a fixed order, those that occur. Actions that are not known come last, by their names.
    pub events: Vec<(String, u64)>,
    /// Segments: of the small pool, of the large pool; and how many of both are expandable.
    pub segments: (u64, u64, u64),
    /// Private pools: of CUDA graphs and `MemPool`s.
    pub private_pools: u64,
    /// Streams.
    pub streams: u64,
    /// Blocks in any state.
    pub blocks: u64,
    /// Bytes reserved, allocated, pending, free.
    pub bytes: (u64, u64, u64, u64),
    /// Events with a stack, with an empty one, without any.
    pub stacks: (u64, u64, u64),
}

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// As it should be.
    Good,
    /// Limits what can be concluded.
    Limited,
    /// The file contradicts itself.
    Bad,
    /// Could not be checked on this file.
    NotApplicable,
}

/// One thing that was checked, and what it means.
#[derive(Clone, Debug)]
pub struct Check {
    /// What was checked: "blocks tile their segments".
    pub name: String,
    /// How it went.
    pub health: Health,
    /// What was seen, with figures.
    pub seen: String,
    /// What it means for conclusions; empty where all is well.
    pub meaning: String,
}

/// Describes a file and checks its health.
pub fn inspect(input: &InspectInput<'_>, symbols: &Symbols) -> Inspection {
    let snapshot = input.snapshot;
    let stacks = StackUse::of(snapshot, symbols);
    let marks = health::check_marks(snapshot);
    let devices = health::check(snapshot);
    Inspection {
        path: input.path.to_owned(),
        format: input.format.to_owned(),
        torch: snapshot.features.era().to_owned(),
        rank: input.rank,
        time_span_us: snapshot.time_span().map(|(first, last)| (first.0, last.0)),
        devices: snapshot.devices.iter().map(|d| figures::device(d, symbols)).collect(),
        annotations: (marks.marks, marks.names),
        host: snapshot.host.map(|h| (h.segments as u64, h.bytes.0, h.events as u64)),
        settings: snapshot.settings.as_ref().map(|s| s.all.clone()).unwrap_or_default(),
        stacks: (stacks.stacks, stacks.frames),
        frames_by_origin: stacks.frames_by_origin,
        checks: checks::run(input, &devices, &stacks, &marks),
    }
}
