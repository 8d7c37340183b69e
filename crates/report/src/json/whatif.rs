//! `vramscope.whatif/1`.

use schemars::JsonSchema;
use serde::Serialize;

use vramscope_view::whatif as view;

use super::{Location, list};

/// The name of the schema.
pub const SCHEMA: &str = "vramscope.whatif/1";

/// What `vramscope whatif` found out.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WhatIf")]
pub struct Document {
    /// `vramscope.whatif/1`.
    pub schema: &'static str,
    /// The version of vramscope that wrote this.
    pub version: &'static str,
    /// The newest file of the process; its state is the end of the recording.
    pub file: String,
    /// All files of the process, in time order.
    pub files: Vec<String>,
    /// The torch releases that write such files.
    pub torch: String,
    /// The device that was replayed.
    pub device: u32,
    /// Its rank, if known.
    pub rank: Option<u32>,
    /// Devices in the files that were not replayed.
    pub other_devices: Vec<OtherDevice>,
    /// Events in the device's trace.
    pub events: u64,
    /// How well a replay under the recording's own settings equals the recording.
    pub self_check: SelfCheck,
    /// What memory is limited to under the recording's own settings.
    pub limits: Limits,
    /// What came of each setting. The recording's own is always the first.
    pub settings: Vec<Setting>,
    /// The setting that is recommended, as `PYTORCH_CUDA_ALLOC_CONF` takes it; an empty text stands for the defaults.
    /// Null if none is.
    pub recommended: Option<String>,
    /// What kind of reason there is for that.
    pub reason_kind: ReasonKind,
    /// The answer as a sentence.
    pub headline: String,
    /// Why this setting is recommended, or none.
    pub reason: String,
    /// What the recommended setting costs.
    pub trade_offs: Vec<String>,
    /// What to keep in mind.
    pub caveats: Vec<String>,
}

/// Why a setting is recommended, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReasonKind {
    /// It peaks lower.
    LowerPeak,
    /// Memory does not run out under it, as it does under the recording's own settings.
    Fits,
    /// None helps: what is reserved at the peak is memory that the program holds.
    LiveMemory,
    /// None helps: the program holds and asks for more than can be reserved.
    TooMuchAtOnce,
    /// Memory runs out under all that were tried.
    NoneFits,
    /// None that was tried saves enough to be worth it.
    NoGain,
    /// The replay is too far from the recording to compare settings.
    Unreliable,
}

impl From<view::ReasonKind> for ReasonKind {
    fn from(from: view::ReasonKind) -> Self {
        match from {
            view::ReasonKind::Lower => Self::LowerPeak,
            view::ReasonKind::Fits => Self::Fits,
            view::ReasonKind::LiveMemory => Self::LiveMemory,
            view::ReasonKind::TooMuchAtOnce => Self::TooMuchAtOnce,
            view::ReasonKind::NoneFits => Self::NoneFits,
            view::ReasonKind::NoGain => Self::NoGain,
            view::ReasonKind::Unreliable => Self::Unreliable,
        }
    }
}

/// A device that was not replayed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OtherDevice {
    /// Its number.
    pub device: u32,
    /// Its rank, if known.
    pub rank: Option<u32>,
    /// The most bytes that were reserved there.
    pub peak_reserved: u64,
}

impl From<&view::OtherDevice> for OtherDevice {
    fn from(from: &view::OtherDevice) -> Self {
        Self { device: from.device, rank: from.rank, peak_reserved: from.peak_reserved }
    }
}

/// A number of things in the recording, and how many of them the replay has, too.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reproduced {
    /// In the recording.
    pub recorded: u64,
    /// In the replay, too.
    pub reproduced: u64,
}

/// How well a replay under the recording's own settings equals the recording.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SelfCheck {
    /// Whether every segment event, every address and the last state are the same.
    pub exact: bool,
    /// Segments obtained, given back, mapped and unmapped, outside private pools.
    pub segment_events: Reproduced,
    /// Segment events that only the replay made.
    pub surplus_segment_events: u64,
    /// Allocations outside private pools, and those that the replay put at the recorded address.
    pub allocations: Reproduced,
    /// Blocks at the end outside private pools, and those that the replay ends with, too.
    pub final_blocks: Reproduced,
    /// The most bytes that were reserved, and in the replay.
    pub peak_reserved: Reproduced,
    /// Where they part; null if they do not.
    pub first_divergence: Option<Divergence>,
    /// Calls of `empty_cache()` that the recording seems to have made; they are made under every setting.
    pub empty_cache_calls: u64,
    /// Bytes that were reserved but free when the recording began; settings are compared without them.
    pub cached_at_start: u64,
    /// Bytes of private pools at their peak; they are taken as recorded under every setting.
    pub private_peak: u64,
    /// All of it as a sentence.
    pub summary: String,
}

impl From<&view::SelfCheck> for SelfCheck {
    fn from(from: &view::SelfCheck) -> Self {
        let of = |recorded, reproduced| Reproduced { recorded, reproduced };
        Self {
            exact: from.exact,
            segment_events: of(from.recorded, from.reproduced),
            surplus_segment_events: from.surplus,
            allocations: of(from.allocations, from.in_place),
            final_blocks: of(from.blocks, from.same_blocks),
            peak_reserved: of(from.recorded_peak, from.replayed_peak),
            first_divergence: from.first_divergence.as_ref().map(|at| Divergence {
                event: at.event,
                step: at.step,
                recorded: at.recorded.clone(),
                replayed: at.replayed.clone(),
            }),
            empty_cache_calls: from.empty_cache_calls,
            cached_at_start: from.cached_at_start,
            private_peak: from.private_peak,
            summary: from.summary.clone(),
        }
    }
}

/// Where the replay and the recording part.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Divergence {
    /// The number of events before it.
    pub event: u64,
    /// In which step, from 1; null where steps are not known.
    pub step: Option<u64>,
    /// What was recorded.
    pub recorded: String,
    /// What the replay did.
    pub replayed: String,
}

/// What memory is limited to.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Limits {
    /// Bytes that the driver can give the process; null for any number.
    pub capacity: Option<u64>,
    /// Bytes that the process may reserve; null for any number.
    pub reserved_limit: Option<u64>,
    /// The share of the device's memory that the process may have; null for all of it.
    pub memory_fraction: Option<f64>,
    /// From a request that failed in the recording: the process could not reserve this many bytes.
    pub below: Option<u64>,
    /// Memory fractions limit nothing on devices of at least so many bytes; null where none is set, or the device's
    /// memory is known.
    pub fraction_binds_below: Option<u64>,
    /// How they are known.
    pub source: LimitSource,
    /// All of it as a sentence.
    pub summary: String,
}

/// How limits are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitSource {
    /// They are not.
    Unknown,
    /// From `--capacity`.
    Told,
    /// A request failed in the recording.
    Recorded,
}

impl From<&view::Limits> for Limits {
    fn from(from: &view::Limits) -> Self {
        Self {
            capacity: from.capacity,
            reserved_limit: from.reserved_limit,
            memory_fraction: from.memory_fraction,
            below: from.below,
            fraction_binds_below: from.fraction_binds_below,
            source: match from.source {
                view::LimitSource::Unknown => LimitSource::Unknown,
                view::LimitSource::Told => LimitSource::Told,
                view::LimitSource::Recorded => LimitSource::Recorded,
            },
            summary: from.words.clone(),
        }
    }
}

/// What came of one setting. Where memory ran out, figures are of the run until then.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Setting {
    /// As `PYTORCH_CUDA_ALLOC_CONF` takes it; an empty text stands for the defaults.
    pub conf: String,
    /// Whether it is the recording's own.
    pub own: bool,
    /// The most bytes that were reserved.
    pub peak_reserved: u64,
    /// The least bytes that the peak may be: where the driver puts memory, and in which order blocks from before the recording came,
    /// a recording does not tell.
    pub peak_reserved_low: u64,
    /// And the most.
    pub peak_reserved_high: u64,
    /// The number of events before that.
    pub peak_event: u64,
    /// In which step that was, from 1; null where steps are not known.
    pub peak_step: Option<u64>,
    /// Bytes reserved at the end.
    pub final_reserved: u64,
    /// The most bytes that the program held, as blocks.
    pub peak_allocated: u64,
    /// Bytes that the program held when the most was reserved.
    pub allocated_at_peak: u64,
    /// `1 - peak_allocated / peak_reserved`.
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
    /// Where memory ran out; null if it did not.
    pub oom: Option<OutOfMemory>,
    /// The peak of reserved bytes if nothing limited it; null if memory did not run out.
    pub needed_without_limit: Option<u64>,
    /// Requests that failed in the recording and are served under this setting, by the number of events before them.
    pub rescued: Vec<u64>,
    /// What is odd about the text.
    pub warnings: Vec<String>,
}

impl From<&view::Setting> for Setting {
    fn from(from: &view::Setting) -> Self {
        Self {
            conf: from.conf.clone(),
            own: from.is_own,
            peak_reserved: from.peak_reserved,
            peak_reserved_low: from.peak_reserved_low,
            peak_reserved_high: from.peak_reserved_high,
            peak_event: from.peak_event,
            peak_step: from.peak_step,
            final_reserved: from.final_reserved,
            peak_allocated: from.peak_allocated,
            allocated_at_peak: from.allocated_at_peak,
            peak_fragmentation: from.peak_fragmentation,
            segments_peak: from.segments_peak,
            segment_allocs: from.segment_allocs,
            segment_frees: from.segment_frees,
            maps: from.maps,
            unmaps: from.unmaps,
            retries: from.retries,
            collections: from.collections,
            oom: from.oom.as_ref().map(Into::into),
            needed_without_limit: from.needed_without_limit,
            rescued: from.rescued.clone(),
            warnings: from.warnings.clone(),
        }
    }
}

/// A request that could not be served. Bytes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OutOfMemory {
    /// The number of events before it.
    pub event: u64,
    /// In which step, from 1; null where steps are not known.
    pub step: Option<u64>,
    /// Which line asked; null where no Python frame was recorded.
    pub site: Option<Location>,
    /// What to call the place where there is none.
    pub label: String,
    /// What was asked for, rounded.
    pub size: u64,
    /// What was reserved, after all that could be was given back.
    pub reserved: u64,
    /// What the program held.
    pub allocated: u64,
    /// The largest free block of the pool and stream.
    pub largest_free: u64,
    /// All that was free there.
    pub free: u64,
}

impl From<&view::OutOfMemory> for OutOfMemory {
    fn from(from: &view::OutOfMemory) -> Self {
        Self {
            event: from.event,
            step: from.step,
            site: from.site.as_ref().map(Into::into),
            label: from.label.clone(),
            size: from.size,
            reserved: from.reserved,
            allocated: from.allocated,
            largest_free: from.largest_free,
            free: from.free,
        }
    }
}

impl From<&view::WhatIf> for Document {
    fn from(from: &view::WhatIf) -> Self {
        let recommended = from.recommended.and_then(|i| from.settings.get(i));
        Self {
            schema: SCHEMA,
            version: super::VERSION,
            file: from.files.last().cloned().unwrap_or_default(),
            files: from.files.clone(),
            torch: from.torch.clone(),
            device: from.device,
            rank: from.rank,
            other_devices: list(&from.others),
            events: from.events,
            self_check: (&from.self_check).into(),
            limits: (&from.limits).into(),
            settings: list(&from.settings),
            recommended: recommended.map(|setting| setting.conf.clone()),
            reason_kind: from.reason_kind.into(),
            headline: from.headline.clone(),
            reason: from.reason.clone(),
            trade_offs: from.trade_offs.clone(),
            caveats: from.caveats.clone(),
        }
    }
}

/// The document as text.
pub fn render(answer: &view::WhatIf) -> String {
    super::text(&Document::from(answer))
}
