//! Says where the run would run out of memory on a device that the user told of.

use std::sync::Arc;

use vramscope_model::{Action, BlockState, Bytes, EventIdx, StackId};
use vramscope_replay::allocator::OutOfMemory;
use vramscope_replay::{levels, levels_at};

use crate::finding::{Finding, Kind};
use crate::names::{apart, given};
use crate::rerun::Rerun;
use crate::shortfall::{Shortfall, holders_at, sentences};
use crate::tried::TriedSettings;
use crate::{Context, Detector, advice, settings_in_words};

pub(crate) const DETECTOR: Detector = Detector {
    code: "over-capacity",
    summary: "the run would need more memory than the device has that `--capacity` tells of",
    finds: &[Kind::Oom, Kind::Note],
    doc: "\
## What it finds
With `--capacity SIZE`: whether the recorded run would run out of memory on a device that has SIZE for it, and at which request.

## Why it matters
It answers “does it fit 24 GiB?” before the job is started there. If it does not, the verdict is `oom` (or what fills the memory: a leak, fragmentation), and the exit status 1.

## How it decides
If the recording never reserved more, it fits. Else the recording is replayed with that much memory: before the allocator gives up it gives back what is unused, so a run
may fit that reserved more where there was more. If it does, a note says how often unused memory would have to go back. If it does not, the request that would fail is
explained: by the recorded layout of memory where all was as recorded until then, else by what the replay knows. Where the replay is too far from the recording, only what the program
held at once tells: more than the device has cannot fit. What a run that ended for lack of memory would have needed after that is not known.

SIZE is taken as what the process can reserve. Of a real card the CUDA context takes some hundred MiB, and other processes take theirs.

## What to do
What changes least comes first: a setting under which it fits, that many bytes less at the place that holds most. Else a smaller batch, activation checkpointing, a sharded
optimizer, or a lower precision.
",
    check,
};

/// What the recorded run would do on a device with so much memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Fit {
    /// It never needed more.
    Fits,
    /// It reserved more, but not all of that need have been.
    FitsTightly {
        /// How often unused memory would have to go back to make room; 0 if the rest was left over from before the recording.
        give_backs: u64,
        /// The most bytes that would be reserved.
        reserved: Bytes,
        /// The most bytes that would be held.
        held: Bytes,
    },
    /// It would get past the request that failed in the recording, with so many bytes reserved at most until then. What it would
    /// need after that is not known.
    GetsFurther(Bytes),
    /// It would run out.
    RunsOut(OutOfMemory),
    /// More was held at once; after which event for the first time, if not already before the recording.
    HeldMore(Option<EventIdx>),
    /// More was reserved, and whether less would have been enough is not known.
    Unknown,
}

/// Whether the recorded run would fit a device with so much memory.
pub(crate) fn fit(cx: &Context<'_>, capacity: Bytes) -> Fit {
    let is_cut_short = cx.device.events.count(Action::Oom) > 0;
    if cx.recorded_peak() <= capacity && !is_cut_short {
        return Fit::Fits;
    }
    let Some(rerun) = cx.rerun().filter(|rerun| rerun.is_reliable()) else {
        return held_more_than(cx, capacity);
    };
    let room = rerun.room(cx.device, cx.lifetimes, Some(capacity.0), None);
    let outcome = rerun.trial(&rerun.own, room).outcome;
    let first = levels_at(cx.device, cx.lifetimes, &[EventIdx(0)]).first().copied().unwrap_or_default();
    match outcome.oom {
        // Not even all that was there before the recording was served.
        Some(oom) if oom.event == EventIdx(0) && Bytes(oom.allocated) < first.allocated => {
            Fit::HeldMore(None)
        }
        Some(oom) => Fit::RunsOut(oom),
        None if is_cut_short => Fit::GetsFurther(Bytes(outcome.peak_reserved)),
        None => Fit::FitsTightly {
            give_backs: outcome.retries.saturating_add(outcome.collections),
            reserved: Bytes(outcome.peak_reserved),
            held: Bytes(outcome.peak_allocated),
        },
    }
}

/// Without a replay only what was held tells.
fn held_more_than(cx: &Context<'_>, capacity: Bytes) -> Fit {
    let first = levels_at(cx.device, cx.lifetimes, &[EventIdx(0)]).first().copied().unwrap_or_default();
    if first.allocated > capacity {
        return Fit::HeldMore(None);
    }
    let mut since = None;
    levels(cx.device, cx.lifetimes, cx.lifetimes.whole(), |event, level| {
        if since.is_none() && level.allocated > capacity {
            since = Some(event);
        }
    });
    since.map_or(Fit::Unknown, |event| Fit::HeldMore(Some(event)))
}

fn check(cx: &Context<'_>) -> Vec<Finding> {
    let (Some(capacity), Some(fit)) = (cx.capacity, cx.fit()) else { return Vec::new() };
    let found = match *fit {
        Fit::Fits => None,
        Fit::FitsTightly { give_backs, reserved, held } => {
            Some(tight(cx, capacity, give_backs, reserved, held))
        }
        Fit::GetsFurther(reserved) => Some(gets_further(cx, capacity, reserved)),
        Fit::RunsOut(ref oom) => runs_out(cx, capacity, oom),
        Fit::HeldMore(since) => Some(held_more(cx, capacity, since)),
        Fit::Unknown => Some(unknown(cx, capacity)),
    };
    found.into_iter().collect()
}

/// What all findings of this detector have in common.
fn note(cx: &Context<'_>, title: String, evidence: Vec<String>) -> Finding {
    Finding {
        code: DETECTOR.code,
        kind: Kind::Note,
        confidence: if cx.rerun().is_some_and(Rerun::is_certain) { 0.99 } else { 0.8 },
        title,
        site: None,
        stack: StackId::ABSENT,
        bytes: Bytes::ZERO,
        blocks: 0,
        block_size: None,
        bytes_per_step: None,
        blocks_per_step: None,
        steps_to_oom: None,
        first: None,
        last: None,
        evidence,
        advice: Vec::new(),
        companions: Vec::new(),
        members: Vec::new(),
        shortage: None,
        shortfall: None,
        fragmentation: None,
        settings: None,
    }
}

/// The same of a request that does not find room.
fn failure(cx: &Context<'_>, event: EventIdx, request: Bytes, finding: Finding) -> Finding {
    let found = cx.device.events.get(event.index());
    Finding {
        kind: Kind::Oom,
        site: cx.symbols.site(found.stack),
        stack: found.stack,
        bytes: request,
        blocks: 1,
        block_size: Some(request),
        first: found.time.known(),
        last: found.time.known(),
        ..finding
    }
}

fn tight(cx: &Context<'_>, capacity: Bytes, give_backs: u64, reserved: Bytes, held: Bytes) -> Finding {
    let room = given(capacity);
    let how = if give_backs == 0 {
        format!("without what was left over from before the recording, up to {reserved} are")
    } else {
        format!(
            "within {room} unused memory goes back to the driver {} to make room, and each time the device is waited for; up to {held} \
             are in use",
            settings_in_words::times(give_backs)
        )
    };
    let evidence =
        vec![format!("the recording reserved up to {}, where there was more", cx.recorded_peak()), how];
    note(cx, format!("it fits {room}, but only because unused memory need not stay reserved"), evidence)
}

fn gets_further(cx: &Context<'_>, capacity: Bytes, reserved: Bytes) -> Finding {
    let room = given(capacity);
    let evidence = vec![format!(
        "up to there {reserved} are reserved at most within {room}; what the run would have asked for after it is not known"
    )];
    note(cx, format!("{room} are enough for the request that failed"), evidence)
}

fn held(cx: &Context<'_>) -> Bytes {
    cx.whole_peak().map_or_else(
        || cx.device.last_state().map_or(Bytes::ZERO, |state| state.bytes_in(BlockState::Allocated)),
        |peak| peak.level.allocated,
    )
}

fn unknown(cx: &Context<'_>, capacity: Bytes) -> Finding {
    let room = given(capacity);
    let evidence = vec![format!(
        "up to {} were reserved and up to {} in use at once; whether less would have been enough cannot be told, as the recording \
         cannot be replayed",
        cx.recorded_peak(),
        held(cx)
    )];
    Finding { confidence: 0.5, ..note(cx, format!("it may or may not fit {room}"), evidence) }
}

fn held_more(cx: &Context<'_>, capacity: Bytes, since: Option<EventIdx>) -> Finding {
    let (held, room) = (held(cx), given(capacity));
    let title = match since {
        Some(event) => format!("with {room} memory would run out {} at the latest", cx.when(event)),
        None => format!("{room} are not enough: more was in use from the beginning"),
    };
    let evidence = vec![format!("up to {held} were in use at once")];
    let finding = Finding {
        kind: Kind::Oom,
        confidence: 0.9,
        shortage: Some(held - capacity),
        advice: vec![advice::hold_less(cx, None, None)],
        ..note(cx, title, evidence)
    };
    match since {
        Some(event) => failure(cx, event, cx.device.events.get(event.index()).size, finding),
        None => finding,
    }
}

/// Explains the request that would fail; none where it is one that failed in the recording, too.
fn runs_out(cx: &Context<'_>, capacity: Bytes, oom: &OutOfMemory) -> Option<Finding> {
    let action = cx.device.events.actions().get(oom.event.index());
    if action == Some(&Action::Oom) || oom.event >= cx.window.to {
        return None;
    }
    let as_recorded = Some(Shortfall::within(cx, oom.event, capacity)).filter(|f| is_as_replayed(f, oom));
    let no_setting_helps = as_recorded.as_ref().is_some_and(|found| found.no_setting_helps);
    let tried = cx.rerun().filter(|_| !no_setting_helps).and_then(|rerun| {
        let limits = rerun.room(cx.device, cx.lifetimes, Some(capacity.0), None);
        TriedSettings::of(rerun, limits).map(Arc::new)
    });
    let (held, request, room) = (Bytes(oom.allocated), Bytes(oom.size), given(capacity));
    let mut evidence = vec![format!(
        "the recording reserved up to {}; within {room} a request for {request} fails {}, with {held} allocated and {} \
         reserved",
        cx.recorded_peak(),
        cx.when(oom.event),
        Bytes(oom.reserved)
    )];
    let enough = if let Some(found) = &as_recorded {
        evidence.push(sentences::what_was_free(cx.symbols, found));
        evidence.extend(sentences::who_held(cx.symbols, &found.holders));
        evidence.extend(sentences::who_pins(cx.symbols, found));
        evidence.push(sentences::how_much_less(found));
        evidence.push(sentences::what_settings_can_do(found));
        found.least.map_or(Bytes::ZERO, |least| least.bytes)
    } else {
        let (free, largest) = (Bytes(oom.free), Bytes(oom.largest_free));
        evidence.push(format!("{free} were free for such requests then, at most {largest} in one piece"));
        evidence.extend(sentences::who_held(cx.symbols, &holders_at(cx, oom.event)));
        let (needed, limit) = apart(held + request, capacity);
        evidence.push(format!("what is held and the request come to {needed} of {limit}"));
        // As much as was asked for would surely have been enough.
        request
    };
    evidence.extend(tried.as_deref().and_then(settings_in_words::why_none));
    let finding = Finding {
        shortage: Some(((held + request) - capacity).max(enough)),
        advice: advice::against_lack(cx, oom.event, as_recorded.as_ref(), tried.as_deref()),
        shortfall: as_recorded.map(Box::new),
        settings: tried,
        ..note(cx, format!("with {room} memory would run out {}", cx.when(oom.event)), evidence)
    };
    Some(failure(cx, oom.event, request, finding))
}

/// Whether the recorded layout is the one in which the request fails when replayed.
fn is_as_replayed(found: &Shortfall, oom: &OutOfMemory) -> bool {
    let recorded = (found.request, found.allocated, found.reserved, found.here.free(), found.here.largest);
    let replayed = (oom.size, oom.allocated, oom.reserved, oom.free, oom.largest_free);
    (recorded.0.0, recorded.1.0, recorded.2.0, recorded.3.0, recorded.4.0) == replayed
}
