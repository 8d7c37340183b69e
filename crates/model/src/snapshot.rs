//! What one file holds.

use crate::annotation::Annotation;
use crate::event::Events;
use crate::segment::Segment;
use crate::settings::Settings;
use crate::units::{Bytes, TimeUs};

/// One device of a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// The device's number in its process.
    pub ordinal: u32,
    /// What the allocator did, oldest first.
    pub events: Events,
    /// What was there when the snapshot was taken, by address.
    pub segments: Vec<Segment>,
}

/// Which keys a snapshot holds; they tell which torch wrote it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent observation")]
pub struct Features {
    /// The file is a bare list of segments, as `memory_snapshot()` returns it.
    pub bare_list: bool,
    /// `stream` on segments (1.13).
    pub stream: bool,
    /// `history` on blocks (1.13 and 2.0 only).
    pub block_history: bool,
    /// `requested_size` on blocks (2.0).
    pub requested_size: bool,
    /// `address` on blocks (2.1).
    pub block_address: bool,
    /// Any `frames`.
    pub frames: bool,
    /// `time_us` on events (2.2).
    pub time: bool,
    /// `allocator_settings` (2.3).
    pub settings: bool,
    /// `external_annotations` (2.5).
    pub annotations: bool,
    /// `compile_context` on events (2.8).
    pub compile_context: bool,
    /// `user_metadata` on events (2.10).
    pub user_metadata: bool,
    /// `pool_id` on events (2.12).
    pub pool_id: bool,
    /// `host_segments` (2.14).
    pub host: bool,
    /// `internal_metadata` on events (2.15).
    pub internal_metadata: bool,
    /// `device_traces` is there.
    pub traces: bool,
}

impl Features {
    /// The torch releases that write these keys, as far as they tell.
    ///
    /// Source: the schema by version in the snapshot format reference, §1.8.
    pub fn era(&self) -> &'static str {
        if self.internal_metadata {
            "2.15 or later"
        } else if self.host {
            "2.14 or later"
        } else if self.pool_id {
            "2.12-2.13"
        } else if self.user_metadata {
            "2.10-2.11"
        } else if self.compile_context {
            "2.8-2.9"
        } else if self.annotations {
            "2.5 or later"
        } else if self.settings {
            "2.3-2.4"
        } else if self.time {
            "2.2"
        } else if self.block_address {
            // A bare list holds no top-level keys to tell later releases by.
            if self.bare_list { "2.1 or later" } else { "2.1" }
        } else if self.requested_size {
            "2.0"
        } else if self.stream || self.block_history {
            "1.13"
        } else {
            "1.12"
        }
    }
}

/// Pinned host memory (torch 2.14 and later, when asked for).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostMemory {
    /// How many host segments there are.
    pub segments: usize,
    /// Their bytes.
    pub bytes: Bytes,
    /// How many events of the host allocator there are.
    pub events: usize,
}

/// What one file holds: every device's trace and state.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The devices that have a trace or segments, by ordinal.
    pub devices: Vec<Device>,
    /// Marks in time, in order.
    pub annotations: Vec<Annotation>,
    /// The allocator's settings, if the file states them.
    pub settings: Option<Settings>,
    /// Pinned host memory, if it was recorded.
    pub host: Option<HostMemory>,
    /// Which keys the file holds.
    pub features: Features,
    /// Whether the file ended before its data did, so that the newest events or the state may be missing.
    pub truncated: bool,
}

impl Snapshot {
    /// How many events there are on all devices.
    pub fn n_events(&self) -> usize {
        self.devices.iter().map(|d| d.events.len()).sum()
    }

    /// The first and the last recorded time on any device.
    pub fn time_span(&self) -> Option<(TimeUs, TimeUs)> {
        self.devices.iter().filter_map(|d| d.events.time_span()).reduce(|(a, b), (c, d)| (a.min(c), b.max(d)))
    }

    /// The device of that number.
    pub fn device(&self, ordinal: u32) -> Option<&Device> {
        self.devices.iter().find(|d| d.ordinal == ordinal)
    }
}
