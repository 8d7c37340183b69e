//! What explains a failed request or fragmentation, in figures. Bytes unless said otherwise.

use crate::analysis::{Location, SiteBytes};
use crate::whatif::ReasonKind;

/// Why a request for memory failed. All figures are of the moment when it was given up.
#[derive(Clone, Debug)]
pub struct Shortfall {
    /// At which event of the joined trace.
    pub event: u64,
    /// What was asked for, rounded.
    pub request: u64,
    /// What had to be obtained from the driver for it.
    pub needed: u64,
    /// Held by the program.
    pub allocated: u64,
    /// Given back, but another stream may still use it.
    pub pending: u64,
    /// Obtained from the driver.
    pub reserved: u64,
    /// What the driver had free.
    pub device_free: u64,
    /// What stood in the way.
    pub limit: Limit,
    /// Segments of so many bytes would have had to go back first.
    pub missing: u64,
    /// What was free for such requests: those of the same pool, kind and stream.
    pub pool: PoolFree,
    /// What was free in each pool, of each kind, on each stream.
    pub pools: Vec<PoolFree>,
    /// The places that held most, most first; their bytes are those of blocks.
    pub sites: Vec<SiteBytes>,
    /// How many other places held something.
    pub other_places: u64,
    /// What those held.
    pub other_bytes: u64,
    /// What kept free memory from going back.
    pub pins: Pins,
    /// What went back to the driver right before, in vain.
    pub returned: u64,
    /// What `empty_cache()` before the request would have returned that the allocator did not.
    pub empty_cache: u64,
    /// Whether that would have let it pass.
    pub empty_cache_helps: bool,
    /// Few bytes less that would have been enough.
    pub enough: Option<Enough>,
    /// The same if all of them were of the place that held most.
    pub enough_at_largest: Option<Enough>,
    /// What is held and the request come to at least, whatever the settings.
    pub at_least: u64,
    /// Whether that is more than the limit: then no setting helps.
    pub no_setting_helps: bool,
}

/// What other settings of the allocator would have done, by replays of the whole recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsTried {
    /// The setting that is recommended, as `PYTORCH_CUDA_ALLOC_CONF` takes it; empty for the defaults.
    pub recommended: Option<String>,
    /// The most bytes reserved under it.
    pub peak_reserved: Option<u64>,
    /// The most bytes reserved under the recording's own settings: without what was left over from before the recording, and
    /// without a limit if memory runs out.
    pub own_peak_reserved: u64,
    /// What could be reserved; none where nothing limits it.
    pub limit: Option<u64>,
    /// How many settings were tried beside the recording's own.
    pub tried: u64,
    /// How many requests that failed in the recording are served under the recommended setting. What the program would have
    /// asked for after the first of them is not known.
    pub rescued: u64,
    /// Whether a replay under the recording's own settings equals the recording.
    pub exact: bool,
    /// What kind of reason there is.
    pub reason_kind: ReasonKind,
    /// What comes of the recommended setting, or why none is: a sentence without a full stop.
    pub reason: String,
}

/// Whether the run fits a device of which the user told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityCheck {
    /// What the device has for the process.
    pub capacity: u64,
    /// The same in words.
    pub told: String,
    /// Whether the run fits it; none where that cannot be told.
    pub fits: Option<bool>,
    /// The most bytes that were reserved when it was recorded.
    pub recorded_peak: u64,
    /// The most bytes that are reserved on such a device; none where it does not fit.
    pub peak_reserved: Option<u64>,
    /// How often unused memory has to go back to the driver for it to fit.
    pub give_backs: u64,
    /// At which event of the joined trace memory runs out, if it does in the recording.
    pub event: Option<u64>,
}

/// What a process may obtain in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Whether it was set for the process (a memory fraction); else the device was full.
    pub is_fraction: bool,
    /// At least so much; none where nothing tells.
    pub at_least: Option<u64>,
    /// At most so much.
    pub at_most: u64,
}

/// What was free for some requests: those of one pool, kind and stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolFree {
    /// `small` (for blocks of up to 1 MiB) or `large`.
    pub kind: String,
    /// The handle of the stream; 0 is the default one.
    pub stream: u64,
    /// The pair that names a private pool (a graph's, a `MemPool`); none for the default one.
    pub private_pool: Option<(u64, u64)>,
    /// Segments.
    pub segments: u64,
    /// Obtained from the driver: the sum of the next four.
    pub reserved: u64,
    /// In blocks that the program holds.
    pub allocated: u64,
    /// In blocks given back that another stream may still use.
    pub pending: u64,
    /// Free, in whole segments or pages of expandable ones.
    pub releasable: u64,
    /// Free, in segments or pages of which something is in use.
    pub stranded: u64,
    /// The largest free block.
    pub largest_free: u64,
}

/// Blocks that would have been enough, had they been given back before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enough {
    /// Their bytes.
    pub bytes: u64,
    /// How many they are.
    pub blocks: u64,
    /// Whether they leave a gap that is large enough, rather than whole segments for the driver.
    pub leaves_gap: bool,
}

/// Stranded bytes by what keeps them: `stranded = alone + shared + dense + passing`, and `alone` is the sum over places.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    /// Free bytes in segments (or pages of expandable ones) of which something is in use.
    pub stranded: u64,
    /// Where all that is kept is of one place, and a quarter of the segment at most.
    pub alone: u64,
    /// Where several places keep a quarter of the segment at most.
    pub shared: u64,
    /// Where more than a quarter is kept: segments in use, not pinned ones.
    pub dense: u64,
    /// Where nothing is kept: what is in use is gone by the next step.
    pub passing: u64,
    /// The places that pin, most alone first.
    pub places: Vec<Pin>,
}

/// A place whose blocks keep segments that are mostly free.
#[derive(Clone, Debug)]
pub struct Pin {
    /// The place; none where no Python frame was recorded.
    pub site: Option<Location>,
    /// What to call it where there is no place.
    pub label: String,
    /// Stranded bytes that it alone pins.
    pub alone: u64,
    /// Stranded bytes that it pins together with others; each of them counts them.
    pub shared: u64,
    /// Segments that it pins; not told over time.
    pub segments: Option<u64>,
    /// Its blocks: those that pin, or over time all that are kept for longer than a step.
    pub blocks: u64,
    /// Those of them that are never freed.
    pub survivors: u64,
}

/// Fragmentation over time. Bytes over time are averages.
#[derive(Clone, Debug)]
pub struct Fragmentation {
    /// How often reserved memory grew although enough was free for such requests.
    pub failed_fits: u64,
    /// How often of that after the first third of the run.
    pub failed_fits_late: u64,
    /// How often in each of 20 equal parts of the run.
    pub failed_fits_over_time: Vec<u64>,
    /// What was obtained by that.
    pub obtained: u64,
    /// The failed fit for which most was free in vain.
    pub example: Option<FailedFit>,
    /// How long the run is in seconds, if times were recorded.
    pub seconds: Option<f64>,
    /// Free in whole segments or pages, on average.
    pub releasable: u64,
    /// The same, bytes × seconds.
    pub releasable_byte_seconds: Option<f64>,
    /// Stranded bytes by what kept them, on average.
    pub pins: Pins,
    /// Stranded bytes × seconds.
    pub stranded_byte_seconds: Option<f64>,
}

/// A request that did not fit into what was free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedFit {
    /// At which event of the joined trace.
    pub event: u64,
    /// What was asked for, rounded.
    pub request: u64,
    /// What was obtained for it.
    pub obtained: u64,
    /// What was free for such requests.
    pub free: u64,
    /// The largest piece of it, if it was looked for.
    pub largest_free: Option<u64>,
}
