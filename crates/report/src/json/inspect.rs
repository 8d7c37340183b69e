//! `vramscope.inspect/1`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use vramscope_view::inspect as view;

use super::list;

/// The name of the schema.
pub const SCHEMA: &str = "vramscope.inspect/1";

/// What `vramscope inspect` found out.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Inspection")]
pub struct Document {
    /// `vramscope.inspect/1`.
    pub schema: &'static str,
    /// The version of vramscope that wrote this.
    pub version: &'static str,
    /// Each file.
    pub files: Vec<File>,
}

/// One file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct File {
    /// The path as given.
    pub path: String,
    /// How it is written.
    pub format: String,
    /// The torch releases that write such files.
    pub torch: String,
    /// The rank that its path names.
    pub rank: Option<u32>,
    /// The first recorded time.
    pub first_us: Option<i64>,
    /// The last recorded time.
    pub last_us: Option<i64>,
    /// Each device.
    pub devices: Vec<Device>,
    /// Marks in time.
    pub annotations: u64,
    /// Distinct names of marks.
    pub annotation_names: u64,
    /// Pinned host memory, where it was recorded.
    pub host: Option<Host>,
    /// Allocator settings as recorded.
    pub settings: BTreeMap<String, String>,
    /// Distinct stacks.
    pub distinct_stacks: u64,
    /// Distinct frames.
    pub distinct_frames: u64,
    /// Distinct frames by whose code they are.
    pub frames_by_origin: Origins,
    /// Everything that was checked.
    pub checks: Vec<Check>,
}

/// Pinned host memory.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Host {
    /// Segments.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Events of the host allocator.
    pub events: u64,
}

/// Distinct frames by whose code they are.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Origins {
    /// The user's.
    pub user: u64,
    /// A library's.
    pub library: u64,
    /// Generated code.
    pub generated: u64,
    /// C++ or another native language.
    pub native: u64,
}

/// One device of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Device {
    /// Its number.
    pub device: u32,
    /// Events by action.
    pub events: BTreeMap<String, u64>,
    /// Segments of the small pool.
    pub small_segments: u64,
    /// Segments of the large pool.
    pub large_segments: u64,
    /// How many of them are expandable.
    pub expandable_segments: u64,
    /// Private pools.
    pub private_pools: u64,
    /// Streams.
    pub streams: u64,
    /// Blocks.
    pub blocks: u64,
    /// Bytes obtained from the driver.
    pub reserved: u64,
    /// Bytes in blocks that the program holds.
    pub allocated: u64,
    /// Bytes in blocks given back that another stream may still use.
    pub pending: u64,
    /// Bytes in free blocks.
    pub free: u64,
    /// Events with a stack that has frames.
    pub events_with_stack: u64,
    /// Events with a stack that has none.
    pub events_with_empty_stack: u64,
    /// Events without any stack.
    pub events_without_stack: u64,
}

impl From<&view::DeviceInspection> for Device {
    fn from(from: &view::DeviceInspection) -> Self {
        let (small_segments, large_segments, expandable_segments) = from.segments;
        let (reserved, allocated, pending, free) = from.bytes;
        let (events_with_stack, events_with_empty_stack, events_without_stack) = from.stacks;
        Self {
            device: from.device,
            events: from.events.iter().cloned().collect(),
            small_segments,
            large_segments,
            expandable_segments,
            private_pools: from.private_pools,
            streams: from.streams,
            blocks: from.blocks,
            reserved,
            allocated,
            pending,
            free,
            events_with_stack,
            events_with_empty_stack,
            events_without_stack,
        }
    }
}

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
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

impl From<view::Health> for Health {
    fn from(from: view::Health) -> Self {
        match from {
            view::Health::Good => Self::Good,
            view::Health::Limited => Self::Limited,
            view::Health::Bad => Self::Bad,
            view::Health::NotApplicable => Self::NotApplicable,
        }
    }
}

/// One thing that was checked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// How it went.
    pub health: Health,
    /// What was seen.
    pub seen: String,
    /// What it means for conclusions; empty where all is well.
    pub meaning: String,
}

impl From<&view::Check> for Check {
    fn from(from: &view::Check) -> Self {
        Self {
            name: from.name.clone(),
            health: from.health.into(),
            seen: from.seen.clone(),
            meaning: from.meaning.clone(),
        }
    }
}

impl From<&view::Inspection> for File {
    fn from(from: &view::Inspection) -> Self {
        let (annotations, annotation_names) = from.annotations;
        let (distinct_stacks, distinct_frames) = from.stacks;
        let [user, library, generated, native] = from.frames_by_origin;
        Self {
            path: from.path.clone(),
            format: from.format.clone(),
            torch: from.torch.clone(),
            rank: from.rank,
            first_us: from.time_span_us.map(|(first, _)| first),
            last_us: from.time_span_us.map(|(_, last)| last),
            devices: list(&from.devices),
            annotations,
            annotation_names,
            host: from.host.map(|(segments, bytes, events)| Host { segments, bytes, events }),
            settings: super::settings(&from.settings),
            distinct_stacks,
            distinct_frames,
            frames_by_origin: Origins { user, library, generated, native },
            checks: list(&from.checks),
        }
    }
}

/// The document as text.
pub fn render(files: &[view::Inspection]) -> String {
    super::text(&Document { schema: SCHEMA, version: super::VERSION, files: list(files) })
}
