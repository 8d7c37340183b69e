//! The trace by itself, and against the segments.

use vramscope_replay::health::{Agreement, History, Wrap};

use super::{DeviceSubject, Outcome};
use crate::quantity::{bytes, count, percent};

#[expect(clippy::unnecessary_wraps, reason = "the type of every check")]
pub(super) fn history(s: &DeviceSubject<'_>) -> Option<Outcome> {
    const ASK: &str =
        "call `torch.cuda.memory._record_memory_history()` before the first allocation to have more";
    let events = s.health.trace.events;
    Some(match s.health.history {
        History::Trace => Outcome::good(count(events, "event")),
        History::StacksOnly => {
            let why = if !s.features.traces {
                "the format has no trace"
            } else if events == 0 {
                "recording had been stopped, or its history cleared"
            } else {
                "it was recorded with `enabled=\"state\"`"
            };
            Outcome::limited(
                format!("blocks know where they were allocated, but there is no trace of it: {why}"),
                format!("what is held can be named, but not since when, nor what was freed; {ASK}"),
            )
        }
        History::Off => Outcome::limited(
            if s.features.bare_list {
                "neither a trace nor stacks: the file is a list of segments, as `memory_snapshot()` returns it"
            } else {
                "neither a trace nor stacks: no history was recorded"
            },
            format!("only sizes can be told, and compared with another snapshot of the process; {ASK}"),
        ),
    })
}

pub(super) fn beginning(s: &DeviceSubject<'_>) -> Option<Outcome> {
    if s.health.history != History::Trace {
        return None;
    }
    if s.truncated {
        return Some(Outcome::not_applicable(
            "the file was cut off, so blocks may be missing from the trace for that reason",
            "whether the ring buffer was full is not known",
        ));
    }
    let trace = &s.health.trace;
    let freed = count(trace.frees_of_unknown, "block");
    Some(match s.health.wrap {
        Wrap::Evident => {
            let lost = s.health.agreement.unwrap_or_default().older_with_stack;
            let held = format!("{} ({})", count(lost.blocks, "held block"), bytes(lost.bytes.0));
            let freed = match trace.frees_of_unknown {
                0 => String::new(),
                _ => format!(", and so is that of {freed} freed in it"),
            };
            Outcome::limited(
                format!(
                    "{held} were allocated while recording, but their allocation is missing from the {} kept{freed}",
                    count(trace.events, "event")
                ),
                "the ring buffer overwrote its oldest events (or the history was cleared): nothing is known of what \
                 was born and freed before them; record with a larger `max_entries`, or take snapshots more often",
            )
        }
        Wrap::Suspected => Outcome::limited(
            format!("it holds {}, and frees {freed} without their allocation", count(trace.events, "event")),
            "so round or so equal a number may be the length of a full ring buffer; the file does not say; if it is, \
             older events are lost, and a larger `max_entries` keeps them",
        ),
        Wrap::NoSign => Outcome::good("nothing points to a full ring buffer; the file does not say for sure"),
    })
}

pub(super) fn older_blocks(s: &DeviceSubject<'_>) -> Option<Outcome> {
    let agreement = s.health.agreement.filter(|_| !s.truncated)?;
    let blocks = agreement.older.blocks - agreement.older_with_stack.blocks;
    let size = agreement.older.bytes.0 - agreement.older_with_stack.bytes.0;
    let all = agreement.older.bytes + agreement.same.bytes + agreement.only_in_segments.bytes;
    if blocks == 0 {
        return Some(Outcome::good("none is held"));
    }
    Some(Outcome::limited(
        format!(
            "{}, {} or {} of what is allocated, {} older than the recording",
            count(blocks, "held block"),
            bytes(size),
            percent(size, all.0),
            if blocks == 1 { "is" } else { "are" },
        ),
        "where they were allocated is not known; start recording before the model is built to see it",
    ))
}

/// So many blocks can change hands between the two locks under which trace and segments are read.
const A_FEW: u64 = 16;

pub(super) fn agreement(s: &DeviceSubject<'_>) -> Option<Outcome> {
    let agreement = s.health.agreement?;
    let trace = &s.health.trace;
    if s.truncated {
        return Some(Outcome::not_applicable("the file was cut off, so one of them is not whole", ""));
    }
    if trace.allocs > 0 && trace.frees_requested + trace.frees_completed == 0 {
        return (agreement.blocks_that_differ() == 0).then(|| agree(&agreement));
    }
    let (blocks, mapping) = (agreement.blocks_that_differ(), agreement.mapping_that_differs().0);
    if blocks == 0 && mapping == 0 {
        return Some(agree(&agreement));
    }
    let few = blocks <= A_FEW.min(agreement.same.blocks / 4 + 1);
    let seen = describe(&agreement);
    Some(if few {
        Outcome::limited(
            seen,
            "the two are read one after the other under separate locks, so in a process of several threads a few \
             differences are normal; what is held is taken from the segments",
        )
    } else {
        Outcome::bad(
            seen,
            "events are missing from the trace or the two are of different moments; what is held is taken from the \
             segments, and conclusions from lifetimes are doubtful",
        )
    })
}

fn agree(agreement: &Agreement) -> Outcome {
    if agreement.same.blocks == 0 {
        return Outcome::good("no block of the trace is held at its end, and the segments show none of them");
    }
    Outcome::good(format!(
        "{} at the trace's end, the same as in the segments, of the same requested size",
        count(agreement.same.blocks, "held block")
    ))
}

fn describe(agreement: &Agreement) -> String {
    let mut parts = vec![format!("{} the same", count(agreement.same.blocks, "held block"))];
    let mut add = |n: u64, text: &str| {
        if n > 0 {
            parts.push(format!("{n} {text}"));
        }
    };
    add(agreement.only_in_trace.blocks, "held by the trace only");
    add(agreement.only_in_segments.blocks, "held by the segments only, freed by the trace");
    add(agreement.size_differs, "of another requested size");
    add(agreement.pending_differs, "pending in one of them only");
    let mut add = |size: u64, text: &str| {
        if size > 0 {
            parts.push(format!("{} {text}", bytes(size)));
        }
    };
    add(agreement.mapped_only_in_trace.0, "reserved by the trace only");
    add(agreement.mapped_only_in_segments.0, "reserved by the segments only, given back by the trace");
    parts.join(", ")
}

pub(super) fn frees(s: &DeviceSubject<'_>) -> Option<Outcome> {
    let trace = &s.health.trace;
    if trace.allocs == 0 {
        return None;
    }
    let (requested, completed) = (trace.frees_requested, trace.frees_completed);
    let missing = s.health.agreement.map_or(0, |a| a.only_in_trace.blocks);
    let skipped = "frees were left out of the recording (`skip_actions`)";
    Some(match (requested, completed) {
        (0, 0) if missing > 0 => Outcome::limited(
            format!(
                "none, though {} in the trace {} no longer held: {skipped}",
                count(missing, "block"),
                if missing == 1 { "is" } else { "are" }
            ),
            "what is held is known from the segments, but not how long anything lived; a cache that replaces its \
             entries cannot be told from a leak by this file alone",
        ),
        (0, 0) => Outcome::good(format!("nothing was freed of {}", count(trace.allocs, "allocated block"))),
        (0, n) => Outcome::note(
            format!("{} that took effect, none as the program requested it", count(n, "free")),
            "the time between giving a block back and its being free is not known",
        ),
        (n, 0) => Outcome::note(
            format!("{} as the program requested them, none that took effect", count(n, "free")),
            "which blocks wait for another stream is known at the end only",
        ),
        (requested, completed) => {
            Outcome::good(format!("{} requested, {completed} took effect", count(requested, "free")))
        }
    })
}

pub(super) fn order(s: &DeviceSubject<'_>) -> Option<Outcome> {
    let trace = &s.health.trace;
    if trace.allocs == 0 || trace.frees_requested + trace.frees_completed == 0 {
        return None;
    }
    let faults = [
        (trace.allocs_repeated, "allocated at an address that was still held"),
        (trace.frees_repeated, "freed twice in a row"),
        (trace.sizes_differ, "freed with another size than allocated"),
    ];
    let seen: Vec<String> = faults
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, text)| format!("{} {text}", count(*n, "block")))
        .collect();
    if !seen.is_empty() {
        return Some(Outcome::bad(
            seen.join(", "),
            "events in between are missing, or those of two processes are mixed; lifetimes are doubtful",
        ));
    }
    let unknown = match trace.frees_of_unknown {
        0 => String::new(),
        n => format!("; {} freed that {} allocated before the trace", count(n, "block"), was(n)),
    };
    Some(Outcome::good(format!("in {}{unknown}", count(trace.allocs, "allocation"))))
}

fn was(n: u64) -> &'static str {
    if n == 1 { "was" } else { "were" }
}

pub(super) fn times(s: &DeviceSubject<'_>) -> Option<Outcome> {
    let (trace, times) = (&s.health.trace, &s.health.trace.times);
    if s.health.history != History::Trace {
        return None;
    }
    Some(if times.missing > 0 {
        Outcome::limited(
            format!("missing on {} of {}", times.missing, count(trace.events, "event")),
            "torch writes them since 2.2; without them, events have an order but durations and marks have no place",
        )
    } else if times.backward > 0 {
        Outcome::limited(
            format!(
                "{} earlier than the one before, by up to {} µs",
                count(times.backward, "event"),
                times.max_backward_us
            ),
            "threads read their clocks at slightly different moments; the order in the file is the allocator's own \
             and is the one used",
        )
    } else {
        Outcome::good(format!(
            "on every event, never going back; {} share their microsecond with the one before",
            percent(times.equal, trace.events)
        ))
    })
}

pub(super) fn failed_requests(s: &DeviceSubject<'_>) -> Option<Outcome> {
    let ooms = s.health.trace.ooms;
    (ooms > 0).then(|| {
        Outcome::note(
            count(ooms, "request") + " failed for lack of memory",
            "the allocator gives its free segments back before it fails, so what is reserved around that moment is \
             lower than in normal running; `vramscope analyze` tells what held the memory",
        )
    })
}
