//! What `diff` says: what changed between snapshots.

use crate::analysis::Location;

/// How two snapshots were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// Of one process: blocks are the same where address and allocation are.
    SameProcess,
    /// Of different runs: by stack.
    ByStack,
    /// Of different runs or without stacks: by block size and pool.
    BySize,
}

/// The whole comparison: one part for each pair of neighbours, and one from the first to the last if there are more.
#[derive(Clone, Debug)]
pub struct Diff {
    /// How blocks were matched.
    pub matching: Matching,
    /// Why, in words.
    pub matching_reason: String,
    /// The pairs.
    pub parts: Vec<DiffPart>,
    /// What to keep in mind.
    pub caveats: Vec<String>,
}

/// One pair of snapshots.
#[derive(Clone, Debug)]
pub struct DiffPart {
    /// The earlier one's path.
    pub before: String,
    /// The later one's path.
    pub after: String,
    /// Each device.
    pub devices: Vec<DeviceDiff>,
}

/// One device of a pair.
#[derive(Clone, Debug)]
pub struct DeviceDiff {
    /// Its number.
    pub device: u32,
    /// Reserved bytes before and after.
    pub reserved: (u64, u64),
    /// Allocated bytes before and after.
    pub allocated: (u64, u64),
    /// Bytes of blocks that were born in between and are still held; only within one process.
    pub born: Option<u64>,
    /// Bytes of blocks that were held before and no longer; only within one process.
    pub died: Option<u64>,
    /// Bytes of blocks held both times; only within one process.
    pub persisted: Option<u64>,
    /// By site (or by size), largest change first. All groups are there; the sum of their changes is the change of
    /// allocated bytes.
    pub groups: Vec<GroupDiff>,
}

/// One site, stack or size of a pair.
#[derive(Clone, Debug)]
pub struct GroupDiff {
    /// The place, if it is one.
    pub site: Option<Location>,
    /// What to call it: the place, "no Python frame …", "512.0 KiB blocks, large pool".
    pub label: String,
    /// Bytes before and after.
    pub bytes: (u64, u64),
    /// Blocks before and after.
    pub blocks: (u64, u64),
    /// Bytes born, died and persisted; only within one process.
    pub born_died_persisted: Option<(u64, u64, u64)>,
    /// The distinct stacks in it with bytes before and after, largest change first; frames innermost first.
    pub stacks: Vec<(Vec<Location>, u64, u64)>,
}
