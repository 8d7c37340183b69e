//! What the program asked of the allocator, in order: all that a replay needs of a recording.
//!
//! Source: the allocator reference, §13 (what was there before) and §14 (what to replay).

use hashbrown::HashMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use vramscope_model::{Action, Bytes, DeviceRecording, EventIdx, Settings, StreamId};

use super::addresses::Addresses;
use super::private::PrivatePools;
use super::start::{Start, StartBlock};
use super::tally::{SegmentAction, SegmentEvent};
use crate::ground::ground_at_start;
use crate::lifetimes::{AllocId, Death, Lifetimes};

/// One thing that the program or the driver did. Numbers are those of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// A request.
    Malloc(u32),
    /// A block is given back and free at once.
    Free(u32),
    /// A block is given back while another stream may use it.
    Request(u32),
    /// No stream uses it any more.
    Complete(u32),
    /// Free segments were given back, from this event up to another one.
    GiveBack {
        /// The first event behind it.
        until: EventIdx,
    },
    /// A request of that many bytes (rounded) failed, on that stream.
    Fail {
        /// Its place in [`Workload::failed`].
        place: u32,
    },
    /// What private pools hold changed; the place in [`Workload::private`].
    Private(u32),
}

/// A call and when it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) event: EventIdx,
    pub(super) call: Call,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) size: u64,
    pub(super) stream: StreamId,
}

/// Why a recording cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unplayable {
    /// It holds no allocations: only a state, or nothing.
    NoHistory,
    /// It holds allocations, but never when blocks were given back.
    NoFrees,
    /// Events are missing between its snapshots or at its end.
    Gap,
}

impl std::fmt::Display for Unplayable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoHistory => "no allocations were recorded, so there is nothing to replay",
            Self::NoFrees => "the recording does not say when blocks were given back",
            Self::Gap => "events are missing between the trace and the last state",
        })
    }
}

impl Unplayable {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoHistory => {
                "call `torch.cuda.memory._record_memory_history()` before the work that is to be recorded"
            }
            Self::NoFrees => {
                "record with torch 2.1 or later, and without leaving out `free_requested` and `free_completed`"
            }
            Self::Gap => {
                "take the snapshot while history is still recorded, and give all snapshots of the run"
            }
        }
    }
}

/// The requests and frees of one device, without where the allocator put what.
#[derive(Clone, Debug, Default)]
pub(super) struct Workload {
    pub(super) steps: Vec<Step>,
    /// Every request; those of blocks from before the recording come first.
    pub(super) requests: Vec<Request>,
    /// What was there when the recording began.
    pub(super) start: Start,
    /// Where memory was obtained when recorded: the event and the address.
    pub(super) obtained: Vec<(EventIdx, u64)>,
    /// The addresses that the process had to give before any of that.
    pub(super) addresses: Addresses,
    /// Requests that failed: bytes (rounded) and stream.
    pub(super) failed: Vec<Request>,
    /// Bytes reserved and allocated in private pools, after each change.
    pub(super) private: Vec<(u64, u64)>,
    /// Which events are of private pools.
    pub(super) pools: PrivatePools,
    /// What they held at the beginning.
    pub(super) private_at_start: (u64, u64),
}

impl Workload {
    /// What a device's recording asks of the allocator.
    ///
    /// # Errors
    /// Where the recording does not hold enough to replay.
    pub(super) fn of(
        device: &DeviceRecording,
        lifetimes: &Lifetimes,
        settings: Option<&Settings>,
        private: &[EventIdx],
    ) -> Result<Self, Unplayable> {
        if device.events.count(Action::Alloc) == 0 {
            return Err(Unplayable::NoHistory);
        }
        if !lifetimes.agreement().records_frees
            && lifetimes.all().any(|id| lifetimes.death(id) != Death::Alive)
        {
            return Err(Unplayable::NoFrees);
        }
        let (ground, purposes) = ground_at_start(device);
        let private = PrivatePools::of(device, &ground, &purposes, private);
        let start = Start::of(device, &ground, &purposes, &private);
        let mut builder = Builder {
            device,
            lifetimes,
            settings,
            private,
            waiting: HashMap::default(),
            unseen: unseen_frees(lifetimes),
            held_privately: (0, 0),
            workload: Self { start, ..Self::default() },
        };
        builder.start();
        let mut next = 0;
        while next < device.events.len() {
            next = builder.follow(next);
        }
        builder.workload.start.blocks.sort_by_key(|block| block.addr);
        let from_start = builder.workload.start.segments().next().is_none();
        builder.workload.addresses = Addresses::of(builder.segment_events().collect(), from_start);
        builder.workload.pools = builder.private;
        Ok(builder.workload)
    }
}

/// Blocks whose free is missing from the trace, by the event at which they must be gone.
fn unseen_frees(lifetimes: &Lifetimes) -> FxHashMap<EventIdx, u32> {
    let gone = lifetimes.all().filter_map(|id| match lifetimes.death(id) {
        Death::At(event) if lifetimes.alloc_of(event) != Some(id) => Some((event, id.0)),
        _ => None,
    });
    gone.collect()
}

struct Builder<'a> {
    device: &'a DeviceRecording,
    lifetimes: &'a Lifetimes,
    settings: Option<&'a Settings>,
    private: PrivatePools,
    /// Blocks whose free was requested but not completed yet, by address.
    waiting: HashMap<u64, u32, FxBuildHasher>,
    unseen: FxHashMap<EventIdx, u32>,
    /// Bytes reserved and allocated in private pools now.
    held_privately: (u64, u64),
    workload: Workload,
}

impl Builder<'_> {
    /// What the process obtained and gave back, from its beginning.
    fn segment_events(&self) -> impl Iterator<Item = SegmentEvent> {
        let alloc = |addr, size| SegmentEvent { action: SegmentAction::Alloc, addr, size };
        let at_start = self.workload.start.segments().map(move |(addr, size)| alloc(addr, size));
        let later = self.device.events.iter().filter_map(move |event| match event.action {
            Action::SegmentAlloc => Some(alloc(event.addr, event.size.0)),
            Action::SegmentFree => {
                Some(SegmentEvent { action: SegmentAction::Free, addr: event.addr, size: event.size.0 })
            }
            _ => None,
        });
        at_start.chain(later)
    }

    /// What was there before the first event.
    fn start(&mut self) {
        let lifetimes = self.lifetimes;
        self.held_privately.0 = self.private.reserved_at_start();
        for id in lifetimes.all() {
            let stream = match lifetimes.birth(id) {
                Some(event) => self.device.events.get(event.index()).stream,
                None => self.stream_before(id),
            };
            self.workload.requests.push(Request { size: lifetimes.requested(id).0, stream });
            if lifetimes.birth(id).is_none() {
                if self.private.had(lifetimes.addr(id)) {
                    self.held_privately.1 = self.held_privately.1.saturating_add(lifetimes.size(id).0);
                } else {
                    self.workload.start.blocks.push(StartBlock {
                        addr: lifetimes.addr(id),
                        size: lifetimes.size(id).0,
                        owner: id.0,
                        is_pending: false,
                    });
                }
            }
        }
        self.workload.private_at_start = self.held_privately;
    }

    /// The stream of a block from before the recording.
    fn stream_before(&self, id: AllocId) -> StreamId {
        if let Death::At(event) = self.lifetimes.death(id)
            && self.lifetimes.alloc_of(event) == Some(id)
        {
            return self.device.events.get(event.index()).stream;
        }
        let addr = self.lifetimes.addr(id);
        let segment = self.device.last_state().and_then(|state| {
            let place = state.segments.partition_point(|s| s.addr <= addr).checked_sub(1)?;
            state.segments.get(place)
        });
        segment.map_or(StreamId(0), |segment| segment.stream)
    }

    fn push(&mut self, event: usize, call: Call) {
        self.workload.steps.push(Step { event: EventIdx(event as u32), call });
    }

    /// Adds what an event stands for. Returns the next event to look at.
    fn follow(&mut self, i: usize) -> usize {
        let event = EventIdx(i as u32);
        if let Some(gone) = self.unseen.remove(&event) {
            self.push(i, Call::Free(gone));
        }
        if self.private.has(event) {
            self.follow_private(i);
            return i + 1;
        }
        let events = &self.device.events;
        let (actions, addrs, sizes) = (events.actions(), events.addrs(), events.sizes());
        let id = self.lifetimes.alloc_of(event).map(|id| id.0);
        match actions[i] {
            Action::Alloc => {
                if let Some(id) = id {
                    self.push(i, Call::Malloc(id));
                }
            }
            Action::FreeRequested => {
                let Some(id) = id else { return i + 1 };
                if actions.get(i + 1) == Some(&Action::FreeCompleted) && addrs.get(i + 1) == Some(&addrs[i]) {
                    self.push(i, Call::Free(id));
                    return i + 2;
                }
                self.waiting.insert(addrs[i], id);
                self.push(i, Call::Request(id));
            }
            Action::FreeCompleted => {
                if let Some(id) = self.waiting.remove(&addrs[i]) {
                    self.push(i, Call::Complete(id));
                } else if let Some(id) = id {
                    self.push(i, Call::Free(id));
                } else {
                    self.was_pending(i);
                }
            }
            Action::SegmentFree | Action::SegmentUnmap => {
                let more = (i..events.len())
                    .take_while(|&j| matches!(actions[j], Action::SegmentFree | Action::SegmentUnmap))
                    .take_while(|&j| !self.private.has(EventIdx(j as u32)))
                    .count();
                self.push(i, Call::GiveBack { until: EventIdx((i + more) as u32) });
                return i + more;
            }
            Action::SegmentAlloc | Action::SegmentMap => self.workload.obtained.push((event, addrs[i])),
            Action::Oom => {
                let place = self.workload.failed.len() as u32;
                self.workload.failed.push(Request { size: sizes[i], stream: events.get(i).stream });
                self.push(i, Call::Fail { place });
            }
            _ => {}
        }
        i + 1
    }

    /// A block that was waiting when the recording began does so no more.
    fn was_pending(&mut self, i: usize) {
        let event = self.device.events.get(i);
        let owner = self.workload.requests.len() as u32;
        self.workload.requests.push(Request { size: event.size.0, stream: event.stream });
        let size = Settings::round(self.settings, event.size.0);
        self.workload.start.blocks.push(StartBlock { addr: event.addr, size, owner, is_pending: true });
        self.push(i, Call::Complete(owner));
    }

    /// Adds what an event of a private pool changes.
    fn follow_private(&mut self, i: usize) {
        let events = &self.device.events;
        let Bytes(size) = events.get(i).size;
        let block = self.lifetimes.alloc_of(EventIdx(i as u32)).map_or(0, |id| self.lifetimes.size(id).0);
        let (reserved, allocated) = &mut self.held_privately;
        match events.actions()[i] {
            Action::Alloc => *allocated = allocated.saturating_add(block),
            // Only the one of the two that ends the stay counts a block.
            Action::FreeRequested | Action::FreeCompleted => *allocated = allocated.saturating_sub(block),
            Action::SegmentAlloc | Action::SegmentMap => *reserved = reserved.saturating_add(size),
            Action::SegmentFree | Action::SegmentUnmap => *reserved = reserved.saturating_sub(size),
            _ => return,
        }
        let place = self.workload.private.len() as u32;
        self.workload.private.push(self.held_privately);
        self.push(i, Call::Private(place));
    }
}
