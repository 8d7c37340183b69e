//! Runs a workload on the allocator under any settings.
//!
//! Source: the allocator reference, §14.

use vramscope_model::{EventIdx, StreamId};

use super::addresses::Direction;
use super::block::{Id, NONE};
use super::config::{Config, Rules};
use super::machine::{Allocator, Failed};
use super::outcome::{Limits, OutOfMemory, Outcome};
use super::start::StartBlock;
use super::tally::SegmentAction;
use super::workload::{Call, Request, Step, Workload};

/// What a replay begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// With what was there when the recording began.
    AsRecorded,
    /// With nothing: blocks from before the recording are requested anew, by address or the largest first.
    Anew {
        /// Where new segments are put.
        direction: Direction,
        largest_first: bool,
    },
}

/// Runs a workload from its beginning to its end, or until memory runs out.
///
/// Of the memory that was given back in the recording only `flushes`, the calls of `empty_cache()`, are given
/// back here; the rest the allocator decides by itself.
pub(super) fn replay(
    workload: &Workload,
    config: &Config,
    rules: Rules,
    limits: &Limits,
    flushes: &[EventIdx],
    beginning: Beginning,
) -> Outcome {
    let mut player = Player::new(workload, config, rules, *limits);
    let as_recorded = beginning == Beginning::AsRecorded;
    let goes_on = match beginning {
        Beginning::AsRecorded => {
            player.start_as_recorded();
            player.is_within_limits()
        }
        Beginning::Anew { direction, largest_first } => {
            player.allocator.addresses = workload.addresses.towards(direction);
            player.start_anew(largest_first)
        }
    };
    if !goes_on {
        return player.finish();
    }
    let mut flushes = flushes.iter().peekable();
    // As long as it goes as recorded, memory lies where it lay.
    let mut obtained = workload.obtained.iter().filter(|_| as_recorded).peekable();
    for step in &workload.steps {
        let is_flush = matches!(step.call, Call::GiveBack { .. }) && {
            while flushes.next_if(|&&flush| flush < step.event).is_some() {}
            flushes.next_if(|&&flush| flush == step.event).is_some()
        };
        if obtained.peek().is_some_and(|(event, _)| *event < step.event) {
            let given = std::iter::from_fn(|| obtained.next_if(|(event, _)| *event < step.event));
            player.allocator.addresses.give(given.map(|(_, addr)| *addr));
        }
        if is_flush {
            player.flush();
        } else if !player.play(*step) {
            break;
        }
    }
    player.finish()
}

/// A workload being run.
pub(super) struct Player<'a> {
    pub(super) allocator: Allocator<'a>,
    workload: &'a Workload,
    /// The block of each request that is held or pending.
    pub(super) blocks: Vec<Id>,
    oom: Option<OutOfMemory>,
    rescued: Vec<EventIdx>,
}

impl<'a> Player<'a> {
    pub(super) fn new(workload: &'a Workload, config: &'a Config, rules: Rules, limits: Limits) -> Self {
        let mut allocator = Allocator::new(config, rules, limits);
        allocator.addresses = workload.addresses.clone();
        let (reserved, allocated) = workload.private_at_start;
        allocator.tally.set_private(reserved, allocated);
        Self {
            allocator,
            workload,
            blocks: vec![NONE; workload.requests.len()],
            oom: None,
            rescued: Vec::new(),
        }
    }

    /// Requests what was there before the recording. Returns whether memory sufficed.
    fn start_anew(&mut self, largest_first: bool) -> bool {
        let mut blocks: Vec<&StartBlock> = self.workload.start.blocks.iter().collect();
        if largest_first {
            blocks.sort_by_key(|block| std::cmp::Reverse(block.size));
        }
        for block in blocks {
            if !self.malloc(EventIdx(0), block.owner) {
                return false;
            }
            if block.is_pending {
                self.free(block.owner, true);
            }
        }
        self.allocator.tally.forget_calls();
        true
    }

    /// Whether what is there may be there; else memory ran out before the recording began.
    fn is_within_limits(&mut self) -> bool {
        if self.allocator.may_obtain(0) {
            return true;
        }
        self.flush();
        let is_enough = self.allocator.may_obtain(0);
        if !is_enough {
            self.run_out(EventIdx(0), Request { size: 0, stream: StreamId(0) });
        }
        is_enough
    }

    /// Puts what was there before the recording where it was.
    pub(super) fn start_as_recorded(&mut self) {
        let Self { allocator, workload, blocks, .. } = self;
        allocator.adopt(&workload.start, |request, block| blocks[request as usize] = block);
    }

    /// Where the block of a request lies.
    pub(super) fn addr(&self, id: u32) -> Option<u64> {
        let block = self.blocks.get(id as usize).copied().filter(|&block| block != NONE)?;
        Some(self.allocator.blocks[block].addr)
    }

    /// Does what a step says. Returns whether the program goes on.
    #[inline]
    pub(super) fn play(&mut self, step: Step) -> bool {
        self.allocator.tally.now = step.event.0;
        match step.call {
            Call::Malloc(id) => return self.malloc(step.event, id),
            Call::Free(id) => self.free(id, false),
            Call::Request(id) => self.free(id, true),
            Call::Complete(id) => {
                let block = std::mem::replace(&mut self.blocks[id as usize], NONE);
                if block != NONE {
                    self.allocator.complete(block);
                }
            }
            Call::Private(place) => return self.take_private(step.event, place),
            Call::Fail { place } => self.fail(step.event, self.workload.failed[place as usize]),
            Call::GiveBack { .. } => {}
        }
        true
    }

    /// Takes over what private pools hold. They may need room that has to be made first.
    fn take_private(&mut self, event: EventIdx, place: u32) -> bool {
        let (reserved, allocated) = self.workload.private[place as usize];
        let more = reserved.saturating_sub(self.allocator.tally.private.0);
        if more > 0 && !self.allocator.may_obtain(more) {
            self.flush();
            if !self.allocator.may_obtain(more) {
                self.run_out(event, Request { size: more, stream: StreamId(0) });
                return false;
            }
        }
        self.allocator.tally.set_private(reserved, allocated);
        true
    }

    fn malloc(&mut self, event: EventIdx, id: u32) -> bool {
        let Request { size, stream } = self.workload.requests[id as usize];
        let served = self.allocator.malloc(size, stream, id);
        self.forget_completed();
        match served {
            Ok(block) => {
                self.blocks[id as usize] = block;
                true
            }
            Err(Failed { size }) => {
                self.run_out(event, Request { size, stream });
                false
            }
        }
    }

    /// A request that failed when it was recorded; what followed shows that the program went on.
    fn fail(&mut self, event: EventIdx, request: Request) {
        let served = self.allocator.malloc(request.size, request.stream, NONE);
        self.forget_completed();
        match served {
            Ok(block) => {
                self.rescued.push(event);
                self.allocator.free(block, false);
            }
            Err(_) => self.run_out(event, request),
        }
    }

    fn free(&mut self, id: u32, is_pending: bool) {
        let block = self.blocks[id as usize];
        if block == NONE {
            return;
        }
        if !is_pending {
            self.blocks[id as usize] = NONE;
        }
        self.allocator.free(block, is_pending);
    }

    /// Gives back all that is free, as `empty_cache()` does.
    pub(super) fn flush(&mut self) {
        self.allocator.release_all();
        self.forget_completed();
    }

    /// Blocks that were waited for are free already when their recorded completion comes.
    fn forget_completed(&mut self) {
        for owner in self.allocator.completed_early.drain(..) {
            self.blocks[owner as usize] = NONE;
        }
    }

    fn run_out(&mut self, event: EventIdx, request: Request) {
        if self.oom.is_some() {
            return;
        }
        let (free, largest_free) = self.allocator.free_for(request.size, request.stream);
        let tally = &self.allocator.tally;
        self.oom = Some(OutOfMemory {
            event,
            size: request.size,
            reserved: tally.total_reserved(),
            allocated: tally.total_allocated(),
            largest_free,
            free,
        });
    }

    pub(super) fn finish(self) -> Outcome {
        let tally = self.allocator.tally;
        let calls = |action: SegmentAction| tally.calls[action as usize];
        Outcome {
            peak_reserved: tally.peak_reserved,
            peak_event: EventIdx(tally.peak_event),
            allocated_at_peak: tally.allocated_at_peak,
            final_reserved: tally.total_reserved(),
            final_allocated: tally.total_allocated(),
            peak_allocated: tally.peak_allocated,
            peak_segments: tally.peak_segments,
            segment_allocs: calls(SegmentAction::Alloc),
            segment_frees: calls(SegmentAction::Free),
            maps: calls(SegmentAction::Map),
            unmaps: calls(SegmentAction::Unmap),
            retries: tally.retries,
            collections: tally.collections,
            oom: self.oom,
            rescued: self.rescued,
        }
    }
}
