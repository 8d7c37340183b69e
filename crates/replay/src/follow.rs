//! Follows every block through a trace, from its allocation to its free.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use vramscope_model::{Action, BlockState, DeviceRecording, Settings, StackId, State};

use crate::lifetimes::{Agreement, BEFORE, Lifetimes, NEVER, NO_ALLOC, UNRECORDED, Wait};
use crate::{curve, placement};

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
        this.size_waits(device, settings);
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
            waits: Vec::new(),
            agreement: Agreement::default(),
            baseline: (0, 0, 0),
        };
        let mut live: HashMap<u64, u32, FxBuildHasher> = HashMap::default();
        let has_requests = events.count(Action::FreeRequested) > 0;
        // Where completions were left out of the recording, nobody knows what waited.
        let has_completions = events.count(Action::FreeCompleted) > 0;
        let mut completed = usize::MAX;
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
                        } else if has_completions {
                            this.wait(old, i as u32);
                        }
                    }
                    this.push(i as u32, addrs[i], sizes[i], stacks[i]);
                    this.alloc_of[i] = id;
                }
                Action::FreeRequested => {
                    this.agreement.records_frees = true;
                    // Nearly all frees are completed by the next event; then both are dealt with at once.
                    let completes = actions.get(i + 1) == Some(&Action::FreeCompleted)
                        && addrs.get(i + 1) == Some(&addrs[i]);
                    let known = if completes {
                        completed = i + 1;
                        live.remove(&addrs[i])
                    } else {
                        live.get(&addrs[i]).copied()
                    };
                    let id = known.unwrap_or_else(|| {
                        let id = this.birth.len() as u32;
                        this.push(BEFORE, addrs[i], sizes[i], StackId::ABSENT);
                        this.agreement.unmatched_frees += 1;
                        if !completes {
                            live.insert(addrs[i], id);
                        }
                        id
                    });
                    let death = &mut this.death[id as usize];
                    if *death == NEVER {
                        *death = i as u32;
                        this.alloc_of[i] = id;
                    }
                }
                Action::FreeCompleted if i == completed => {}
                Action::FreeCompleted => {
                    this.agreement.records_frees = true;
                    if let Some(id) = live.remove(&addrs[i]) {
                        let death = &mut this.death[id as usize];
                        // Without a request (such events can be left out of a recording) this is the free.
                        if *death == NEVER {
                            *death = i as u32;
                            this.alloc_of[i] = id;
                        } else {
                            this.wait(id, i as u32);
                        }
                    } else {
                        // A block from before the recording; its request may be too old to be in the trace, in which
                        // case it was pending, not held, when the trace begins.
                        this.agreement.unmatched_frees += 1;
                        if has_requests {
                            this.waits.push(Wait {
                                id: NO_ALLOC,
                                addr: addrs[i],
                                size: sizes[i],
                                from: BEFORE,
                                to: i as u32,
                            });
                        } else {
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
        let mut open: Vec<u32> =
            live.into_values().filter(|&id| has_completions && this.death[id as usize] != NEVER).collect();
        open.sort_unstable();
        for id in open {
            this.wait(id, NEVER);
        }
        this
    }

    /// Notes that a block waited from its death until an event. How large it is is found out later.
    fn wait(&mut self, id: u32, to: u32) {
        let (addr, from) = (self.addr[id as usize], self.death[id as usize]);
        self.waits.push(Wait { id, addr, size: 0, from, to });
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
        for id in self.alloc_of.iter_mut().chain(self.waits.iter_mut().map(|w| &mut w.id)) {
            if *id != NO_ALLOC {
                *id = place[*id as usize];
            }
        }
    }

    /// Gives the blocks that wait their sizes. Of what waits at the end, the last state has the last word.
    fn size_waits(&mut self, device: &DeviceRecording, settings: Option<&Settings>) {
        for wait in &mut self.waits {
            wait.size = match self.size.get(wait.id as usize) {
                Some(&size) => size,
                None => Settings::round(settings, wait.size),
            };
        }
        let Some(state) = device.last_state().filter(|_| device.trace_reaches_state()) else { return };
        let mut shown: HashMap<u64, u64, FxBuildHasher> = state
            .blocks()
            .filter(|(_, b)| b.state == BlockState::PendingFree)
            .map(|(_, b)| (b.addr, b.size.0))
            .collect();
        self.waits.retain_mut(|wait| {
            if wait.to == NEVER {
                let Some(size) = shown.remove(&wait.addr) else { return false };
                wait.size = size;
            }
            true
        });
        let mut older: Vec<(u64, u64)> = shown.into_iter().collect();
        older.sort_unstable();
        self.waits.extend(older.into_iter().map(|(addr, size)| Wait {
            id: NO_ALLOC,
            addr,
            size,
            from: BEFORE,
            to: NEVER,
        }));
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
}

/// Puts a column in another order.
fn permute<T: Copy>(column: &mut Vec<T>, order: &[u32]) {
    *column = order.iter().map(|&i| column[i as usize]).collect();
}
