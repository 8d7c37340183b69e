//! What `inspect` says: what a file is, and its health.

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
    /// Distinct stacks and distinct frames.
    pub stacks: (u64, u64),
    /// Share of distinct frames that are user, library, generated and native code, in that order.
    pub frames_by_origin: [u64; 4],
    /// Everything that was checked.
    pub checks: Vec<Check>,
}

/// One device of a file.
#[derive(Clone, Debug)]
pub struct DeviceInspection {
    /// Its number.
    pub device: u32,
    /// Events by action, in a fixed order, those that occur.
    pub events: Vec<(String, u64)>,
    /// Segments: small, large, of which expandable.
    pub segments: (u64, u64, u64),
    /// Private pools.
    pub private_pools: u64,
    /// Streams.
    pub streams: u64,
    /// Blocks.
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
