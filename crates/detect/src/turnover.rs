//! What came and went at each line of the program, where a recording shows that nothing was kept.
//!
//! That no finding speaks of a line acquits it of nothing: what it keeps may have been allocated at other lines (a graph that
//! a running total holds), may be small, or may have been given back after all, at the end. So a recording acquits only as
//! a whole: of all that its steps allocated, at whatever line, nothing was held for longer than the step after. And it acquits
//! only lines that run once a step: what a line keeps that runs for each batch of an evaluation is given back at the end of the
//! evaluation, which is in the same step.

use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_model::{Bytes, EventIdx, FrameId, Origin, PoolId, StackId};
use vramscope_replay::{AllocId, Death};

use crate::Context;
use crate::groups::Group;
use crate::growth::{IN_FLIGHT, SURE_BIRTHS};
use crate::survivors_by_birth::{SURE_STEPS, may_be_layers, ran_out};

/// What was allocated below one line of the user's own code, that is with the line anywhere on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turnover {
    /// The line.
    pub frame: FrameId,
    /// Allocations.
    pub allocations: u64,
    /// The steps in which there were any, one in flight included.
    pub steps: u64,
    /// The most bytes, as blocks, that were held of them at once.
    pub most_held: Bytes,
    /// Of the first step, in which state is made that is meant to stay, those that were held for longer than the step after.
    pub from_first_step: u64,
    /// Their bytes, as blocks.
    pub from_first_step_bytes: Bytes,
    /// Whether the line ran once in each of enough steps, and all was given back by the end of the step after, but for what the first
    /// step made and what the step in flight holds.
    pub is_settled: bool,
}

/// Each line of the user's own code with what was allocated below it, by line. None where the recording cannot acquit: where it is
/// not whole, has too few steps, or kept anything at all from step to step.
pub fn turnover(cx: &Context<'_>) -> Option<Vec<Turnover>> {
    if !is_whole_story(cx) || keeps_anything(cx) {
        return None;
    }
    let mut lines: FxHashMap<FrameId, Vec<&Group>> = FxHashMap::default();
    for group in cx.groups.iter() {
        let on_stack: FxHashSet<FrameId> = cx.symbols.frames(group.stack).iter().copied().collect();
        for frame in on_stack.into_iter().filter(|&it| cx.symbols.get_frame(it).origin == Origin::User) {
            lines.entry(frame).or_default().push(group);
        }
    }
    let mut turnovers: Vec<Turnover> =
        lines.into_iter().map(|(frame, groups)| of_line(cx, frame, &groups)).collect();
    turnovers.sort_unstable_by_key(|it| it.frame);
    Some(turnovers)
}

/// Whether all that the program did on the device is known, over enough steps to convict by them.
fn is_whole_story(cx: &Context<'_>) -> bool {
    let agreement = cx.lifetimes.agreement();
    // What replays of a graph use is allocated once, and its pool holds it whatever the program does.
    let has_private_pool =
        || cx.device.states.iter().flat_map(|it| &it.segments).any(|it| it.pool != PoolId::DEFAULT);
    cx.is_whole()
        && !cx.recording.truncated
        && !cx.recording.has_gap
        && cx.device.trace_reaches_state()
        && agreement.records_frees
        && agreement.unmatched_frees == 0
        && agreement.missing_frees == 0
        && agreement.only_trace == 0
        && agreement.size_differs == 0
        && cx.rounds.n_steps() >= SURE_STEPS
        && !may_be_layers(cx)
        && !ran_out(cx)
        && !has_private_pool()
        // A stack that is known of a block whose allocation is not: the ring has lost its oldest events.
        && !cx.lifetimes.all().take(cx.lifetimes.n_before()).any(|id| cx.lifetimes.stack(id).has_frames())
        && !cx.lifetimes.born().any(|id| allocated_by(cx, id) == StackId::ABSENT)
}

/// The stack of the event that allocated a block.
fn allocated_by(cx: &Context<'_>, id: AllocId) -> StackId {
    let stack = cx.lifetimes.birth(id).and_then(|at| cx.device.events.stacks().get(at.index()));
    stack.copied().unwrap_or(StackId::ABSENT)
}

/// Whether anything that was allocated after the first two steps, in which a program sets itself up, was held for longer than the step
/// after. What is kept now and then only, or of another size at another line each time, is kept, too.
fn keeps_anything(cx: &Context<'_>) -> bool {
    let is_late = |id: AllocId| birth_round(cx, id) >= FIRST_STEPS && !is_in_flight(cx, id);
    cx.lifetimes.born().any(|id| is_late(id) && is_held_long(cx, id))
}

/// Rounds in which a program may make what stays.
const FIRST_STEPS: usize = 2;

/// Whether a block was allocated so late that nothing shows how long it is held.
fn is_in_flight(cx: &Context<'_>, id: AllocId) -> bool {
    birth_round(cx, id) + IN_FLIGHT >= cx.rounds.count()
}

fn of_line(cx: &Context<'_>, frame: FrameId, groups: &[&Group]) -> Turnover {
    let members = || groups.iter().flat_map(|group| group.members.iter().copied());
    let all_rounds: FxHashSet<usize> = members().map(|id| birth_round(cx, id)).collect();
    let rounds: FxHashSet<usize> =
        members().filter(|&id| is_of_loop(cx, id)).map(|id| birth_round(cx, id)).collect();
    let held_long = || members().filter(|&id| is_held_long(cx, id));
    let of_first = || held_long().filter(|&id| birth_round(cx, id) == 0);
    Turnover {
        frame,
        allocations: members().count() as u64,
        steps: all_rounds.len() as u64,
        most_held: most_held(cx, members()),
        from_first_step: of_first().count() as u64,
        from_first_step_bytes: of_first().map(|id| cx.lifetimes.size(id)).sum(),
        is_settled: rounds.len() >= SURE_BIRTHS
            && held_long().all(|id| birth_round(cx, id) == 0)
            && groups.iter().any(|group| is_once_a_round(cx, group, &rounds)),
    }
}

/// Whether a stack allocated exactly once in each of these rounds. A line that runs more often has no such stack.
fn is_once_a_round(cx: &Context<'_>, group: &Group, rounds: &FxHashSet<usize>) -> bool {
    let births =
        || group.members.iter().copied().filter(|&id| is_of_loop(cx, id)).map(|id| birth_round(cx, id));
    births().count() == rounds.len() && births().collect::<FxHashSet<_>>() == *rounds
}

/// The most bytes of some blocks that were held at once.
fn most_held(cx: &Context<'_>, members: impl Iterator<Item = AllocId>) -> Bytes {
    let mut changes: Vec<(EventIdx, bool, u64)> = Vec::new();
    for id in members {
        let size = cx.lifetimes.size(id).0;
        changes.extend(cx.lifetimes.birth(id).map(|at| (at, true, size)));
        if let Death::At(at) = cx.lifetimes.death(id) {
            changes.push((at, false, size));
        }
    }
    changes.sort_unstable();
    let (mut held, mut most) = (0u64, 0u64);
    for (_, is_birth, size) in changes {
        held = if is_birth { held.saturating_add(size) } else { held.saturating_sub(size) };
        most = most.max(held);
    }
    Bytes(most)
}

fn birth_round(cx: &Context<'_>, id: AllocId) -> usize {
    cx.lifetimes.birth(id).map_or(0, |at| cx.rounds.of_event(at))
}

/// Whether a block was allocated in one of the steps that count: not in the first, nor in the one in flight.
fn is_of_loop(cx: &Context<'_>, id: AllocId) -> bool {
    let last_whole = cx.rounds.n_steps().min(cx.rounds.count().saturating_sub(IN_FLIGHT));
    (1..last_whole).contains(&birth_round(cx, id))
}

/// Whether a block was held beyond the step after its own. Of what is gone at an unknown time nobody knows that it was not.
fn is_held_long(cx: &Context<'_>, id: AllocId) -> bool {
    let end = match cx.lifetimes.death(id) {
        Death::At(at) => cx.rounds.of_event(at),
        Death::Alive => cx.rounds.count(),
        Death::Unrecorded => return true,
    };
    end.saturating_sub(birth_round(cx, id)) > 1
}
