//! Replays a recording under its own settings and compares, event by event: what it takes to be believed.
//!
//! Source: the allocator reference, §16 (same-settings replay).

use rustc_hash::FxHashMap;
use vramscope_model::{Action, BlockState, Bytes, DeviceRecording, EventIdx, PoolId};

use super::bursts::{Burst, reasons};
use super::config::{Config, Rules};
use super::outcome::{Divergence, Limits, Reproduction};
use super::replay::Player;
use super::tally::{SegmentAction, SegmentEvent};
use super::workload::{Call, Step, Workload};

/// Replays a recording under its own settings, with new segments at the addresses that were recorded.
///
/// Memory that was given back without need is given back at the same moments, for `empty_cache()` leaves no event of its own.
pub(super) fn reproduce(
    device: &DeviceRecording,
    workload: &Workload,
    config: &Config,
    rules: Rules,
) -> Reproduction {
    let mut player = Player::new(workload, config, rules, Limits::default());
    player.allocator.tally.log = Some(Vec::new());
    player.start_as_recorded();
    let mut comparison = Comparison {
        device,
        workload,
        config,
        player,
        seen: 0,
        bursts: Vec::new(),
        result: Reproduction::default(),
    };
    for (place, step) in workload.steps.iter().enumerate() {
        comparison.follow(*step, workload.steps.get(place + 1));
    }
    comparison.check_events(device.events.len());
    comparison.check_last_state();
    let Comparison { mut result, bursts, player, .. } = comparison;
    result.outcome = player.finish();
    let collects = config.garbage_collection_threshold > 0.0;
    let reasons = reasons(&bursts, result.outcome.peak_reserved, !workload.failed.is_empty(), collects);
    result.flushes = reasons.calls;
    result.refused = reasons.refused;
    result.flush_in_doubt = reasons.in_doubt;
    result.cached_at_start = workload.start.free_bytes();
    result.private_peak = workload.private.iter().map(|p| p.0).fold(workload.private_at_start.0, u64::max);
    result
}

struct Comparison<'a> {
    device: &'a DeviceRecording,
    workload: &'a Workload,
    config: &'a Config,
    player: Player<'a>,
    /// Segment events before this place were compared.
    seen: usize,
    bursts: Vec<Burst>,
    result: Reproduction,
}

impl Comparison<'_> {
    fn follow(&mut self, step: Step, next: Option<&Step>) {
        let at = step.event.index();
        match step.call {
            Call::Malloc(id) => {
                let recorded = self.recorded(self.seen..at);
                let given =
                    recorded.iter().filter(|e| matches!(e.action, SegmentAction::Alloc | SegmentAction::Map));
                self.player.allocator.addresses.give(given.map(|e| e.addr));
                self.player.play(step);
                self.check_events(at);
                self.check_address(step.event, id);
            }
            Call::GiveBack { until } => {
                self.grow_in_vain(at, next);
                self.check_events(at);
                self.give_back(at, until.index(), next);
                self.check_events(until.index());
            }
            Call::Fail { .. } => {
                self.grow_in_vain(at, Some(&step));
                // Everything was tried, in vain; what was given back meanwhile has steps of its own.
                self.check_events(at);
            }
            Call::Free(_) | Call::Request(_) | Call::Complete(_) | Call::Private(_) => {
                self.player.play(step);
            }
        }
    }

    /// A request for which the driver had memory only for the first of several mappings leaves that one behind.
    fn grow_in_vain(&mut self, at: usize, next: Option<&Step>) {
        let mapped = self.recorded(self.seen..at);
        let request = next.and_then(|step| match step.call {
            Call::Malloc(id) => self.workload.requests.get(id as usize),
            Call::Fail { place } => self.workload.failed.get(place as usize),
            _ => None,
        });
        if let Some(request) = request
            && !mapped.is_empty()
            && mapped.iter().all(|event| event.action == SegmentAction::Map)
        {
            let bytes = mapped.iter().fold(0u64, |sum, event| sum.saturating_add(event.size));
            self.player.allocator.addresses.give(mapped.iter().map(|event| event.addr));
            self.player.allocator.grow_up_to(request.size, request.stream, bytes);
        }
    }

    /// Memory went back to the driver: all that was free, or a part.
    fn give_back(&mut self, from: usize, until: usize, next: Option<&Step>) {
        let recorded = self.recorded(from..until);
        let allocator = &mut self.player.allocator;
        let reserved = allocator.tally.reserved;
        // Less than all: garbage was collected, or room made for one request.
        let is_part = allocator.n_releasable() > recorded.len();
        if is_part || !allocator.pending.is_empty() {
            for event in &recorded {
                allocator.release_at(event.addr, event.size);
            }
        } else {
            self.player.flush();
        }
        // Without settings that give back parts nothing but a call explains it; that it was less is for other reasons.
        if is_part && (self.config.garbage_collection_threshold > 0.0 || self.config.max_split_size.is_some())
        {
            return;
        }
        let without = self.reserved_without(from, until, reserved, next);
        self.bursts.push(Burst { event: EventIdx(from as u32), without });
    }

    /// What would have been reserved had nothing been given back, if that came right before a request that obtained memory or
    /// failed, from the same place in the program.
    fn reserved_without(&self, from: usize, until: usize, reserved: u64, next: Option<&Step>) -> Option<u64> {
        let next = next?;
        let stacks = self.device.events.stacks();
        let same_place = stacks.get(from) == stacks.get(next.event.index());
        let obtained = match next.call {
            Call::Malloc(_) => self
                .recorded(until..next.event.index())
                .iter()
                .fold(0u64, |sum, e| sum.saturating_add(e.size)),
            Call::Fail { place } => self.workload.failed.get(place as usize).map_or(0, |failed| failed.size),
            _ => 0,
        };
        let private = self.player.allocator.tally.private.0;
        (same_place && obtained > 0).then(|| reserved.saturating_add(private).saturating_add(obtained))
    }

    /// Segment events of the trace outside private pools.
    fn recorded(&self, range: std::ops::Range<usize>) -> Vec<SegmentEvent> {
        let events = &self.device.events;
        let actions = events.actions();
        range
            .filter_map(|i| {
                let action = match actions.get(i)? {
                    Action::SegmentAlloc => SegmentAction::Alloc,
                    Action::SegmentFree => SegmentAction::Free,
                    Action::SegmentMap => SegmentAction::Map,
                    Action::SegmentUnmap => SegmentAction::Unmap,
                    _ => return None,
                };
                let here = EventIdx(i as u32);
                (!self.workload.pools.has(here)).then(|| SegmentEvent {
                    action,
                    addr: events.addrs()[i],
                    size: events.sizes()[i],
                })
            })
            .collect()
    }

    /// Compares what the trace has up to an event with what the replay did since the last comparison.
    fn check_events(&mut self, until: usize) {
        let replayed = self.player.allocator.tally.log.as_mut().map(std::mem::take).unwrap_or_default();
        let mut recorded = if self.seen < until { self.recorded(self.seen..until) } else { Vec::new() };
        self.seen = self.seen.max(until);
        if recorded.is_empty() && replayed.is_empty() {
            return;
        }
        self.result.recorded += recorded.len() as u64;
        let mut by_size: FxHashMap<(SegmentAction, u64), u64> = FxHashMap::default();
        for event in &recorded {
            *by_size.entry((event.action, event.size)).or_default() += 1;
        }
        for event in &replayed {
            match by_size.get_mut(&(event.action, event.size)).filter(|left| **left > 0) {
                Some(left) => {
                    *left -= 1;
                    self.result.reproduced += 1;
                }
                None => self.result.surplus += 1,
            }
        }
        let mut sorted = replayed.clone();
        sorted.sort_unstable();
        recorded.sort_unstable();
        if sorted != recorded {
            let parts_here = self.result.first_divergence.is_none();
            self.part(
                EventIdx(until.min(self.device.events.len()) as u32),
                &events_in_words(&recorded),
                &events_in_words(&sorted),
            );
            if let Some(divergence) = self.result.first_divergence.as_mut().filter(|_| parts_here) {
                let is_growth = recorded.iter().all(|e| e.action == SegmentAction::Map);
                let is_elsewhere = is_growth && replayed.iter().any(|e| !recorded.contains(e));
                divergence.is_elsewhere = !recorded.is_empty() && (replayed.is_empty() || is_elsewhere);
            }
        }
    }

    fn check_address(&mut self, event: EventIdx, id: u32) {
        self.result.allocations += 1;
        let recorded = self.device.events.addrs()[event.index()];
        match self.player.addr(id) {
            Some(addr) if addr == recorded => self.result.in_place += 1,
            Some(addr) => {
                self.part(event, &format!("a block at {recorded:#x}"), &format!("one at {addr:#x}"));
            }
            None => self.part(event, &format!("a block at {recorded:#x}"), "none"),
        }
    }

    /// Compares the blocks that are left with those of the last state.
    fn check_last_state(&mut self) {
        if !self.device.trace_reaches_state() {
            return;
        }
        let Some(state) = self.device.last_state() else { return };
        let mut replayed: FxHashMap<u64, (u64, BlockState)> = self.player.allocator.layout().collect();
        let end = EventIdx(self.device.events.len() as u32);
        for (segment, block) in state.blocks() {
            if segment.pool != PoolId::DEFAULT {
                continue;
            }
            self.result.blocks += 1;
            let Bytes(size) = block.size;
            let found = replayed.remove(&block.addr);
            if found == Some((size, block.state)) {
                self.result.same_blocks += 1;
                continue;
            }
            let recorded = block_in_words(block.addr, size, block.state);
            let found = found.map_or_else(
                || "none there".to_owned(),
                |(size, state)| block_in_words(block.addr, size, state),
            );
            self.part(end, &recorded, &found);
        }
        if let Some((addr, (size, state))) = replayed.into_iter().min_by_key(|(addr, _)| *addr) {
            self.part(end, "none there", &block_in_words(addr, size, state));
        }
    }

    /// Keeps the first difference.
    fn part(&mut self, event: EventIdx, recorded: &str, replayed: &str) {
        if self.result.first_divergence.is_none() {
            let (recorded, replayed) = (recorded.to_owned(), replayed.to_owned());
            self.result.first_divergence =
                Some(Divergence { event, recorded, replayed, is_elsewhere: false });
        }
    }
}

fn events_in_words(events: &[SegmentEvent]) -> String {
    const SHOWN: usize = 3;
    if events.is_empty() {
        return "no segment obtained or given back".to_owned();
    }
    let word = |action| match action {
        SegmentAction::Alloc => "obtained",
        SegmentAction::Free => "given back",
        SegmentAction::Map => "mapped",
        SegmentAction::Unmap => "unmapped",
    };
    let mut words: Vec<String> = events
        .iter()
        .take(SHOWN)
        .map(|e| format!("{} {} at {:#x}", Bytes(e.size), word(e.action), e.addr))
        .collect();
    if events.len() > SHOWN {
        words.push(format!("{} more", events.len() - SHOWN));
    }
    words.join(", ")
}

fn block_in_words(addr: u64, size: u64, state: BlockState) -> String {
    let state = match state {
        BlockState::Allocated => "held",
        BlockState::PendingFree => "pending",
        BlockState::Inactive => "free",
    };
    format!("a {state} block of {size} bytes at {addr:#x}")
}
