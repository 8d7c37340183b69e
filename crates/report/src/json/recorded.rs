//! What `vramscope run` wrote down beside snapshots, as a part of other documents.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use vramscope_view::{holders, recorded as view};

use super::holders::{Class, Classes, Holder, Through};
use super::list;

/// What was written down of one process.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Recorded {
    /// The directory as given.
    pub path: String,
    /// The rank of the process.
    pub rank: Option<u32>,
    /// How many processes the job has.
    pub world_size: Option<u32>,
    /// The command, word by word.
    pub command: Vec<String>,
    /// When the program was started.
    pub started_us: Option<i64>,
    /// The release of torch.
    pub torch: Option<String>,
    /// The release of CUDA that torch was built with.
    pub cuda: Option<String>,
    /// The driver's version.
    pub driver: Option<String>,
    /// The names of the devices, by number.
    pub gpus: Vec<String>,
    /// Variables that set the allocator, by name.
    pub settings: BTreeMap<String, String>,
    /// The version of the recorder.
    pub recorder: Option<String>,
    /// The allocator's counters over the run, by device.
    pub curves: Vec<Curve>,
    /// Who held the memory, in time order.
    pub moments: Vec<Moment>,
    /// What is wrong with the files, each with its path.
    pub warnings: Vec<String>,
}

impl From<&view::Recorded> for Recorded {
    fn from(from: &view::Recorded) -> Self {
        let environment = from.environment.clone().unwrap_or_default();
        Self {
            path: from.path.clone(),
            rank: from.rank,
            world_size: environment.world_size,
            command: environment.command,
            started_us: environment.started_us,
            torch: environment.torch,
            cuda: environment.cuda,
            driver: environment.driver,
            gpus: environment.gpus,
            settings: super::settings(&environment.settings),
            recorder: environment.recorder,
            curves: list(&from.curves),
            moments: list(&from.holders),
            warnings: from.warnings.clone(),
        }
    }
}

/// The allocator's counters of one device over a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Curve {
    /// The device; null for a process that uses none.
    pub device: Option<u32>,
    /// How many steps ended from the first reading to the last; 0 where none were told.
    pub steps: u64,
    /// The number of the first step that was read, as the recorder counts.
    pub first_step: Option<u64>,
    /// The number of the last one.
    pub last_step: Option<u64>,
    /// How steps were told: `explicit` (`vramscope.step()`), `optimizer`, `loader` or `backward`.
    pub source: Option<String>,
    /// How often the counters were read.
    pub readings: u64,
    /// When they were first.
    pub first_us: Option<i64>,
    /// When they were last.
    pub last_us: Option<i64>,
    /// Allocated bytes at each reading; of more than 1000 at the end of 1000 equal parts.
    pub allocated: Vec<u64>,
    /// Bytes of the process in main memory, in the same way.
    pub rss: Vec<u64>,
    /// The most bytes allocated at any moment.
    pub peak_allocated: Option<u64>,
    /// The most bytes reserved at any moment.
    pub peak_reserved: Option<u64>,
}

impl From<&view::Curve> for Curve {
    fn from(from: &view::Curve) -> Self {
        Self {
            device: from.device,
            steps: from.steps,
            first_step: from.first_step,
            last_step: from.last_step,
            source: from.source.clone(),
            readings: from.readings,
            first_us: from.first_us,
            last_us: from.last_us,
            allocated: from.allocated.clone(),
            rss: from.rss.clone(),
            peak_allocated: from.peak_allocated,
            peak_reserved: from.peak_reserved,
        }
    }
}

/// Who held the memory at one moment; the file has more about each.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Moment {
    /// The file that tells.
    pub file: String,
    /// When it was.
    pub time_us: Option<i64>,
    /// The devices whose memory it is.
    pub devices: Vec<u32>,
    /// Bytes of all live blocks: the sum of `classes`.
    pub total_bytes: u64,
    /// These bytes by what keeps them alive.
    pub classes: Classes,
    /// The part of `classes.cpp_held` for which not even a storage was found.
    pub unexplained_bytes: u64,
    /// Who holds them, most bytes first.
    pub holders: Vec<HolderBytes>,
}

impl From<&holders::HoldersFile> for Moment {
    fn from(from: &holders::HoldersFile) -> Self {
        Self {
            file: from.path.clone(),
            time_us: from.time_us,
            devices: from.devices.clone(),
            total_bytes: from.holders.total.0,
            classes: (&from.holders.classes).into(),
            unexplained_bytes: from.holders.unexplained.0,
            holders: list(&from.holders.holders),
        }
    }
}

/// How much a path holds.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HolderBytes {
    /// The path.
    pub path: String,
    /// `autograd graph` where the memory hangs on the autograd graph of the object that the path names.
    pub through: Option<Through>,
    /// What keeps it alive.
    pub class: Class,
    /// Bytes of the blocks that it holds.
    pub bytes: u64,
    /// Bytes that giving it up frees.
    pub exclusive_bytes: u64,
    /// Blocks that it holds.
    pub blocks: u64,
    /// The same in every run of the same program for the same path.
    pub fingerprint: String,
}

impl From<&holders::Holder> for HolderBytes {
    fn from(from: &holders::Holder) -> Self {
        Self {
            path: from.path.clone(),
            through: from.through.map(Into::into),
            class: from.class.into(),
            bytes: from.bytes.0,
            exclusive_bytes: from.exclusive_bytes.0,
            blocks: from.blocks,
            fingerprint: from.fingerprint.clone(),
        }
    }
}

/// The holder of a finding: an entry of `vramscope.holders/1`, and how it was joined.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundHolder {
    /// The holder. Its bytes and blocks are all that it holds, of the finding or not.
    #[serde(flatten)]
    pub holder: Holder,
    /// The file that tells.
    pub file: String,
    /// By what it was joined to the finding: the `address` and size of blocks; their `size` alone, where none was looked at
    /// while it was there; its `path`, where the finding is about this holder.
    pub joined_by: &'static str,
    /// How many of the finding's blocks that file has; null unless joined by address.
    pub joined_blocks: Option<u64>,
    /// How many of those this one holds.
    pub held_blocks: Option<u64>,
}

impl From<&holders::FoundHolder> for FoundHolder {
    fn from(from: &holders::FoundHolder) -> Self {
        let (joined_by, blocks) = match from.joined {
            holders::Joined::ByAddress { found, held } => ("address", Some((found, held))),
            holders::Joined::BySize => ("size", None),
            holders::Joined::ByPath => ("path", None),
        };
        Self {
            holder: (&from.holder).into(),
            file: from.file.clone(),
            joined_by,
            joined_blocks: blocks.map(|(found, _)| found),
            held_blocks: blocks.map(|(_, held)| held),
        }
    }
}
