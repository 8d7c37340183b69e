//! What concerns the file as a whole: how it was read, its stacks, its marks.

use super::{Check, FileSubject, Health, InspectInput, Outcome, into_check};
use crate::quantity::{count, percent};

/// How reading went: each warning once.
pub(super) fn reading(input: &InspectInput<'_>) -> Vec<Check> {
    const NAME: &str = "reading";
    if input.warnings.is_empty() && !input.snapshot.truncated {
        return vec![into_check(NAME, Outcome::good("the file was read to its end"))];
    }
    let cut_off = "what came after is missing: the newest events, or what was held";
    let others = "conclusions rest on the rest of the file";
    let mut checks: Vec<Check> = input
        .warnings
        .iter()
        .map(|warning| {
            into_check(
                NAME,
                Outcome::limited(warning, if input.snapshot.truncated { cut_off } else { others }),
            )
        })
        .collect();
    if checks.is_empty() {
        checks.push(into_check(NAME, Outcome::limited("the file ends before its data does", cut_off)));
    }
    checks
}

pub(super) fn stacks_of_allocations(s: &FileSubject<'_>) -> Option<Outcome> {
    let [with, empty, absent] = s.stacks.allocs;
    let all = with + empty + absent;
    if all == 0 {
        return None;
    }
    let of_all = count(all, "allocation");
    Some(if with + empty == 0 {
        let held = if s.stacks.blocks[0] > 0 {
            "held blocks are placed by the stacks of their own, but what was freed is not placed at all"
        } else {
            "memory is grouped by size instead of by place"
        };
        Outcome::limited(
            format!("none on {of_all}: recorded with `context=None` or `\"state\"`"),
            format!("{held}; record with `context=\"all\"`"),
        )
    } else if absent > 0 {
        Outcome::limited(
            format!("missing on {absent} of {of_all}, {}", percent(absent, all)),
            "where those allocated is not known; recording may have been switched on in between",
        )
    } else if empty > 0 {
        Outcome::limited(
            format!("empty on {empty} of {of_all}, {}", percent(empty, all)),
            "only Python frames were recorded, and autograd's backward threads have none; record with \
             `stacks=\"all\"` to see which node of the graph allocates",
        )
    } else {
        Outcome::good(format!("on every one of {of_all}"))
    })
}

pub(super) fn stacks_of_blocks(s: &FileSubject<'_>) -> Option<Outcome> {
    let [with, without] = s.stacks.blocks;
    let all = with + without;
    if all == 0 {
        return None;
    }
    let of_all = count(all, "held block");
    if without == 0 {
        return Some(Outcome::good(format!("on every one of {of_all}")));
    }
    // A file without any stack says so already, and so do blocks older than the trace.
    if with + s.stacks.allocs[0] == 0 || without == s.older_blocks {
        return None;
    }
    let seen = format!("on {with} of {of_all}");
    Some(if s.stacks.allocs[0] > 0 {
        Outcome::note(
            seen,
            "blocks write the same empty list where there was no Python frame and where nothing was recorded; the \
             trace tells which, as far as it goes back",
        )
    } else {
        Outcome::limited(
            seen,
            "the others were allocated while nothing was recorded, or by threads without Python frames; without a \
             trace the two cannot be told apart",
        )
    })
}

pub(super) fn kinds_of_frames(s: &FileSubject<'_>) -> Option<Outcome> {
    let [user, library, generated, native] = s.stacks.frames_by_origin;
    if s.stacks.frames == 0 {
        return None;
    }
    let kinds = match (user + library + generated > 0, native > 0) {
        (true, true) => "Python and C++",
        (false, true) => "C++ only",
        (_, false) => "Python only",
    };
    let mut parts = vec![format!("{user} of user code"), format!("{library} of libraries")];
    if generated > 0 {
        parts.push(format!("{generated} of generated code"));
    }
    if native > 0 {
        parts.push(format!("{native} native"));
    }
    let seen = format!("{kinds}: {} distinct, {}", s.stacks.frames, parts.join(", "));
    Some(if user == 0 {
        Outcome::limited(
            seen,
            "no frame is of user code, so places are named by library or C++ functions; a program that is installed \
             as a package counts as a library",
        )
    } else {
        Outcome::good(seen)
    })
}

pub(super) fn marks(s: &FileSubject<'_>) -> Option<Outcome> {
    let marks = s.marks;
    if marks.marks == 0 {
        if s.events < 2 || !s.input.snapshot.features.annotations {
            return None;
        }
        return Some(Outcome {
            health: Health::NotApplicable,
            seen: "none".to_owned(),
            meaning:
                "steps are inferred from what recurs in the trace; `record_function`, the profiler and, with \
                      `global_record_annotations=True`, optimizers leave marks"
                    .to_owned(),
        });
    }
    let seen = format!("{} of {}", count(marks.marks, "mark"), count(marks.names, "name"));
    let open = match marks.unclosed {
        0 => String::new(),
        1 => "; 1 region was open when the snapshot was taken".to_owned(),
        n => format!("; {n} regions were open when the snapshot was taken"),
    };
    Some(if marks.crossing > 0 {
        Outcome::limited(
            format!("{seen}; {} ended while a later one was open{open}", count(marks.crossing, "region")),
            "they are of several threads; figures of a region include what other threads did meanwhile",
        )
    } else if marks.unopened > 0 {
        Outcome::limited(
            format!("{seen}; {} ended without having begun{open}", count(marks.unopened, "region")),
            "recording began inside them, or their beginning was overwritten; what happened in them is known in part",
        )
    } else {
        Outcome::good(format!("{seen}, in turn{open}"))
    })
}

pub(super) fn threads(s: &FileSubject<'_>) -> Option<Outcome> {
    (s.events > 1).then(|| {
        Outcome::not_applicable(
            "events do not say which thread made them",
            "what several threads did at the same time cannot be told apart, except by stack and stream",
        )
    })
}
