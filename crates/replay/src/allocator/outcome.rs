//! What a replay comes to.

use vramscope_model::EventIdx;

/// What the memory available to the allocator is limited to, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// What the driver can give this process in all; none for any amount.
    pub capacity: Option<u64>,
    /// What the process may reserve (a memory fraction, as bytes); none for any amount.
    pub reserved: Option<u64>,
    /// What the device has in all, if it is known.
    pub total: Option<u64>,
}

impl Limits {
    /// Whether nothing is limited.
    pub(super) fn are_none(&self) -> bool {
        self.capacity.is_none() && self.reserved.is_none()
    }
}

/// What came of running a workload under some settings. Bytes unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The most that was reserved at any moment, inside a request included.
    pub peak_reserved: u64,
    /// The event during which that was reached first.
    pub peak_event: EventIdx,
    /// What the program held then.
    pub allocated_at_peak: u64,
    /// What is reserved at the end (or when memory ran out).
    pub final_reserved: u64,
    /// What the program holds at the end (or when memory ran out).
    pub final_allocated: u64,
    /// The most that the program held at any moment, as blocks.
    pub peak_allocated: u64,
    /// The most segments there were: obtained by `cudaMalloc`, or reserved as expandable.
    pub peak_segments: u64,
    /// Calls of `cudaMalloc`.
    pub segment_allocs: u64,
    /// Calls of `cudaFree`.
    pub segment_frees: u64,
    /// How often memory was mapped into an expandable segment.
    pub maps: u64,
    /// How often memory was unmapped.
    pub unmaps: u64,
    /// How often all free memory was given back to serve a request.
    pub retries: u64,
    /// How often garbage was collected.
    pub collections: u64,
    /// Where memory ran out, if it did: the replay ends there.
    pub oom: Option<OutOfMemory>,
    /// Requests that failed when recorded and are served here.
    pub rescued: Vec<EventIdx>,
}

/// How far the outcome of a run may be off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// The least bytes that may be reserved at the peak.
    pub low: u64,
    /// And the most.
    pub high: u64,
    /// Whether memory may run out.
    pub may_run_out: bool,
}

impl Spread {
    /// Of a run of which all is known.
    pub fn of(outcome: &Outcome) -> Self {
        Self { low: outcome.peak_reserved, high: outcome.peak_reserved, may_run_out: outcome.oom.is_some() }
    }
}

/// A request that could not be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The event of the request.
    pub event: EventIdx,
    /// What was asked for, rounded.
    pub size: u64,
    /// What was reserved, after all that could be was given back.
    pub reserved: u64,
    /// What the program held.
    pub allocated: u64,
    /// The largest free block that could have served such a request, had it been large enough.
    pub largest_free: u64,
    /// What was free in that pool and stream.
    pub free: u64,
}

/// How well a replay under the recording's own settings equals the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reproduction {
    /// Segment events in the trace (obtained, given back, mapped, unmapped) outside private pools.
    pub recorded: u64,
    /// How many of them the replay made too, at the same request with the same size.
    pub reproduced: u64,
    /// Segment events that the replay made and the trace does not have.
    pub surplus: u64,
    /// Allocations in the trace outside private pools.
    pub allocations: u64,
    /// How many of them the replay put at the very address that was recorded.
    pub in_place: u64,
    /// Blocks of the last state (in use, pending and free) outside private pools; 0 where the trace does not lead to it.
    pub blocks: u64,
    /// How many of them the replay ends with, too: same address, size and state.
    pub same_blocks: u64,
    /// The first event at which they part.
    pub first_divergence: Option<Divergence>,
    /// Bursts of memory given back that are taken as calls of `empty_cache()`, by the event they begin with.
    pub flushes: Vec<EventIdx>,
    /// The least that the process could not have: it gave back all that was free rather than reserve that much. None where it
    /// never had to.
    pub refused: Option<u64>,
    /// What the replay under the recording's own settings came to.
    pub outcome: Outcome,
    /// Whether the only one of them may be memory that had to be given back.
    pub flush_in_doubt: bool,
    /// Bytes reserved but free when the recording began.
    pub cached_at_start: u64,
    /// Bytes of private pools (graphs, memory pools) at their peak: they are taken as recorded.
    pub private_peak: u64,
}

impl Reproduction {
    /// Whether every segment event, every address and the last state are the same.
    pub fn is_exact(&self) -> bool {
        self.first_divergence.is_none()
            && self.recorded == self.reproduced
            && self.surplus == 0
            && self.allocations == self.in_place
            && self.blocks == self.same_blocks
    }

    /// How much differs, in events and blocks.
    pub(super) fn differences(&self) -> u64 {
        (self.recorded - self.reproduced)
            + self.surplus
            + (self.allocations - self.in_place)
            + (self.blocks - self.same_blocks)
            + u64::from(self.first_divergence.is_some())
    }
}

/// Where a replay and a recording part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The event; the number of events where only the last state differs.
    pub event: EventIdx,
    /// What was recorded, in words.
    pub recorded: String,
    /// What the replay did, in words.
    pub replayed: String,
    /// Whether memory was obtained when recorded that the replay does not need, or needs elsewhere.
    pub is_elsewhere: bool,
}
