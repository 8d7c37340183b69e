//! What `diff` says: what changed between snapshots.

mod groups;
mod pairing;
mod part;
mod paths;
mod relate;

use vramscope_model::{Snapshot, Symbols};

use crate::analysis::{Frame, Location};

/// One snapshot to compare.
#[derive(Clone, Copy, Debug)]
pub struct DiffInput<'a> {
    /// The path as given.
    pub path: &'a str,
    /// What it holds.
    pub snapshot: &'a Snapshot,
}

/// How two snapshots were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// Of one process: blocks are the same where address and allocation are.
    SameProcess,
    /// Of different runs: by stack.
    ByStack,
    /// Of different runs without stacks: by block size and pool.
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
    /// Each device that holds memory in either.
    pub devices: Vec<DeviceDiff>,
}

/// One device of a pair.
#[derive(Clone, Debug)]
pub struct DeviceDiff {
    /// Its number (in the later one, where different devices were compared).
    pub device: u32,
    /// Reserved bytes before and after.
    pub reserved: (u64, u64),
    /// Allocated bytes before and after. Blocks whose free was requested are not allocated.
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

/// One site or size of a pair.
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
    /// The distinct stacks in it with bytes before and after, largest change first; frames innermost first. A stack
    /// without frames stands for blocks of which none was recorded. Empty where groups are sizes.
    pub stacks: Vec<(Vec<Frame>, u64, u64)>,
}

/// Compares two or more snapshots, each with the next, and the first with the last.
///
/// Snapshots of one process are put in time order; those of different runs stay in the order given.
/// All must have been read into the same `symbols`.
pub fn diff(inputs: &[DiffInput<'_>], symbols: &Symbols) -> Diff {
    let relation = relate::relate(inputs);
    let mut caveats = relation.caveats;
    let inputs = relation.inputs;
    let mut pairs: Vec<(usize, usize)> = (1..inputs.len()).map(|i| (i - 1, i)).collect();
    if inputs.len() > 2 {
        pairs.push((0, inputs.len() - 1));
    }
    let parts = pairs
        .into_iter()
        .map(|(a, b)| part::compare(&inputs[a], &inputs[b], relation.matching, symbols, &mut caveats))
        .collect();
    caveats.extend(relate::general_caveats(&inputs, relation.matching));
    let mut seen = rustc_hash::FxHashSet::default();
    caveats.retain(|c| seen.insert(c.clone()));
    Diff { matching: relation.matching, matching_reason: relation.reason, parts, caveats }
}
