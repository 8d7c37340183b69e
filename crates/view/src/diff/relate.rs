//! Whether snapshots are of one process, and how to compare them if not.

use vramscope_model::{BlockState, Bytes, Relation, Snapshot, StackId, relation};
use vramscope_replay::change::held;

use super::{DiffInput, Matching};
use crate::quantity::bytes;

/// How the snapshots will be compared, and why.
pub(super) struct Related<'a> {
    /// In the order in which they are compared.
    pub(super) inputs: Vec<DiffInput<'a>>,
    pub(super) matching: Matching,
    pub(super) reason: String,
    pub(super) caveats: Vec<String>,
}

/// Decides how to compare.
pub(super) fn relate<'a>(inputs: &[DiffInput<'a>]) -> Related<'a> {
    let mut sorted = inputs.to_vec();
    let timed = inputs.iter().all(|i| i.snapshot.time_span().is_some());
    if timed {
        sorted.sort_by_key(|i| i.snapshot.time_span().map(|(_, last)| last));
    }
    let relations: Vec<Relation> =
        sorted.windows(2).map(|pair| relation(pair[0].snapshot, pair[1].snapshot)).collect();
    let same_process = relations.iter().all(|r| r.is_same_process());
    let mut caveats = Vec::new();
    if same_process {
        let moved = sorted.iter().zip(inputs).any(|(a, b)| !std::ptr::eq(a.snapshot, b.snapshot));
        if moved {
            caveats.push("the snapshots are of one process and were put in time order".to_owned());
        } else if !timed {
            caveats.push(
                "the files carry no times, so the snapshots are compared in the order in which they were given"
                    .to_owned(),
            );
        }
        let mut reason = if relations.contains(&Relation::SharedSegments) {
            caveats.push(
                "the traces share no events; if the files are of two runs after all, what is said to have persisted \
                 is a coincidence of addresses"
                    .to_owned(),
            );
            "segments lie at the same addresses, so the snapshots are taken to be of one process; blocks are matched \
             by address and size"
        } else {
            "the traces share events, so the snapshots are of one process; blocks are matched by address and \
             allocation"
        }
        .to_owned();
        if !inputs.iter().any(|i| has_stacks(i.snapshot)) {
            reason += "; no block has a stack, so they are grouped by size and pool";
        }
        return Related { inputs: sorted, matching: Matching::SameProcess, reason, caveats };
    }

    let why = if relations.contains(&Relation::Contradictory) {
        "the traces cover the same time but record different events, so the snapshots are of different \
         processes, such as the ranks of one job"
    } else {
        "the snapshots share neither events nor segments, so they are of different runs"
    };
    let without: Vec<&str> = inputs.iter().filter(|i| !has_stacks(i.snapshot)).map(|i| i.path).collect();
    let (matching, how) = if without.is_empty() {
        (Matching::ByStack, "blocks are matched by the stack that allocated them".to_owned())
    } else {
        let how = format!(
            "no block in {} has a stack, so blocks are matched by size and pool",
            without.join(" or ")
        );
        (Matching::BySize, how)
    };
    Related { inputs: inputs.to_vec(), matching, reason: format!("{why}; {how}"), caveats }
}

/// Whether anything is known of where blocks were allocated. A snapshot without blocks cannot lack it.
pub(super) fn has_stacks(snapshot: &Snapshot) -> bool {
    let mut allocated = snapshot
        .devices
        .iter()
        .flat_map(|d| &d.segments)
        .flat_map(|s| &s.blocks)
        .filter(|b| b.state == BlockState::Allocated)
        .peekable();
    allocated.peek().is_none()
        || allocated.any(|b| b.stack.has_frames())
        || snapshot.devices.iter().flat_map(held).any(|b| b.stack != StackId::ABSENT)
}

/// What holds of every comparison.
pub(super) fn general_caveats(inputs: &[DiffInput<'_>], matching: Matching) -> Vec<String> {
    let mut caveats = Vec::new();
    for input in inputs {
        if input.snapshot.truncated {
            caveats.push(format!(
                "{} ends before its data does, so blocks that seem to be missing there may only not have been written",
                input.path
            ));
        }
        let pending: Bytes = input
            .snapshot
            .devices
            .iter()
            .flat_map(|d| &d.segments)
            .map(|s| s.bytes_in(BlockState::PendingFree))
            .sum();
        if pending > Bytes::ZERO {
            caveats.push(format!(
                "{} in {} were given back but wait for another stream; they count as freed",
                bytes(pending.0),
                input.path
            ));
        }
    }
    if matching == Matching::SameProcess {
        caveats.push(
            "growth from one moment to another is no proof of a leak: a cache that fills, or a step in flight, looks \
             the same; `vramscope analyze` on a recording of many steps tells them apart"
                .to_owned(),
        );
    } else {
        caveats.push(
            "each run is shown as it was when its snapshot was taken; take both at the same point of the same step \
             to compare like with like"
                .to_owned(),
        );
    }
    caveats
}
