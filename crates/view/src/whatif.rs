//! What `whatif` says: what the run would have needed under other settings of the allocator.

mod caveats;
mod ending;
mod found;
mod grounds;
mod run;
mod words;

pub use run::whatif;

use crate::analysis::Location;

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Settings to try, as `PYTORCH_CUDA_ALLOC_CONF` has them.
    pub confs: Vec<String>,
    /// Whether to try a set of sensible ones, too.
    pub sweep: bool,
    /// Bytes that the device has for this process.
    pub capacity: Option<u64>,
    /// The share of them that the process may have.
    pub memory_fraction: Option<f64>,
    /// Only the device of this number.
    pub device: Option<u32>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAnswer {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// The whole answer.
#[derive(Clone, Debug)]
pub struct WhatIf {
    /// The files of the process, in time order; the last one has the state.
    pub files: Vec<String>,
    /// The torch releases that write such files.
    pub torch: String,
    /// The device that was replayed.
    pub device: u32,
    /// Its rank, if known.
    pub rank: Option<u32>,
    /// Devices that were not.
    pub others: Vec<OtherDevice>,
    /// Events in its trace.
    pub events: u64,
    /// How well a replay under the recording's own settings equals the recording.
    pub self_check: SelfCheck,
    /// What the memory is limited to, under the recording's own settings.
    pub limits: Limits,
    /// What came of each setting; the recording's own is the first.
    pub settings: Vec<Setting>,
    /// Whether a request failed when recorded that the replay serves under the recording's own setting and limits.
    pub failure_served: bool,
    /// Whether a set of sensible ones is among them.
    pub swept: bool,
    /// The peak of reserved bytes that others are compared with, where that is not the recorded one: of the recording's own
    /// setting begun anew, without what was left over from before the recording.
    pub begun_anew: Option<u64>,
    /// Which of them is recommended, if any.
    pub recommended: Option<usize>,
    /// What kind of reason there is.
    pub reason_kind: ReasonKind,
    /// The answer as a sentence, without a full stop.
    pub headline: String,
    /// Why this setting is recommended, or none: a sentence without a full stop.
    pub reason: String,
    /// What the recommended setting costs: one sentence each.
    pub trade_offs: Vec<String>,
    /// What to keep in mind: one sentence each.
    pub caveats: Vec<String>,
}

/// A device that was not replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherDevice {
    /// Its number.
    pub device: u32,
    /// Its rank, if known.
    pub rank: Option<u32>,
    /// The most bytes that were reserved there.
    pub peak_reserved: u64,
}

/// Why a setting is recommended, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasonKind {
    /// It peaks lower.
    Lower,
    /// Memory does not run out under it.
    Fits,
    /// None helps: the peak is memory that the program holds.
    LiveMemory,
    /// None helps: the program holds and asks for more than there is.
    TooMuchAtOnce,
    /// Memory runs out under all that were tried.
    NoneFits,
    /// None that was tried is worth it.
    NoGain,
    /// The replay is too far from the recording.
    Unreliable,
}

/// How well a replay under the recording's own settings equals the recording.
#[derive(Clone, Debug, Default)]
pub struct SelfCheck {
    /// Whether every segment event, every address and the last state are the same.
    pub exact: bool,
    /// Segment events in the trace, outside private pools.
    pub recorded: u64,
    /// How many of them the replay made, too.
    pub reproduced: u64,
    /// Segment events that only the replay made.
    pub surplus: u64,
    /// Allocations in the trace, outside private pools.
    pub allocations: u64,
    /// How many of them the replay put at the recorded address.
    pub in_place: u64,
    /// Blocks at the end, outside private pools.
    pub blocks: u64,
    /// How many of them the replay ends with, too.
    pub same_blocks: u64,
    /// Where they part.
    pub first_divergence: Option<Divergence>,
    /// The most bytes that were reserved in the recording.
    pub recorded_peak: u64,
    /// And in the replay from the recorded beginning.
    pub replayed_peak: u64,
    /// Calls of `empty_cache()` that the recording seems to have made.
    pub empty_cache_calls: u64,
    /// Bytes that were reserved but free when the recording began.
    pub cached_at_start: u64,
    /// Bytes of private pools at their peak.
    pub private_peak: u64,
    /// All of it as a sentence, without a full stop.
    pub summary: String,
}

/// Where the replay and the recording part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The number of events before it.
    pub event: u64,
    /// In which step, from 1.
    pub step: Option<u64>,
    /// What was recorded.
    pub recorded: String,
    /// What the replay did.
    pub replayed: String,
}

/// What memory is limited to.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Bytes that the driver can give the process; none for any number.
    pub capacity: Option<u64>,
    /// Bytes that the process may reserve; none for any number.
    pub reserved_limit: Option<u64>,
    /// The share of the device's memory that the process may have; none for all of it.
    pub memory_fraction: Option<f64>,
    /// From a failed request: the process could not reserve this many bytes.
    pub below: Option<u64>,
    /// The fraction limits nothing on devices of at least so many bytes; none where the device's memory is known.
    pub fraction_binds_below: Option<u64>,
    /// How the limits are known.
    pub source: LimitSource,
    /// The same as a sentence, without a full stop.
    pub words: String,
}

impl Limits {
    /// The most that can be reserved.
    pub fn most(&self) -> Option<u64> {
        self.capacity.into_iter().chain(self.reserved_limit).min()
    }
}

/// How limits are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSource {
    /// They are not.
    Unknown,
    /// The user told.
    Told,
    /// A request failed in the recording.
    Recorded,
}

/// What came of one setting. Where memory ran out, figures are of the run until then.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The text to set it with; empty for the defaults.
    pub conf: String,
    /// Whether it is the recording's own.
    pub is_own: bool,
    /// The most bytes that were reserved.
    pub peak_reserved: u64,
    /// The least that may be, as addresses and what was there before the recording are not known.
    pub peak_reserved_low: u64,
    /// And the most.
    pub peak_reserved_high: u64,
    /// At which event.
    pub peak_event: u64,
    /// In which step, from 1.
    pub peak_step: Option<u64>,
    /// Bytes that the program held then.
    pub allocated_at_peak: u64,
    /// Bytes reserved at the end.
    pub final_reserved: u64,
    /// The most bytes that the program held, as blocks.
    pub peak_allocated: u64,
    /// The share of the peak that the program never held: `1 - peak_allocated / peak_reserved`.
    pub peak_fragmentation: f64,
    /// The most segments there were.
    pub segments_peak: u64,
    /// Calls of `cudaMalloc`.
    pub segment_allocs: u64,
    /// Calls of `cudaFree`.
    pub segment_frees: u64,
    /// How often memory was mapped into an expandable segment.
    pub maps: u64,
    /// How often it was unmapped.
    pub unmaps: u64,
    /// How often all unused memory was given back to serve a request.
    pub retries: u64,
    /// How often unused segments were given back because of `garbage_collection_threshold`.
    pub collections: u64,
    /// Where memory ran out, if it did.
    pub oom: Option<OutOfMemory>,
    /// The peak of reserved bytes if nothing limited it, where memory ran out.
    pub needed_without_limit: Option<u64>,
    /// Requests that failed in the recording and are served here, by event.
    pub rescued: Vec<u64>,
    /// What is odd about the text.
    pub warnings: Vec<String>,
}

impl Setting {
    /// The peak of reserved bytes, or what it would be if memory had not run out.
    pub fn needed(&self) -> u64 {
        self.needed_without_limit.unwrap_or(self.peak_reserved)
    }

    /// How often the driver was called.
    pub fn driver_calls(&self) -> u64 {
        [self.segment_allocs, self.segment_frees, self.maps, self.unmaps]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// A request that could not be served. Bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The number of events before it.
    pub event: u64,
    /// In which step, from 1.
    pub step: Option<u64>,
    /// Which line asked, if known.
    pub site: Option<Location>,
    /// What to call the place where it is not.
    pub label: String,
    /// What was asked for, rounded.
    pub size: u64,
    /// What was reserved, after all that could be was given back.
    pub reserved: u64,
    /// What the program held.
    pub allocated: u64,
    /// The largest free block that would have been considered.
    pub largest_free: u64,
    /// All of what was free there.
    pub free: u64,
}

/// How far the work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Replays that are done.
    pub done: usize,
    /// Replays in all.
    pub total: usize,
}
