//! `vramscope.diff/1`.

use schemars::JsonSchema;
use serde::Serialize;

use vramscope_view::diff as view;

use super::{Frame, Location, list};

/// The name of the schema.
pub const SCHEMA: &str = "vramscope.diff/1";

/// What `vramscope diff` found out.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Diff")]
pub struct Document {
    /// `vramscope.diff/1`.
    pub schema: &'static str,
    /// The version of vramscope that wrote this.
    pub version: &'static str,
    /// How blocks were matched.
    pub matching: Matching,
    /// Why, in words.
    pub matching_reason: String,
    /// Each pair of neighbours, and the first with the last if there are more than two.
    pub parts: Vec<Part>,
    /// What to keep in mind.
    pub caveats: Vec<String>,
}

/// How two snapshots were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Matching {
    /// Of one process: by address and allocation.
    SameProcess,
    /// Of different runs: by stack.
    ByStack,
    /// Without stacks: by block size and pool.
    BySize,
}

impl From<view::Matching> for Matching {
    fn from(from: view::Matching) -> Self {
        match from {
            view::Matching::SameProcess => Self::SameProcess,
            view::Matching::ByStack => Self::ByStack,
            view::Matching::BySize => Self::BySize,
        }
    }
}

/// A figure in the earlier and in the later snapshot.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Both {
    /// In the earlier one.
    pub before: u64,
    /// In the later one.
    pub after: u64,
}

impl From<(u64, u64)> for Both {
    fn from((before, after): (u64, u64)) -> Self {
        Self { before, after }
    }
}

/// One pair of snapshots.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Part {
    /// The earlier one's path.
    pub before: String,
    /// The later one's path.
    pub after: String,
    /// Each device.
    pub devices: Vec<Device>,
}

impl From<&view::DiffPart> for Part {
    fn from(from: &view::DiffPart) -> Self {
        Self { before: from.before.clone(), after: from.after.clone(), devices: list(&from.devices) }
    }
}

/// One device of a pair.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Device {
    /// Its number.
    pub device: u32,
    /// Bytes obtained from the driver.
    pub reserved: Both,
    /// Bytes in blocks that the program holds.
    pub allocated: Both,
    /// Bytes of blocks born in between and still held; within one process only.
    pub born: Option<u64>,
    /// Bytes of blocks held before and no longer; within one process only.
    pub died: Option<u64>,
    /// Bytes of blocks held both times; within one process only.
    pub persisted: Option<u64>,
    /// By place or by size, largest change first; their changes add up to that of `allocated`.
    pub groups: Vec<Group>,
}

impl From<&view::DeviceDiff> for Device {
    fn from(from: &view::DeviceDiff) -> Self {
        Self {
            device: from.device,
            reserved: from.reserved.into(),
            allocated: from.allocated.into(),
            born: from.born,
            died: from.died,
            persisted: from.persisted,
            groups: list(&from.groups),
        }
    }
}

/// One place or size of a pair.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Group {
    /// The place, if it is one.
    pub site: Option<Location>,
    /// What to call it.
    pub label: String,
    /// Bytes as blocks (asked for, rounded up).
    pub bytes: Both,
    /// Blocks.
    pub blocks: Both,
    /// Bytes born, as blocks; within one process only.
    pub born: Option<u64>,
    /// Bytes that died, as blocks; within one process only.
    pub died: Option<u64>,
    /// Bytes that persisted, as blocks; within one process only.
    pub persisted: Option<u64>,
    /// The distinct stacks in it, largest change first.
    pub stacks: Vec<Stack>,
}

impl From<&view::GroupDiff> for Group {
    fn from(from: &view::GroupDiff) -> Self {
        Self {
            site: from.site.as_ref().map(Into::into),
            label: from.label.clone(),
            bytes: from.bytes.into(),
            blocks: from.blocks.into(),
            born: from.born_died_persisted.map(|(born, _, _)| born),
            died: from.born_died_persisted.map(|(_, died, _)| died),
            persisted: from.born_died_persisted.map(|(_, _, persisted)| persisted),
            stacks: from
                .stacks
                .iter()
                .map(|(frames, before, after)| Stack { frames: list(frames), before: *before, after: *after })
                .collect(),
        }
    }
}

/// One stack.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Stack {
    /// Its frames, innermost first; none stands for blocks of which no stack was recorded.
    pub frames: Vec<Frame>,
    /// Bytes in the earlier snapshot, as blocks.
    pub before: u64,
    /// Bytes in the later snapshot, as blocks.
    pub after: u64,
}

impl From<&view::Diff> for Document {
    fn from(from: &view::Diff) -> Self {
        Self {
            schema: SCHEMA,
            version: super::VERSION,
            matching: from.matching.into(),
            matching_reason: from.matching_reason.clone(),
            parts: list(&from.parts),
            caveats: from.caveats.clone(),
        }
    }
}

/// The document as text.
pub fn render(diff: &view::Diff) -> String {
    super::text(&Document::from(diff))
}
