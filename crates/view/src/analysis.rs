//! What `analyze` says.

use crate::explained::{CapacityCheck, Fragmentation, SettingsTried, Shortfall};
use crate::holders::FoundHolder;
use crate::pattern::{Harmless, Pattern};
use crate::recorded::Recorded;

/// What part of the recordings to look at, and what is known besides.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only the device of this number.
    pub device: Option<u32>,
    /// Bytes that the device has for the process, for saying whether and when it is full.
    pub capacity: Option<u64>,
    /// Leave out what happened before.
    pub since: Option<Moment>,
    /// Leave out what happened after.
    pub until: Option<Moment>,
    /// Whether to tell what came and went at each line of the program.
    pub turnover: bool,
}

/// A moment of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    /// The start of a step, from 0.
    Step(u64),
    /// The number of events before it.
    Event(u64),
    /// A part of the recording, from 0 to 1.
    Fraction(f64),
    /// µs since the first event.
    AfterStart(i64),
    /// µs since 1970 UTC.
    Time(i64),
}

/// The one-word answer. The order is that of severity: the first that applies is the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

impl Verdict {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leak => "leak",
            Self::Growing => "growing",
            Self::ReferenceCycle => "reference-cycle",
            Self::Fragmentation => "fragmentation",
            Self::Oom => "oom",
            Self::Clean => "clean",
            Self::InsufficientData => "insufficient-data",
        }
    }

    /// Whether the user should do something.
    pub fn is_trouble(self) -> bool {
        !matches!(self, Self::Clean | Self::InsufficientData)
    }
}

/// The whole answer.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The files it was drawn from, in time order within each rank.
    pub inputs: Vec<Input>,
    /// The one-word answer.
    pub verdict: Verdict,
    /// The answer as a sentence, without a full stop.
    pub headline: String,
    /// How sure the verdict is, from 0 to 1, if it is a finding's.
    pub confidence: Option<f64>,
    /// Each device of each rank that holds or did anything.
    pub devices: Vec<DeviceAnalysis>,
    /// What the recorder wrote down beside the snapshots, by process.
    pub recorded: Vec<Recorded>,
    /// Conclusions, most serious first, then by bytes a step, then by bytes.
    pub findings: Vec<Finding>,
    /// What came and went at each line of the user's own code, where that was asked for and the recordings show that nothing
    /// was kept from step to step, on any device of any rank; else empty.
    pub turnover: Vec<LineTurnover>,
    /// Patterns in the source code that the recordings show to keep nothing, where they were looked for, by file and line.
    pub harmless: Vec<Harmless>,
    /// What the recording cannot show and other things to keep in mind: one sentence each.
    pub caveats: Vec<String>,
}

/// One file.
#[derive(Clone, Debug)]
pub struct Input {
    /// The path as given.
    pub path: String,
    /// How it is written: "gzip, pickle protocol 5".
    pub format: String,
    /// The torch releases that write such files: "2.10-2.11".
    pub torch: String,
    /// The devices in it.
    pub devices: Vec<u32>,
    /// The rank it belongs to, if known.
    pub rank: Option<u32>,
    /// Its events on all devices.
    pub events: u64,
    /// The first recorded time, µs since 1970 UTC.
    pub first_us: Option<i64>,
    /// The last recorded time, µs since 1970 UTC.
    pub last_us: Option<i64>,
    /// What is wrong with the file.
    pub warnings: Vec<String>,
}

/// One device of one rank.
#[derive(Clone, Debug)]
pub struct DeviceAnalysis {
    /// The device's number in its process.
    pub device: u32,
    /// The rank, if known.
    pub rank: Option<u32>,
    /// Events in the joined trace.
    pub events: u64,
    /// Time from the first to the last event, in µs.
    pub duration_us: Option<i64>,
    /// The sums at the end of the recording.
    pub balance: Balance,
    /// The moment of most allocated bytes.
    pub peak: Option<Peak>,
    /// The rounds of the training or serving loop.
    pub steps: Steps,
    /// Half the spread of allocated bytes at step ends in the steady part of the run, in percent of their median.
    /// None where there are too few steps, and where memory grows or swings with the garbage
    /// collector: that is no steady state.
    pub fluctuation_pct: Option<f64>,
    /// Allocated bytes at the end of each step (or of 60 equal parts of the trace where there are no steps).
    pub allocated_at_steps: Vec<u64>,
    /// The program's own marks: what was held in each phase.
    pub phases: Vec<Phase>,
    /// Allocator settings as recorded, by name.
    pub settings: Vec<(String, String)>,
    /// Whether the run fits the device that the user told of.
    pub capacity: Option<CapacityCheck>,
}

/// The sums. Each line adds up exactly:
/// `reserved = allocated + pending + free`, `free = releasable + stranded`, `allocated = requested + rounding`,
/// `requested = Σ sites + before_recording`.
#[derive(Clone, Debug, Default)]
pub struct Balance {
    /// Bytes obtained from the driver.
    pub reserved: u64,
    /// Bytes in blocks that the program holds.
    pub allocated: u64,
    /// Bytes in blocks given back that another stream may still use.
    pub pending: u64,
    /// Bytes in free blocks.
    pub free: u64,
    /// Free bytes in segments that are wholly free, and in whole pages of expandable ones: `empty_cache()` would return them.
    pub releasable: u64,
    /// Free bytes in segments (or pages) of which something is still in use.
    pub stranded: u64,
    /// Bytes asked for, of the allocated blocks. None before torch 2.0, which did not record them.
    pub requested: Option<u64>,
    /// Bytes lost to rounding: allocated less requested.
    pub rounding: Option<u64>,
    /// Requested bytes (allocated where requested is not known) by the place that allocated them, most first.
    pub sites: Vec<SiteBytes>,
    /// Of these blocks nothing says where they were allocated: they are older than the recording.
    pub before_recording: u64,
    /// Segments.
    pub segments: u64,
}

/// Bytes of one place in the program.
#[derive(Clone, Debug)]
pub struct SiteBytes {
    /// The place; none where no Python frame was recorded (autograd's backward threads).
    pub site: Option<Location>,
    /// What to call it when there is no place.
    pub label: String,
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u64,
}

/// The moment of most allocated bytes.
#[derive(Clone, Debug)]
pub struct Peak {
    /// When, µs since 1970 UTC.
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
    /// Which places held it, most first.
    pub sites: Vec<SiteBytes>,
}

/// The rounds of the program's loop.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// How many whole ones; 0 where none were found.
    pub count: u64,
    /// How they were found, such as "`ProfilerStep#` marks" or "allocations that recur".
    pub source: String,
}

/// A region that the program marked.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Its name, with numbers that count up taken out.
    pub name: String,
    /// How often it ran.
    pub count: u64,
    /// The most allocated bytes in any run of it.
    pub peak_allocated: u64,
    /// The mean change of allocated bytes from its start to its end.
    pub mean_change: i64,
    /// Bytes allocated inside it that are still held at the end of the recording.
    pub survived: u64,
}

/// A line of code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// The file as recorded.
    pub file: String,
    /// The line from 1; 0 where unknown.
    pub line: u32,
    /// The function.
    pub function: String,
}

/// What was allocated below one line of the user's own code, that is with the line anywhere on the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineTurnover {
    /// The line.
    pub place: Location,
    /// Allocations, on all devices.
    pub allocations: u64,
    /// The steps in which there were any, one in flight included; of several devices the most.
    pub steps: u64,
    /// The most bytes, as blocks, that were held of them at once on a device.
    pub most_held: u64,
    /// Of the first step, in which state is made that is meant to stay, those that were held for longer than the step after.
    pub from_first_step: u64,
    /// Their bytes, as blocks.
    pub from_first_step_bytes: u64,
    /// Whether the line ran once in each of enough steps, and all was given back by the end of the step after, but for what the first
    /// step made and what the step in flight holds.
    pub is_settled: bool,
}

/// One frame of a stack, for showing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where.
    pub location: Location,
    /// Whether it is the user's own code, rather than a library's, generated or C++ code.
    pub is_user: bool,
}

/// One conclusion.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The detector that found it.
    pub code: String,
    /// `leak`, `growing`, `reference-cycle`, `fragmentation`, `oom`, `pending-free`, `rank-skew`, `foreign-memory`, `note`.
    pub kind: String,
    /// `error`, `warning` or `info`.
    pub severity: Severity,
    /// From 0 to 1.
    pub confidence: f64,
    /// One line that says it all but the place.
    pub title: String,
    /// The device.
    pub device: u32,
    /// The rank, if known.
    pub rank: Option<u32>,
    /// The innermost user frame that allocated.
    pub site: Option<Location>,
    /// What to call the place when there is none.
    pub label: String,
    /// The full stack, innermost first.
    pub stack: Vec<Frame>,
    /// Bytes concerned, as blocks.
    pub bytes: u64,
    /// Blocks concerned; 0 where the finding is not about blocks.
    pub blocks: u64,
    /// Their size, if uniform.
    pub block_size: Option<u64>,
    /// Growth in bytes a step.
    pub bytes_per_step: Option<f64>,
    /// Growth in blocks a step.
    pub blocks_per_step: Option<f64>,
    /// More steps until the device is full, at the soonest and at the latest.
    pub steps_to_oom: Option<(u64, u64)>,
    /// When the first block concerned was allocated.
    pub first_us: Option<i64>,
    /// When the last one was.
    pub last_us: Option<i64>,
    /// Observations that can be checked.
    pub evidence: Vec<String>,
    /// What to do.
    pub advice: Vec<String>,
    /// Places whose memory grows at the same steps.
    pub companions: Vec<SiteBytes>,
    /// The object that keeps the blocks alive, where objects were recorded.
    pub holder: Option<FoundHolder>,
    /// The pattern in the source code that keeps the memory, where it was looked for and found.
    pub pattern: Option<Pattern>,
    /// Findings that belong with it, by their place in the list. Of a failed request: those that explain it.
    pub related: Vec<usize>,
    /// Of a failed request: the bytes that were missing, as far as the trace tells.
    pub shortage: Option<u64>,
    /// Of a failed request: why it failed.
    pub shortfall: Option<Shortfall>,
    /// Of fragmentation: its figures.
    pub fragmentation: Option<Fragmentation>,
    /// Of fragmentation and of a request that fails: what other settings would have done. None where no replay was needed to
    /// know, or none is possible.
    pub settings: Option<SettingsTried>,
}

impl Finding {
    /// Whether it says that memory is kept for longer than it should be, so that more and more is.
    pub fn is_growth(&self) -> bool {
        matches!(self.kind.as_str(), "leak" | "growing" | "reference-cycle")
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The job will die of it.
    Error,
    /// It costs memory or may become an error.
    Warning,
    /// Worth knowing.
    Info,
}

impl Severity {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}
