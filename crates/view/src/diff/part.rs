//! One pair of snapshots.

use vramscope_model::{BlockState, Bytes, Device, Segment, Symbols};
use vramscope_replay::change::{Changes, Coverage, Fate, Held, changes, held};

use super::groups::{self, Grouping};
use super::pairing::Pairing;
use super::relate::has_stacks;
use super::{DeviceDiff, DiffInput, DiffPart, Matching};

/// A device in both snapshots; in one of them it may hold nothing.
struct DevicePair<'a> {
    ordinal: u32,
    before: Option<&'a Device>,
    after: Option<&'a Device>,
}

/// Compares two snapshots.
pub(super) fn compare(
    before: &DiffInput<'_>,
    after: &DiffInput<'_>,
    matching: Matching,
    symbols: &Symbols,
    caveats: &mut Vec<String>,
) -> DiffPart {
    let pairs = pair_devices(before, after, matching, caveats);
    let nothing = Device::default();
    let all: Vec<(DevicePair<'_>, Changes)> = pairs
        .into_iter()
        .map(|pair| {
            let (a, b) = (pair.before.unwrap_or(&nothing), pair.after.unwrap_or(&nothing));
            let changes = match matching {
                Matching::SameProcess => changes(a, b),
                Matching::ByStack | Matching::BySize => apart(a, b),
            };
            (pair, changes)
        })
        .collect();

    if matching == Matching::SameProcess {
        caveats.extend(coverage_caveat(before, after, &all));
    }
    let grouping = match matching {
        Matching::BySize => Grouping::Sizes,
        Matching::SameProcess if !has_stacks(before.snapshot) && !has_stacks(after.snapshot) => {
            Grouping::Sizes
        }
        Matching::SameProcess => Grouping::Sites(Pairing::identity()),
        Matching::ByStack => {
            let blocks = all.iter().flat_map(|(_, changes)| &changes.blocks);
            let pairing = Pairing::between_runs(blocks, symbols);
            caveats.extend(pairing.caveats((before.path, after.path), symbols));
            Grouping::Sites(pairing)
        }
    };
    let devices = all
        .iter()
        .map(|(pair, changes)| compare_device(pair, changes, &grouping, matching, symbols))
        .collect();
    DiffPart { before: before.path.to_owned(), after: after.path.to_owned(), devices }
}

/// Blocks of different runs are never the same ones.
fn apart(before: &Device, after: &Device) -> Changes {
    let mut blocks: Vec<(Held, Fate)> = held(before).into_iter().map(|h| (h, Fate::Died)).collect();
    blocks.extend(held(after).into_iter().map(|h| (h, Fate::Born)));
    Changes { blocks, coverage: Coverage::Nothing }
}

fn compare_device(
    pair: &DevicePair<'_>,
    changes: &Changes,
    grouping: &Grouping,
    matching: Matching,
    symbols: &Symbols,
) -> DeviceDiff {
    let sum = |device: Option<&Device>, of: &dyn Fn(&Segment) -> Bytes| {
        device.map_or(Bytes::ZERO, |d| d.segments.iter().map(of).sum()).0
    };
    let both = |of: &dyn Fn(&Segment) -> Bytes| (sum(pair.before, of), sum(pair.after, of));
    let same_process = matching == Matching::SameProcess;
    let fate = |wanted: Fate| {
        let blocks = changes.blocks.iter().filter(|(_, fate)| *fate == wanted);
        same_process.then(|| blocks.map(|(h, _)| h.size).sum::<Bytes>().0)
    };
    DeviceDiff {
        device: pair.ordinal,
        reserved: both(&|s| s.size),
        allocated: both(&|s| s.bytes_in(BlockState::Allocated)),
        born: fate(Fate::Born),
        died: fate(Fate::Died),
        persisted: fate(Fate::Persisted),
        groups: groups::group(&changes.blocks, grouping, same_process, symbols),
    }
}

/// Devices of the same number; where two runs used one device each, those two.
fn pair_devices<'a>(
    before: &DiffInput<'a>,
    after: &DiffInput<'a>,
    matching: Matching,
    caveats: &mut Vec<String>,
) -> Vec<DevicePair<'a>> {
    let (a, b) = (with_memory(before), with_memory(after));
    if let ([a], [b]) = (a.as_slice(), b.as_slice())
        && matching != Matching::SameProcess
        && a.ordinal != b.ordinal
    {
        caveats.push(format!(
            "device {} of {} is compared with device {} of {}: each is the only one in its file",
            a.ordinal, before.path, b.ordinal, after.path
        ));
        return vec![DevicePair { ordinal: b.ordinal, before: Some(a), after: Some(b) }];
    }
    let mut ordinals: Vec<u32> = a.iter().chain(&b).map(|d| d.ordinal).collect();
    ordinals.sort_unstable();
    ordinals.dedup();
    let find = |devices: &[&'a Device], ordinal: u32| devices.iter().find(|d| d.ordinal == ordinal).copied();
    let pairs: Vec<DevicePair<'a>> = ordinals
        .into_iter()
        .map(|ordinal| DevicePair { ordinal, before: find(&a, ordinal), after: find(&b, ordinal) })
        .collect();
    for pair in &pairs {
        let missing = match (pair.before, pair.after) {
            (None, _) => before.path,
            (_, None) => after.path,
            _ => continue,
        };
        caveats.push(format!("device {} holds no memory in {missing}", pair.ordinal));
    }
    pairs
}

/// A device that another one merely looked at has a trace of its snapshots but no memory.
fn with_memory<'a>(input: &DiffInput<'a>) -> Vec<&'a Device> {
    input.snapshot.devices.iter().filter(|d| !d.segments.is_empty()).collect()
}

fn coverage_caveat(
    before: &DiffInput<'_>,
    after: &DiffInput<'_>,
    all: &[(DevicePair<'_>, Changes)],
) -> Option<String> {
    let uncertain = |coverage: Coverage| {
        let changes = all.iter().map(|(_, changes)| changes).filter(|c| c.coverage == coverage);
        changes.flat_map(|c| &c.blocks).any(|(_, fate)| *fate == Fate::Persisted)
    };
    let seen = if uncertain(Coverage::Part) {
        format!("the trace of {} does not reach back to {}", after.path, before.path)
    } else if uncertain(Coverage::Nothing) {
        format!("{} has no trace", after.path)
    } else {
        return None;
    };
    Some(format!(
        "{seen}, so blocks at the same address with the same size (and stack, where known) count as held throughout;          some may have been freed and allocated again"
    ))
}
