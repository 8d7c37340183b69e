//! What a detector concludes.

use std::sync::Arc;

use vramscope_model::{Bytes, FrameId, StackId, TimeUs};
use vramscope_replay::AllocId;

use crate::fragmentation::Fragmentation;
use crate::shortfall::Shortfall;
use crate::tried::TriedSettings;

/// What kind of conclusion a finding is, most serious first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Memory is kept that will never be given back, and more of it at every round.
    Leak,
    /// Memory grows; whether without bound cannot be told yet.
    Growing,
    /// Memory waits for Python's garbage collector, again and again.
    ReferenceCycle,
    /// Memory was reserved although enough was free, in pieces too small.
    Fragmentation,
    /// A request failed, and nothing above explains it: too much is needed at once.
    Oom,
    /// Memory is given back late because another stream may still use it.
    PendingFree,
    /// One rank holds much more than the others.
    RankSkew,
    /// Memory outside the allocator.
    ForeignMemory,
    /// Something worth knowing that is no trouble by itself.
    Note,
}

impl Kind {
    /// The name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leak => "leak",
            Self::Growing => "growing",
            Self::ReferenceCycle => "reference-cycle",
            Self::Fragmentation => "fragmentation",
            Self::Oom => "oom",
            Self::PendingFree => "pending-free",
            Self::RankSkew => "rank-skew",
            Self::ForeignMemory => "foreign-memory",
            Self::Note => "note",
        }
    }
}

/// One conclusion with its evidence. All of it speaks of one device of one recording.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The detector that found it, such as `survivors-by-birth`.
    pub code: &'static str,
    /// What it is.
    pub kind: Kind,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// One line that says it all but the place.
    pub title: String,
    /// The innermost user frame that allocated; none where no Python frame was recorded.
    pub site: Option<FrameId>,
    /// The full stack that allocated most of it.
    pub stack: StackId,
    /// Bytes concerned, as blocks (after rounding).
    pub bytes: Bytes,
    /// Blocks concerned; 0 where the finding is not about blocks.
    pub blocks: u64,
    /// The size of each block, if all have the same.
    pub block_size: Option<Bytes>,
    /// Growth in bytes a step, if there is a trend and steps are known.
    pub bytes_per_step: Option<f64>,
    /// Growth in blocks a step.
    pub blocks_per_step: Option<f64>,
    /// After how many more steps the device is full: at the soonest and at the latest. None where there is no trend
    /// or the capacity is not known.
    pub steps_to_oom: Option<(u64, u64)>,
    /// When the first block concerned was allocated, as far as recorded.
    pub first: Option<TimeUs>,
    /// When the last one was.
    pub last: Option<TimeUs>,
    /// Why we think so: observations that can be checked, one sentence each.
    pub evidence: Vec<String>,
    /// What to do, most useful first.
    pub advice: Vec<String>,
    /// Other places whose memory grows with this one, at the same steps: they are likely held by the same thing.
    pub companions: Vec<Companion>,
    /// The blocks concerned, oldest first, as far as the recording tells: those that are held at the end of what was
    /// looked at; of blocks that died in bulk all that did.
    pub members: Vec<AllocId>,
    /// Of a failed request: the bytes that were missing. A finding of fewer bytes does not explain it.
    pub shortage: Option<Bytes>,
    /// Of a failed request: why it failed.
    pub shortfall: Option<Box<Shortfall>>,
    /// Of fragmentation: its figures.
    pub fragmentation: Option<Box<Fragmentation>>,
    /// Of a request that fails and of fragmentation: what other settings would have done, if that was found out.
    pub settings: Option<Arc<TriedSettings>>,
}

/// Memory of another place that grows together with a finding's.
#[derive(Clone, Debug)]
pub struct Companion {
    /// The innermost user frame.
    pub site: Option<FrameId>,
    /// The stack.
    pub stack: StackId,
    /// Bytes, as blocks.
    pub bytes: Bytes,
    /// Blocks.
    pub blocks: u64,
}
