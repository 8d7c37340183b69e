//! The trace: what the allocator did, in order, as columns.

use rustc_hash::FxHashMap;

use crate::symbols::{PoolId, StackId, StreamId, StringId};
use crate::units::{Bytes, EventIdx, TimeUs};

/// What the allocator did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Action {
    /// A block was handed out. The size is the one asked for, before rounding.
    Alloc,
    /// The program gave a block back. Another stream may still use it.
    FreeRequested,
    /// The block can be handed out again.
    FreeCompleted,
    /// A segment was obtained from the driver (`cudaMalloc`).
    SegmentAlloc,
    /// A segment went back to the driver (`cudaFree`).
    SegmentFree,
    /// Part of an expandable segment was mapped.
    SegmentMap,
    /// Part of an expandable segment was unmapped.
    SegmentUnmap,
    /// A snapshot was taken.
    Snapshot,
    /// A request failed. The address column holds the driver's free bytes.
    Oom,
    /// A note was attached to a live allocation (torch 2.14 and later).
    Annotate,
    /// An action that this version does not know.
    Other,
}

impl Action {
    /// All actions, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Alloc,
        Self::FreeRequested,
        Self::FreeCompleted,
        Self::SegmentAlloc,
        Self::SegmentFree,
        Self::SegmentMap,
        Self::SegmentUnmap,
        Self::Snapshot,
        Self::Oom,
        Self::Annotate,
        Self::Other,
    ];

    /// The name used in snapshot files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::FreeRequested => "free_requested",
            Self::FreeCompleted => "free_completed",
            Self::SegmentAlloc => "segment_alloc",
            Self::SegmentFree => "segment_free",
            Self::SegmentMap => "segment_map",
            Self::SegmentUnmap => "segment_unmap",
            Self::Snapshot => "snapshot",
            Self::Oom => "oom",
            Self::Annotate => "annotate",
            Self::Other => "other",
        }
    }

    /// The action of that name.
    pub fn from_name(name: &str) -> Self {
        match name {
            // Written by forks that fold the two kinds of free into one.
            "free" => Self::FreeCompleted,
            _ => Self::ALL.into_iter().find(|a| a.name() == name).unwrap_or(Self::Other),
        }
    }
}

/// One event, put together from the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub action: Action,
    /// Address; for [`Action::Oom`] the driver's free bytes.
    pub addr: u64,
    /// Bytes; what they mean depends on the action.
    pub size: Bytes,
    /// When.
    pub time: TimeUs,
    /// On which stream.
    pub stream: StreamId,
    /// In which pool (recorded since torch 2.12).
    pub pool: PoolId,
    /// From where.
    pub stack: StackId,
}

/// A trace of one device, oldest event first: 33 bytes an event.
#[derive(Clone, Debug, Default)]
pub struct Events {
    action: Vec<Action>,
    addr: Vec<u64>,
    size: Vec<u64>,
    time: Vec<i64>,
    stream: Vec<StreamId>,
    pool: Vec<PoolId>,
    stack: Vec<StackId>,
    /// What few events carry: `compile_context` other than "N/A".
    compile_context: FxHashMap<u32, StringId>,
    /// What few events carry: `user_metadata` that is not empty, or the name of an unknown action.
    note: FxHashMap<u32, StringId>,
}

impl Events {
    /// How many events there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.action.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.action.is_empty()
    }

    /// Adds an event at the end.
    #[inline]
    pub fn push(&mut self, event: Event) {
        self.action.push(event.action);
        self.addr.push(event.addr);
        self.size.push(event.size.0);
        self.time.push(event.time.0);
        self.stream.push(event.stream);
        self.pool.push(event.pool);
        self.stack.push(event.stack);
    }

    /// Replaces an event. Nothing happens beyond the end.
    pub fn set(&mut self, i: usize, event: Event) {
        if i < self.len() {
            self.action[i] = event.action;
            self.addr[i] = event.addr;
            self.size[i] = event.size.0;
            self.time[i] = event.time.0;
            self.stream[i] = event.stream;
            self.pool[i] = event.pool;
            self.stack[i] = event.stack;
        }
    }

    /// Bytes of memory that the columns take up, room for more events included.
    pub fn memory(&self) -> usize {
        fn column<T>(column: &Vec<T>) -> usize {
            column.capacity() * size_of::<T>()
        }
        let notes = (self.compile_context.capacity() + self.note.capacity()) * size_of::<(u32, StringId)>();
        column(&self.action)
            + column(&self.addr)
            + column(&self.size)
            + column(&self.time)
            + column(&self.stream)
            + column(&self.pool)
            + column(&self.stack)
            + notes
    }

    /// Gives back the room for more events.
    pub fn shrink_to_fit(&mut self) {
        self.action.shrink_to_fit();
        self.addr.shrink_to_fit();
        self.size.shrink_to_fit();
        self.time.shrink_to_fit();
        self.stream.shrink_to_fit();
        self.pool.shrink_to_fit();
        self.stack.shrink_to_fit();
    }

    /// Leaves out all events from that place on.
    pub fn truncate(&mut self, n: usize) {
        self.action.truncate(n);
        self.addr.truncate(n);
        self.size.truncate(n);
        self.time.truncate(n);
        self.stream.truncate(n);
        self.pool.truncate(n);
        self.stack.truncate(n);
        self.compile_context.retain(|&i, _| (i as usize) < n);
        self.note.retain(|&i, _| (i as usize) < n);
    }

    /// The event at that place.
    ///
    /// # Panics
    /// Beyond the end, as slices do.
    #[inline]
    pub fn get(&self, i: usize) -> Event {
        Event {
            action: self.action[i],
            addr: self.addr[i],
            size: Bytes(self.size[i]),
            time: TimeUs(self.time[i]),
            stream: self.stream[i],
            pool: self.pool[i],
            stack: self.stack[i],
        }
    }

    /// The events in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Event> + DoubleEndedIterator + '_ {
        (0..self.len()).map(|i| self.get(i))
    }

    /// The column of actions.
    pub fn actions(&self) -> &[Action] {
        &self.action
    }

    /// The column of addresses.
    pub fn addrs(&self) -> &[u64] {
        &self.addr
    }

    /// The column of sizes in bytes.
    pub fn sizes(&self) -> &[u64] {
        &self.size
    }

    /// The column of stacks.
    pub fn stacks(&self) -> &[StackId] {
        &self.stack
    }

    /// The time of an event, if it was recorded and the event exists.
    pub fn time(&self, i: EventIdx) -> Option<TimeUs> {
        self.time.get(i.index()).and_then(|&t| TimeUs(t).known())
    }

    /// The first and the last time in the trace.
    pub fn time_span(&self) -> Option<(TimeUs, TimeUs)> {
        let mut known = self.time.iter().filter_map(|&t| TimeUs(t).known());
        let first = known.next()?;
        Some((first, known.next_back().unwrap_or(first)))
    }

    /// The first event at or after a time. Times grow along a trace but for small jitter between threads.
    pub fn at_or_after(&self, time: TimeUs) -> EventIdx {
        EventIdx(self.time.partition_point(|&t| t < time.0) as u32)
    }

    /// Keeps the compiled region that an event belongs to.
    pub fn set_compile_context(&mut self, i: usize, text: StringId) {
        self.compile_context.insert(i as u32, text);
    }

    /// The compiled region that an event belongs to.
    pub fn compile_context(&self, i: EventIdx) -> Option<StringId> {
        self.compile_context.get(&i.0).copied()
    }

    /// Keeps a note that an event carries.
    pub fn set_note(&mut self, i: usize, text: StringId) {
        self.note.insert(i as u32, text);
    }

    /// The note that an event carries: user metadata, or the name of an action that is not known.
    pub fn note(&self, i: EventIdx) -> Option<StringId> {
        self.note.get(&i.0).copied()
    }

    /// How many events there are of each action, in the order of [`Action::ALL`].
    pub fn counts(&self) -> [u64; Action::ALL.len()] {
        let mut counts = [0; Action::ALL.len()];
        for &action in &self.action {
            counts[action as usize] += 1;
        }
        counts
    }

    /// How many events there are of one action.
    pub fn count(&self, action: Action) -> u64 {
        self.counts()[action as usize]
    }

    /// Whether two events record the same happening: all but the stack, which may be symbolised differently.
    pub(crate) fn same(&self, i: usize, other: &Self, j: usize) -> bool {
        self.action[i] == other.action[j]
            && self.addr[i] == other.addr[j]
            && self.size[i] == other.size[j]
            && self.time[i] == other.time[j]
    }

    /// A copy of the events in a range, in order.
    #[must_use]
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        let range = range.start.min(self.len())..range.end.min(self.len());
        let keep = |notes: &FxHashMap<u32, StringId>| -> FxHashMap<u32, StringId> {
            let moved = |i: u32, text: StringId| (i - range.start as u32, text);
            // A trace may be put together from many short ranges: none of them may cost a pass over all notes.
            if notes.len() < range.len() {
                let inside = notes.iter().filter(|&(&i, _)| range.contains(&(i as usize)));
                inside.map(|(&i, &text)| moved(i, text)).collect()
            } else {
                let places = range.start as u32..range.end as u32;
                places.filter_map(|i| notes.get(&i).map(|&text| moved(i, text))).collect()
            }
        };
        Self {
            action: self.action[range.clone()].to_vec(),
            addr: self.addr[range.clone()].to_vec(),
            size: self.size[range.clone()].to_vec(),
            time: self.time[range.clone()].to_vec(),
            stream: self.stream[range.clone()].to_vec(),
            pool: self.pool[range.clone()].to_vec(),
            stack: self.stack[range.clone()].to_vec(),
            compile_context: keep(&self.compile_context),
            note: keep(&self.note),
        }
    }

    /// Adds the events of another trace at the end.
    pub fn extend(&mut self, other: &Self) {
        let base = self.len() as u32;
        self.action.extend_from_slice(&other.action);
        self.addr.extend_from_slice(&other.addr);
        self.size.extend_from_slice(&other.size);
        self.time.extend_from_slice(&other.time);
        self.stream.extend_from_slice(&other.stream);
        self.pool.extend_from_slice(&other.pool);
        self.stack.extend_from_slice(&other.stack);
        self.compile_context.extend(other.compile_context.iter().map(|(&i, &text)| (base + i, text)));
        self.note.extend(other.note.iter().map(|(&i, &text)| (base + i, text)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::Symbols;

    #[test]
    fn a_slice_keeps_the_notes_of_its_events() {
        let mut symbols = Symbols::default();
        let mut events = Events::default();
        for i in 0..100 {
            events.push(Event {
                action: Action::Alloc,
                addr: i,
                size: Bytes(512),
                time: TimeUs::UNKNOWN,
                stream: StreamId(0),
                pool: PoolId::DEFAULT,
                stack: StackId::ABSENT,
            });
        }
        let text = symbols.string("note");
        events.set_compile_context(11, text);
        for i in [10, 12, 50] {
            events.set_note(i, text);
        }
        let noted = |part: &Events| {
            (0..part.len()).filter(|&i| part.note(EventIdx(i as u32)).is_some()).collect::<Vec<_>>()
        };
        // Fewer events than notes, and more of them.
        let few = events.slice(11..13);
        assert_eq!((few.len(), noted(&few)), (2, vec![1]));
        assert_eq!(few.compile_context(EventIdx(0)), Some(text));
        let many = events.slice(5..200);
        assert_eq!((many.len(), noted(&many)), (95, vec![5, 7, 45]));
        assert_eq!(many.compile_context(EventIdx(6)), Some(text));
    }
}
