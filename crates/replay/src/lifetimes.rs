//! When each block was born, when it died, and how large it was.

use vramscope_model::{Bytes, EventIdx, StackId};

/// A block's stay in the program's hands, from its allocation to its free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllocId(pub u32);

impl AllocId {
    /// As an index into columns.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a block's stay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// It did not: the block is held at the end of the recording.
    Alive,
    /// The program gave it back at this event.
    At(EventIdx),
    /// It is gone at the end, but no event says when (frees were not recorded).
    Unrecorded,
}

/// A part of a trace: events from `from` up to but without `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first event in it.
    pub from: EventIdx,
    /// The first event behind it.
    pub to: EventIdx,
}

/// How well the trace leads to the state that the last snapshot shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Blocks that trace and state agree on.
    pub agreed: u64,
    /// Blocks that the trace says are held but the state does not show.
    pub only_trace: u64,
    /// Blocks of which both know, with different sizes.
    pub size_differs: u64,
    /// Frees of blocks that were allocated before the trace begins.
    pub unmatched_frees: u64,
    /// Allocations at an address that was still held: its free is missing from the trace.
    pub missing_frees: u64,
    /// Whether any event of a free was recorded.
    pub records_frees: bool,
}

pub(crate) const NEVER: u32 = u32::MAX;
pub(crate) const UNRECORDED: u32 = u32::MAX - 1;
/// Born before the recording.
pub(crate) const BEFORE: u32 = u32::MAX;
/// An event that concerns no block.
pub(crate) const NO_ALLOC: u32 = u32::MAX;

/// Some time during which a block was given back already but could not be handed out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// The stay that it follows; [`NO_ALLOC`] where that ended before the recording.
    pub(crate) id: u32,
    pub(crate) addr: u64,
    /// Bytes of the block.
    pub(crate) size: u64,
    /// The event after which it waits; [`BEFORE`] where it did when the recording began.
    pub(crate) from: u32,
    /// The event that ends it; [`NEVER`] where it waits at the end.
    pub(crate) to: u32,
}

impl Wait {
    /// Whether it waits just before an event (or at the end, for the number of events).
    pub(crate) fn covers(&self, at: EventIdx) -> bool {
        (self.from == BEFORE || self.from < at.0) && self.to >= at.0
    }
}

/// Every block's stay, as columns; those from before the recording come first.
///
/// [`Lifetimes::of`] makes them from a recording.
#[derive(Clone, Debug)]
pub struct Lifetimes {
    pub(crate) birth: Vec<u32>,
    pub(crate) death: Vec<u32>,
    pub(crate) addr: Vec<u64>,
    pub(crate) requested: Vec<u64>,
    pub(crate) size: Vec<u64>,
    pub(crate) stack: Vec<StackId>,
    pub(crate) n_before: usize,
    /// The stay that each event begins or ends.
    pub(crate) alloc_of: Vec<u32>,
    pub(crate) n_events: u32,
    /// Blocks whose free was not completed at once.
    pub(crate) waits: Vec<Wait>,
    pub(crate) agreement: Agreement,
    /// Allocated, requested and reserved bytes before the first event.
    pub(crate) baseline: (i64, i64, i64),
}

impl Lifetimes {
    /// How many stays there are.
    pub fn len(&self) -> usize {
        self.birth.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.birth.is_empty()
    }

    /// How many of them began before the recording; they come first.
    pub fn n_before(&self) -> usize {
        self.n_before
    }

    /// The stays that began in the recording, in the order of their births.
    pub fn born(&self) -> impl ExactSizeIterator<Item = AllocId> + DoubleEndedIterator + use<> {
        (self.n_before as u32..self.len() as u32).map(AllocId)
    }

    /// All stays.
    pub fn all(&self) -> impl ExactSizeIterator<Item = AllocId> + use<> {
        (0..self.len() as u32).map(AllocId)
    }

    /// The event that began a stay; none for one from before the recording.
    #[inline]
    pub fn birth(&self, id: AllocId) -> Option<EventIdx> {
        let birth = self.birth[id.index()];
        (birth != BEFORE).then_some(EventIdx(birth))
    }

    /// How a stay ended.
    #[inline]
    pub fn death(&self, id: AllocId) -> Death {
        match self.death[id.index()] {
            NEVER => Death::Alive,
            UNRECORDED => Death::Unrecorded,
            at => Death::At(EventIdx(at)),
        }
    }

    /// Whether the block is held just before an event (or at the end, for the number of events).
    #[inline]
    pub fn is_held_at(&self, id: AllocId, at: EventIdx) -> bool {
        let (birth, death) = (self.birth[id.index()], self.death[id.index()]);
        let born = birth == BEFORE || birth < at.0;
        // `UNRECORDED` and `NEVER` lie beyond every event; of the former nobody knows how long it was held.
        born && death >= at.0 && death != UNRECORDED
    }

    /// Where the block lies.
    #[inline]
    pub fn addr(&self, id: AllocId) -> u64 {
        self.addr[id.index()]
    }

    /// The bytes that were asked for.
    #[inline]
    pub fn requested(&self, id: AllocId) -> Bytes {
        Bytes(self.requested[id.index()])
    }

    /// The bytes of the block, after rounding and with what could not be split off.
    #[inline]
    pub fn size(&self, id: AllocId) -> Bytes {
        Bytes(self.size[id.index()])
    }

    /// Where it was allocated.
    #[inline]
    pub fn stack(&self, id: AllocId) -> StackId {
        self.stack[id.index()]
    }

    /// The stay that an event begins or ends, if it is an allocation or the free that ended one.
    #[inline]
    pub fn alloc_of(&self, event: EventIdx) -> Option<AllocId> {
        self.alloc_of.get(event.index()).copied().filter(|&id| id != NO_ALLOC).map(AllocId)
    }

    /// How many events the trace has.
    pub fn n_events(&self) -> EventIdx {
        EventIdx(self.n_events)
    }

    /// The whole trace.
    pub fn whole(&self) -> Window {
        Window { from: EventIdx(0), to: EventIdx(self.n_events) }
    }

    pub(crate) fn baseline(&self) -> (i64, i64, i64) {
        self.baseline
    }

    /// How well trace and state agree.
    pub fn agreement(&self) -> Agreement {
        self.agreement
    }
}
