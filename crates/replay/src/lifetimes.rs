//! When each block was born, when it died, and how large it was.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use vramscope_model::{Action, BlockState, Bytes, DeviceRecording, EventIdx, Settings, StackId, State};

use crate::{curve, placement};

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

const NEVER: u32 = u32::MAX;
const UNRECORDED: u32 = u32::MAX - 1;
/// Born before the recording.
const BEFORE: u32 = u32::MAX;
/// An event that concerns no block.
pub(crate) const NO_ALLOC: u32 = u32::MAX;

/// Every block's stay, as columns; those from before the recording come first.
#[derive(Clone, Debug)]
pub struct Lifetimes {
    birth: Vec<u32>,
    death: Vec<u32>,
    addr: Vec<u64>,
    requested: Vec<u64>,
    size: Vec<u64>,
    stack: Vec<StackId>,
    n_before: usize,
    /// The stay that each event begins or ends.
    alloc_of: Vec<u32>,
    n_events: u32,
    agreement: Agreement,
    /// Allocated, requested and reserved bytes before the first event.
    baseline: (i64, i64, i64),
}

impl Lifetimes {
    /// Follows every block of a device through its trace.
    ///
    /// A block is dead from the moment its free is requested, whatever its events still wait for. A block whose free
    /// was not recorded is dead when its address is handed out again, or when the last state does not show it.
    pub fn of(device: &DeviceRecording, settings: Option<&Settings>) -> Self {
        let mut this = Self::follow(device);
        this.settle_with_state(device);
        this.name_by_earlier_states(device);
        this.move_before_first();
        let sizes = placement::block_sizes(device, &this, settings);
        this.size = sizes;
        this.take_state_sizes(device);
        this.baseline = curve::start(device, &this);
        this
    }

    /// Pairs allocations with frees by address.
    fn follow(device: &DeviceRecording) -> Self {
        let events = &device.events;
        let n = events.len();
        let n_allocs = events.count(Action::Alloc) as usize;
        let mut this = Self {
            birth: Vec::with_capacity(n_allocs),
            death: Vec::with_capacity(n_allocs),
            addr: Vec::with_capacity(n_allocs),
            requested: Vec::with_capacity(n_allocs),
            size: Vec::new(),
            stack: Vec::with_capacity(n_allocs),
            n_before: 0,
            alloc_of: vec![NO_ALLOC; n],
            n_events: n as u32,
            agreement: Agreement::default(),
            baseline: (0, 0, 0),
        };
        let mut live: HashMap<u64, u32, FxBuildHasher> = HashMap::default();
        let has_requests = events.count(Action::FreeRequested) > 0;
        let (actions, addrs, sizes, stacks) =
            (events.actions(), events.addrs(), events.sizes(), events.stacks());
        for i in 0..n {
            match actions[i] {
                Action::Alloc => {
                    let id = this.birth.len() as u32;
                    if let Some(old) = live.insert(addrs[i], id) {
                        // Its completion may be late or missing; its request decides.
                        let death = &mut this.death[old as usize];
                        if *death == NEVER {
                            *death = i as u32;
                            this.agreement.missing_frees += 1;
                        }
                    }
                    this.push(i as u32, addrs[i], sizes[i], stacks[i]);
                    this.alloc_of[i] = id;
                }
                Action::FreeRequested => {
                    this.agreement.records_frees = true;
                    let id = if let Some(&id) = live.get(&addrs[i]) {
                        id
                    } else {
                        let id = this.birth.len() as u32;
                        this.push(BEFORE, addrs[i], sizes[i], StackId::ABSENT);
                        this.agreement.unmatched_frees += 1;
                        live.insert(addrs[i], id);
                        id
                    };
                    let death = &mut this.death[id as usize];
                    if *death == NEVER {
                        *death = i as u32;
                        this.alloc_of[i] = id;
                    }
                }
                Action::FreeCompleted => {
                    this.agreement.records_frees = true;
                    if let Some(id) = live.remove(&addrs[i]) {
                        let death = &mut this.death[id as usize];
                        // Without a request (such events can be left out of a recording) this is the free.
                        if *death == NEVER {
                            *death = i as u32;
                            this.alloc_of[i] = id;
                        }
                    } else {
                        // A block from before the recording; its request may be too old to be in the trace, in which
                        // case it was pending, not held, when the trace begins.
                        this.agreement.unmatched_frees += 1;
                        if !has_requests {
                            this.push(BEFORE, addrs[i], sizes[i], StackId::ABSENT);
                            let id = this.birth.len() - 1;
                            this.death[id] = i as u32;
                            this.alloc_of[i] = id as u32;
                        }
                    }
                }
                _ => {}
            }
        }
        this
    }

    fn push(&mut self, birth: u32, addr: u64, requested: u64, stack: StackId) {
        self.birth.push(birth);
        self.death.push(NEVER);
        self.addr.push(addr);
        self.requested.push(requested);
        self.stack.push(stack);
    }

    /// Compares what the trace leaves alive with what the last state shows, which has the last word: the trace may lack
    /// frees, or begin late.
    fn settle_with_state(&mut self, device: &DeviceRecording) {
        let Some(state) = device.last_state() else { return };
        if !device.events.is_empty() && !device.trace_reaches_state() {
            return;
        }
        let mut held: HashMap<u64, u32, FxBuildHasher> = HashMap::default();
        for (id, &death) in self.death.iter().enumerate() {
            if death == NEVER {
                held.insert(self.addr[id], id as u32);
            }
        }
        for (_, block) in state.blocks() {
            if block.state != BlockState::Allocated {
                continue;
            }
            let requested = block.requested.map_or(block.size.0, |r| r.0);
            if let Some(id) = held.remove(&block.addr) {
                if block.requested.is_some() && self.requested[id as usize] != requested {
                    self.agreement.size_differs += 1;
                } else {
                    self.agreement.agreed += 1;
                }
                // A stack that the event lacks may be on the block (recording with `context="state"`).
                let stack = &mut self.stack[id as usize];
                if !stack.has_frames() && block.stack.has_frames() {
                    *stack = block.stack;
                }
            } else {
                self.push(BEFORE, block.addr, requested, block.stack);
                self.agreement.agreed += 1;
            }
        }
        let mut gone: Vec<u32> = held.into_values().collect();
        gone.sort_unstable();
        for id in gone {
            self.death[id as usize] = UNRECORDED;
            self.agreement.only_trace += 1;
        }
    }

    /// Earlier snapshots know the stacks of blocks whose allocation the trace does not hold any more.
    fn name_by_earlier_states(&mut self, device: &DeviceRecording) {
        let Some((_, earlier)) = device.states.split_last() else { return };
        if earlier.is_empty() || !self.birth.contains(&BEFORE) {
            return;
        }
        // Until the block dies every state shows it; those after its death show what came to lie there.
        for id in 0..self.birth.len() {
            if self.birth[id] != BEFORE || self.stack[id].has_frames() {
                continue;
            }
            let is_before_death = |s: &&State| s.after.is_none_or(|a| a.0 <= self.death[id]);
            let shown = earlier.iter().filter(is_before_death).rev().find_map(|s| s.block_at(self.addr[id]));
            if let Some(block) = shown
                && block.state == BlockState::Allocated
                && block.requested.unwrap_or(block.size).0 == self.requested[id]
                && block.stack.has_frames()
            {
                self.stack[id] = block.stack;
            }
        }
    }

    /// Puts the stays from before the recording first, so that the rest are in the order of their births.
    fn move_before_first(&mut self) {
        let n = self.birth.len();
        self.n_before = self.birth.iter().filter(|&&b| b == BEFORE).count();
        if self.birth.iter().take(self.n_before).all(|&b| b == BEFORE) {
            return;
        }
        let (mut order, born): (Vec<u32>, Vec<u32>) =
            (0..n as u32).partition(|&i| self.birth[i as usize] == BEFORE);
        order.extend(born);
        let mut place = vec![0; n];
        for (new, &old) in order.iter().enumerate() {
            place[old as usize] = new as u32;
        }
        permute(&mut self.birth, &order);
        permute(&mut self.death, &order);
        permute(&mut self.addr, &order);
        permute(&mut self.requested, &order);
        permute(&mut self.stack, &order);
        for id in &mut self.alloc_of {
            if *id != NO_ALLOC {
                *id = place[*id as usize];
            }
        }
    }

    /// The state knows the exact sizes of the blocks that are left.
    fn take_state_sizes(&mut self, device: &DeviceRecording) {
        let Some(state) = device.last_state() else { return };
        let survivors: HashMap<u64, usize, FxBuildHasher> =
            (0..self.len()).filter(|&i| self.death[i] == NEVER).map(|i| (self.addr[i], i)).collect();
        for (_, block) in state.blocks() {
            if block.state == BlockState::Allocated
                && let Some(&id) = survivors.get(&block.addr)
            {
                self.size[id] = block.size.0;
            }
        }
    }

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

/// Puts a column in another order.
fn permute<T: Copy>(column: &mut Vec<T>, order: &[u32]) {
    *column = order.iter().map(|&i| column[i as usize]).collect();
}
