//! `vramscope.analysis/1`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use vramscope_view::analysis as view;

use super::explained::{CapacityCheck, Fragmentation, SettingsTried, Shortfall};
use super::pattern::{HarmlessPattern, Pattern};
use super::recorded::{FoundHolder, Recorded};
use super::{Frame, Location, SiteBytes, list};

/// The name of the schema.
pub const SCHEMA: &str = "vramscope.analysis/1";

/// What `vramscope analyze` found out.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Analysis")]
pub struct Document {
    /// `vramscope.analysis/1`.
    pub schema: &'static str,
    /// The version of vramscope that wrote this.
    pub version: &'static str,
    /// The files, in time order within each rank.
    pub inputs: Vec<Input>,
    /// The one-word answer: the most serious that applies, in this order.
    pub verdict: Verdict,
    /// The answer as a sentence.
    pub headline: String,
    /// How sure the verdict is, from 0 to 1, if it is a finding's.
    pub confidence: Option<f64>,
    /// Each device of each rank.
    pub devices: Vec<Device>,
    /// What `vramscope run` wrote down beside the snapshots, by process.
    pub recorded: Vec<Recorded>,
    /// Conclusions, most serious first.
    pub findings: Vec<Finding>,
    /// Patterns in the source code that the recordings show to keep no memory of a GPU. Empty where no source code was given, and where the
    /// recordings do not prove it.
    pub harmless_patterns: Vec<HarmlessPattern>,
    /// What the recording cannot show, and other things to keep in mind.
    pub caveats: Vec<String>,
}

/// The one-word answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Memory is kept that will never be given back.
    Leak,
    /// Memory grows; whether without bound cannot be told yet.
    Growing,
    /// Memory waits for Python's garbage collector.
    ReferenceCycle,
    /// Much is reserved but cannot be used.
    Fragmentation,
    /// A request failed because too much was needed at once.
    Oom,
    /// Nothing is wrong.
    Clean,
    /// The recording does not hold enough to tell.
    InsufficientData,
}

impl From<view::Verdict> for Verdict {
    fn from(from: view::Verdict) -> Self {
        match from {
            view::Verdict::Leak => Self::Leak,
            view::Verdict::Growing => Self::Growing,
            view::Verdict::ReferenceCycle => Self::ReferenceCycle,
            view::Verdict::Fragmentation => Self::Fragmentation,
            view::Verdict::Oom => Self::Oom,
            view::Verdict::Clean => Self::Clean,
            view::Verdict::InsufficientData => Self::InsufficientData,
        }
    }
}

/// One file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Input {
    /// The path as given.
    pub path: String,
    /// How it is written.
    pub format: String,
    /// The torch releases that write such files.
    pub torch: String,
    /// The devices in it.
    pub devices: Vec<u32>,
    /// The rank it belongs to.
    pub rank: Option<u32>,
    /// Its events on all devices.
    pub events: u64,
    /// The first recorded time.
    pub first_us: Option<i64>,
    /// The last recorded time.
    pub last_us: Option<i64>,
    /// What is wrong with the file.
    pub warnings: Vec<String>,
}

impl From<&view::Input> for Input {
    fn from(from: &view::Input) -> Self {
        Self {
            path: from.path.clone(),
            format: from.format.clone(),
            torch: from.torch.clone(),
            devices: from.devices.clone(),
            rank: from.rank,
            events: from.events,
            first_us: from.first_us,
            last_us: from.last_us,
            warnings: from.warnings.clone(),
        }
    }
}

/// One device of one rank.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Device {
    /// Its number in its process.
    pub device: u32,
    /// The rank.
    pub rank: Option<u32>,
    /// Events in the joined trace.
    pub events: u64,
    /// Time from the first to the last event.
    pub duration_us: Option<i64>,
    /// The sums at the end of the recording.
    pub balance: Balance,
    /// The moment of most allocated bytes.
    pub peak: Option<Peak>,
    /// The rounds of the loop.
    pub steps: Steps,
    /// Half the spread of allocated bytes at step ends once steady, in percent of their median.
    pub fluctuation_pct: Option<f64>,
    /// Allocated bytes at the end of each step, or of equal parts of the trace where there are no steps.
    pub allocated_at_steps: Vec<u64>,
    /// The program's own marks.
    pub phases: Vec<Phase>,
    /// Allocator settings as recorded.
    pub settings: BTreeMap<String, String>,
    /// With `--capacity`: whether the run fits a device of that capacity.
    pub capacity: Option<CapacityCheck>,
}

impl From<&view::DeviceAnalysis> for Device {
    fn from(from: &view::DeviceAnalysis) -> Self {
        Self {
            device: from.device,
            rank: from.rank,
            events: from.events,
            duration_us: from.duration_us,
            balance: (&from.balance).into(),
            peak: from.peak.as_ref().map(Into::into),
            steps: Steps { count: from.steps.count, source: from.steps.source.clone() },
            fluctuation_pct: from.fluctuation_pct,
            allocated_at_steps: from.allocated_at_steps.clone(),
            phases: list(&from.phases),
            settings: super::settings(&from.settings),
            capacity: from.capacity.as_ref().map(Into::into),
        }
    }
}

/// The sums: `reserved = allocated + pending + free`, `free = releasable + stranded`,
/// `allocated = requested + rounding`, `requested = sites + before_recording` (of allocated bytes where requested ones
/// are not known).
#[derive(Debug, Serialize, JsonSchema)]
pub struct Balance {
    /// Bytes obtained from the driver.
    pub reserved: u64,
    /// Bytes in blocks that the program holds.
    pub allocated: u64,
    /// Bytes in blocks given back that another stream may still use.
    pub pending: u64,
    /// Bytes in free blocks.
    pub free: u64,
    /// Free bytes in segments that are wholly free, and in whole pages of expandable ones.
    pub releasable: u64,
    /// Free bytes in segments (or pages) of which something is still in use.
    pub stranded: u64,
    /// Bytes asked for, of the allocated blocks; null before torch 2.0.
    pub requested: Option<u64>,
    /// Bytes lost to rounding.
    pub rounding: Option<u64>,
    /// Bytes as asked for (not as blocks) by the place that asked for them, most first; as blocks where `requested` is
    /// null.
    pub sites: Vec<SiteBytes>,
    /// Bytes as asked for of blocks that are older than the recording; as blocks where `requested` is null.
    pub before_recording: u64,
    /// Segments.
    pub segments: u64,
}

impl From<&view::Balance> for Balance {
    fn from(from: &view::Balance) -> Self {
        Self {
            reserved: from.reserved,
            allocated: from.allocated,
            pending: from.pending,
            free: from.free,
            releasable: from.releasable,
            stranded: from.stranded,
            requested: from.requested,
            rounding: from.rounding,
            sites: list(&from.sites),
            before_recording: from.before_recording,
            segments: from.segments,
        }
    }
}

/// The moment of most allocated bytes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Peak {
    /// When.
    pub time_us: Option<i64>,
    /// At which event of the joined trace.
    pub event: u64,
    /// In which step, from 1.
    pub step: Option<u64>,
    /// Allocated bytes then.
    pub allocated: u64,
    /// Reserved bytes then.
    pub reserved: u64,
    /// The highest reserved bytes at any moment.
    pub max_reserved: u64,
    /// Which places held it, most first; their bytes are those of blocks, and add up to `allocated`.
    pub sites: Vec<SiteBytes>,
}

impl From<&view::Peak> for Peak {
    fn from(from: &view::Peak) -> Self {
        Self {
            time_us: from.time_us,
            event: from.event,
            step: from.step,
            allocated: from.allocated,
            reserved: from.reserved,
            max_reserved: from.max_reserved,
            sites: list(&from.sites),
        }
    }
}

/// The rounds of the loop.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Steps {
    /// How many whole ones; 0 where none were found.
    pub count: u64,
    /// How they were found.
    pub source: String,
}

/// A region that the program marked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Phase {
    /// Its name, with numbers that count up taken out.
    pub name: String,
    /// How often it ran.
    pub count: u64,
    /// The most allocated bytes in any run of it.
    pub peak_allocated: u64,
    /// The mean change of allocated bytes from its start to its end.
    pub mean_change: i64,
    /// Bytes allocated inside it that are still held at the end, as blocks.
    pub survived: u64,
}

impl From<&view::Phase> for Phase {
    fn from(from: &view::Phase) -> Self {
        Self {
            name: from.name.clone(),
            count: from.count,
            peak_allocated: from.peak_allocated,
            mean_change: from.mean_change,
            survived: from.survived,
        }
    }
}

/// From the soonest to the latest.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Range {
    /// At the soonest.
    pub low: u64,
    /// At the latest.
    pub high: u64,
}

/// One conclusion.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Finding {
    /// The detector that found it.
    pub code: String,
    /// `leak`, `growing`, `reference-cycle`, `fragmentation`, `oom`, `pending-free`, `rank-skew`, `foreign-memory` or
    /// `note`.
    pub kind: String,
    /// `error`, `warning` or `info`.
    pub severity: &'static str,
    /// From 0 to 1.
    pub confidence: f64,
    /// One line that says it all but the place.
    pub title: String,
    /// The device.
    pub device: u32,
    /// The rank.
    pub rank: Option<u32>,
    /// The innermost user frame that allocated.
    pub site: Option<Location>,
    /// What to call the place where there is none.
    pub label: String,
    /// The full stack, innermost first.
    pub stack: Vec<Frame>,
    /// Bytes concerned, as blocks (asked for, rounded up).
    pub bytes: u64,
    /// Blocks concerned.
    pub blocks: u64,
    /// Their size in bytes as blocks, if uniform.
    pub block_size: Option<u64>,
    /// Growth in bytes a step, as blocks.
    pub bytes_per_step: Option<f64>,
    /// Growth in blocks a step.
    pub blocks_per_step: Option<f64>,
    /// More steps until the device is full; null where there is no trend or the capacity is not known.
    pub steps_to_oom: Option<Range>,
    /// When the first block concerned was allocated.
    pub first_us: Option<i64>,
    /// When the last one was.
    pub last_us: Option<i64>,
    /// Observations that can be checked.
    pub evidence: Vec<String>,
    /// Findings that belong with it, by their place in `findings`, from 0.
    pub related: Vec<usize>,
    /// What keeps the memory alive, where objects were recorded.
    pub holder: Option<FoundHolder>,
    /// With `--source`: the pattern in the source code that keeps the memory. Null where none is tied to the finding by more
    /// than the file.
    pub pattern: Option<Pattern>,
    /// What to do, most useful first.
    pub advice: Vec<String>,
    /// Places whose memory grows at the same steps; their bytes are those of blocks.
    pub companions: Vec<SiteBytes>,
    /// Of a request that failed, or would fail within `--capacity`: why, and what would have let it pass. Null where the
    /// recorded layout of memory is not the one in which it would fail.
    pub shortfall: Option<Shortfall>,
    /// Of fragmentation: failed fits, and free memory that could not be used, over time.
    pub fragmentation: Option<Fragmentation>,
    /// Of fragmentation and of a request that fails: what other settings of the allocator would have done. Null where no
    /// replay was needed to know (`shortfall.no_setting_helps`) or none is possible.
    pub settings: Option<SettingsTried>,
}

impl From<&view::Finding> for Finding {
    fn from(from: &view::Finding) -> Self {
        Self {
            code: from.code.clone(),
            kind: from.kind.clone(),
            severity: from.severity.name(),
            confidence: from.confidence,
            title: from.title.clone(),
            device: from.device,
            rank: from.rank,
            site: from.site.as_ref().map(Into::into),
            label: from.label.clone(),
            stack: list(&from.stack),
            bytes: from.bytes,
            blocks: from.blocks,
            block_size: from.block_size,
            bytes_per_step: from.bytes_per_step,
            blocks_per_step: from.blocks_per_step,
            steps_to_oom: from.steps_to_oom.map(|(low, high)| Range { low, high }),
            first_us: from.first_us,
            last_us: from.last_us,
            evidence: from.evidence.clone(),
            related: from.related.clone(),
            holder: from.holder.as_ref().map(Into::into),
            pattern: from.pattern.as_ref().map(Into::into),
            advice: from.advice.clone(),
            companions: list(&from.companions),
            shortfall: from.shortfall.as_ref().map(Into::into),
            fragmentation: from.fragmentation.as_ref().map(Into::into),
            settings: from.settings.as_ref().map(Into::into),
        }
    }
}

impl From<&view::Analysis> for Document {
    fn from(from: &view::Analysis) -> Self {
        Self {
            schema: SCHEMA,
            version: super::VERSION,
            inputs: list(&from.inputs),
            verdict: from.verdict.into(),
            headline: from.headline.clone(),
            confidence: from.confidence,
            devices: list(&from.devices),
            recorded: list(&from.recorded),
            findings: list(&from.findings),
            harmless_patterns: list(&from.harmless),
            caveats: from.caveats.clone(),
        }
    }
}

/// The document as text.
pub fn render(analysis: &view::Analysis) -> String {
    super::text(&Document::from(analysis))
}
