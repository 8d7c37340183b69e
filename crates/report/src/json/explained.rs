//! What explains a failed request or fragmentation, as part of `vramscope.analysis/1`. Bytes unless said otherwise.

use schemars::JsonSchema;
use serde::Serialize;

use vramscope_view::explained as view;

use super::whatif::ReasonKind;
use super::{Location, SiteBytes, list};

/// Why a request for memory failed. All figures are of the moment when it was given up.
#[derive(Debug, Serialize, JsonSchema)]
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

impl From<&view::Shortfall> for Shortfall {
    fn from(from: &view::Shortfall) -> Self {
        Self {
            event: from.event,
            request: from.request,
            needed: from.needed,
            allocated: from.allocated,
            pending: from.pending,
            reserved: from.reserved,
            device_free: from.device_free,
            limit: (&from.limit).into(),
            missing: from.missing,
            pool: (&from.pool).into(),
            pools: list(&from.pools),
            sites: list(&from.sites),
            other_places: from.other_places,
            other_bytes: from.other_bytes,
            pins: (&from.pins).into(),
            returned: from.returned,
            empty_cache: from.empty_cache,
            empty_cache_helps: from.empty_cache_helps,
            enough: from.enough.as_ref().map(Into::into),
            enough_at_largest: from.enough_at_largest.as_ref().map(Into::into),
            at_least: from.at_least,
            no_setting_helps: from.no_setting_helps,
        }
    }
}

/// What other settings of the allocator would have done, by replays of the whole recording. `vramscope whatif` tells all of
/// it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SettingsTried {
    /// The setting that is recommended, as `PYTORCH_CUDA_ALLOC_CONF` takes it; an empty text stands for the defaults.
    /// Null if none is.
    pub recommended: Option<String>,
    /// The most bytes reserved under it.
    pub peak_reserved: Option<u64>,
    /// The most bytes reserved under the recording's own settings: without what was left over from before the
    /// recording, and without a limit if memory runs out.
    pub own_peak_reserved: u64,
    /// What could be reserved; null where nothing limits it.
    pub limit: Option<u64>,
    /// How many settings were tried beside the recording's own.
    pub tried: u64,
    /// How many requests that failed in the recording are served under the recommended setting. What the program would
    /// have asked for after the first of them is not known.
    pub rescued: u64,
    /// Whether a replay under the recording's own settings equals the recording.
    pub exact: bool,
    /// What kind of reason there is.
    pub reason_kind: ReasonKind,
    /// What comes of the recommended setting, or why none is.
    pub reason: String,
}

impl From<&view::SettingsTried> for SettingsTried {
    fn from(from: &view::SettingsTried) -> Self {
        Self {
            recommended: from.recommended.clone(),
            peak_reserved: from.peak_reserved,
            own_peak_reserved: from.own_peak_reserved,
            limit: from.limit,
            tried: from.tried,
            rescued: from.rescued,
            exact: from.exact,
            reason_kind: from.reason_kind.into(),
            reason: from.reason.clone(),
        }
    }
}

/// Whether the run fits a device.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CapacityCheck {
    /// What the device has for the process.
    pub capacity: u64,
    /// Whether the run fits it; null where that cannot be told.
    pub fits: Option<bool>,
    /// The most bytes that were reserved when it was recorded.
    pub recorded_peak: u64,
    /// The most bytes that are reserved on such a device; null where the run does not fit it.
    pub peak_reserved: Option<u64>,
    /// How often unused memory has to go back to the driver for it to fit.
    pub give_backs: u64,
    /// At which event of the joined trace memory runs out, if it does in the recording.
    pub event: Option<u64>,
}

impl From<&view::CapacityCheck> for CapacityCheck {
    fn from(from: &view::CapacityCheck) -> Self {
        Self {
            capacity: from.capacity,
            fits: from.fits,
            recorded_peak: from.recorded_peak,
            peak_reserved: from.peak_reserved,
            give_backs: from.give_backs,
            event: from.event,
        }
    }
}

/// What a process may obtain in all.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Limit {
    /// Whether it was set for the process (a memory fraction); else the device was full.
    pub memory_fraction: bool,
    /// At least so much; null where nothing tells.
    pub at_least: Option<u64>,
    /// At most so much.
    pub at_most: u64,
}

impl From<&view::Limit> for Limit {
    fn from(from: &view::Limit) -> Self {
        Self { memory_fraction: from.is_fraction, at_least: from.at_least, at_most: from.at_most }
    }
}

/// What was free for some requests: those of one pool, kind and stream.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PoolFree {
    /// `small` (for blocks of up to 1 MiB) or `large`.
    pub kind: String,
    /// The handle of the stream; 0 is the default one.
    pub stream: u64,
    /// The pair that names a private pool (a graph's, a `MemPool`); null for the default one.
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

impl From<&view::PoolFree> for PoolFree {
    fn from(from: &view::PoolFree) -> Self {
        Self {
            kind: from.kind.clone(),
            stream: from.stream,
            private_pool: from.private_pool,
            segments: from.segments,
            reserved: from.reserved,
            allocated: from.allocated,
            pending: from.pending,
            releasable: from.releasable,
            stranded: from.stranded,
            largest_free: from.largest_free,
        }
    }
}

/// Blocks that would have been enough, had they been given back before.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Enough {
    /// Their bytes.
    pub bytes: u64,
    /// How many they are.
    pub blocks: u64,
    /// Whether they leave a gap that is large enough, rather than whole segments for the driver.
    pub leaves_gap: bool,
}

impl From<&view::Enough> for Enough {
    fn from(from: &view::Enough) -> Self {
        Self { bytes: from.bytes, blocks: from.blocks, leaves_gap: from.leaves_gap }
    }
}

/// Stranded bytes by what keeps them: `stranded = alone + shared + dense + passing`, and `alone` is the sum over places.
#[derive(Debug, Serialize, JsonSchema)]
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

impl From<&view::Pins> for Pins {
    fn from(from: &view::Pins) -> Self {
        Self {
            stranded: from.stranded,
            alone: from.alone,
            shared: from.shared,
            dense: from.dense,
            passing: from.passing,
            places: list(&from.places),
        }
    }
}

/// A place whose blocks keep segments that are mostly free.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Pin {
    /// The place; null where no Python frame was recorded.
    pub site: Option<Location>,
    /// What to call it where there is no place.
    pub label: String,
    /// Stranded bytes that it alone pins.
    pub alone: u64,
    /// Stranded bytes that it pins together with others; each of them counts them.
    pub shared: u64,
    /// Segments that it pins; null over time.
    pub segments: Option<u64>,
    /// Its blocks: those that pin, or over time all that are kept for longer than a step.
    pub blocks: u64,
    /// Those of them that are never freed.
    pub survivors: u64,
}

impl From<&view::Pin> for Pin {
    fn from(from: &view::Pin) -> Self {
        Self {
            site: from.site.as_ref().map(Into::into),
            label: from.label.clone(),
            alone: from.alone,
            shared: from.shared,
            segments: from.segments,
            blocks: from.blocks,
            survivors: from.survivors,
        }
    }
}

/// Fragmentation over time. Bytes over time are averages.
#[derive(Debug, Serialize, JsonSchema)]
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

impl From<&view::Fragmentation> for Fragmentation {
    fn from(from: &view::Fragmentation) -> Self {
        Self {
            failed_fits: from.failed_fits,
            failed_fits_late: from.failed_fits_late,
            failed_fits_over_time: from.failed_fits_over_time.clone(),
            obtained: from.obtained,
            example: from.example.as_ref().map(Into::into),
            seconds: from.seconds,
            releasable: from.releasable,
            releasable_byte_seconds: from.releasable_byte_seconds,
            pins: (&from.pins).into(),
            stranded_byte_seconds: from.stranded_byte_seconds,
        }
    }
}

/// A request that did not fit into what was free.
#[derive(Debug, Serialize, JsonSchema)]
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

impl From<&view::FailedFit> for FailedFit {
    fn from(from: &view::FailedFit) -> Self {
        Self {
            event: from.event,
            request: from.request,
            obtained: from.obtained,
            free: from.free,
            largest_free: from.largest_free,
        }
    }
}
