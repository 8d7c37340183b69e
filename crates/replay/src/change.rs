//! What became of the blocks of one process between two of its snapshots.

use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_model::{
    Action, BlockState, Bytes, Device, EventIdx, PoolId, PoolKind, StackId, TimeUs, overlap,
};

/// An allocated block of a snapshot. A block whose free was requested is not one, whatever its events wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Where it starts.
    pub addr: u64,
    /// Its bytes, after rounding.
    pub size: Bytes,
    /// The kind of pool that it lies in.
    pub kind: PoolKind,
    /// The pool that it lies in.
    pub pool: PoolId,
    /// Where it was allocated. Blocks are written with an empty list both when the thread had no Python frame and
    /// when nothing was recorded; here only the former is [`StackId::EMPTY`], the latter [`StackId::ABSENT`].
    pub stack: StackId,
    /// Whether there is a trace and it begins after the block was allocated.
    pub older_than_trace: bool,
}

/// What became of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Held only in the later snapshot.
    Born,
    /// Held only in the earlier one.
    Died,
    /// Held in both, and in between.
    Persisted,
}

/// How far the later trace tells what happened in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// It holds every event since the earlier snapshot.
    Whole,
    /// It holds some of them: its beginning was lost, or recording began later.
    Part,
    /// There is none.
    Nothing,
}

/// What became of every block of a device.
#[derive(Clone, Debug)]
pub struct Changes {
    /// The blocks of the earlier snapshot, then those born since, each by address.
    pub blocks: Vec<(Held, Fate)>,
    /// How sure it is that those that persisted are the same ones.
    pub coverage: Coverage,
}

/// The allocated blocks of a device by address.
pub fn held(device: &Device) -> Vec<Held> {
    let blocks = || {
        let all = device.segments.iter().flat_map(|s| s.blocks.iter().map(move |b| (s, b)));
        all.filter(|(_, b)| b.state == BlockState::Allocated)
    };
    let addrs: FxHashSet<u64> = blocks().map(|(_, b)| b.addr).collect();
    // The stack of the last allocation at each address.
    let mut allocs: FxHashMap<u64, StackId> = FxHashMap::default();
    let columns = device.events.actions().iter().zip(device.events.addrs()).zip(device.events.stacks());
    for ((&action, &addr), &stack) in columns {
        if action == Action::Alloc && addrs.contains(&addr) {
            allocs.insert(addr, stack);
        }
    }
    blocks()
        .map(|(segment, block)| {
            let in_trace = allocs.get(&block.addr).copied();
            let stack =
                if block.stack.has_frames() { block.stack } else { in_trace.unwrap_or(StackId::ABSENT) };
            Held {
                addr: block.addr,
                size: block.size,
                kind: segment.kind,
                pool: segment.pool,
                stack,
                older_than_trace: in_trace.is_none() && !device.events.is_empty(),
            }
        })
        .collect()
}

/// Compares a device in two snapshots of one process. A device that was not there is an empty one.
pub fn changes(before: &Device, after: &Device) -> Changes {
    let (since, coverage) = in_between(before, after);
    let then = held(before);
    let now = held(after);
    let mut by_addr: FxHashMap<u64, Held> = now.iter().map(|h| (h.addr, *h)).collect();

    // Blocks of the earlier snapshot that the later trace frees or hands out anew.
    let candidates: FxHashSet<u64> = then.iter().map(|h| h.addr).collect();
    let events = &after.events;
    let recent = events.actions().iter().zip(events.addrs()).skip(since.index());
    let touched: FxHashSet<u64> = recent
        .filter(|&(action, addr)| {
            matches!(action, Action::Alloc | Action::FreeRequested | Action::FreeCompleted)
                && candidates.contains(addr)
        })
        .map(|(_, &addr)| addr)
        .collect();

    let mut blocks = Vec::with_capacity(then.len() + now.len());
    for old in then {
        let same = by_addr.get(&old.addr).copied().filter(|new| {
            new.size == old.size
                && !touched.contains(&old.addr)
                && (coverage == Coverage::Whole || may_be_one(old.stack, new.stack))
        });
        match same {
            Some(new) => {
                by_addr.remove(&old.addr);
                blocks.push((better_known(old, new, !before.events.is_empty()), Fate::Persisted));
            }
            None => blocks.push((old, Fate::Died)),
        }
    }
    // In the order of addresses, not of the table.
    blocks.extend(now.into_iter().filter(|h| by_addr.contains_key(&h.addr)).map(|h| (h, Fate::Born)));
    Changes { blocks, coverage }
}

/// The first event of the later trace that came after the earlier snapshot, and how far that trace goes back.
fn in_between(before: &Device, after: &Device) -> (EventIdx, Coverage) {
    if after.events.is_empty() {
        return (EventIdx(0), Coverage::Nothing);
    }
    if let Some(shared) = overlap(&before.events, &after.events) {
        return (EventIdx(shared as u32), Coverage::Whole);
    }
    // Part of it was lost in between; what is there still tells of what happened since.
    let since = before.events.time_span().map(|(_, last)| TimeUs(last.0.saturating_add(1)));
    (since.map_or(EventIdx(0), |time| after.events.at_or_after(time)), Coverage::Part)
}

/// Blocks of which nothing is known but address and size are taken for one unless their stacks speak against it.
fn may_be_one(a: StackId, b: StackId) -> bool {
    a == b || a == StackId::ABSENT || b == StackId::ABSENT
}

/// Of two descriptions of one block the one that says more of where it was allocated.
fn better_known(old: Held, new: Held, was_traced: bool) -> Held {
    if new.stack == StackId::ABSENT && (old.stack != StackId::ABSENT || was_traced) { old } else { new }
}

#[cfg(test)]
mod tests {
    use vramscope_model::{Snapshot, Symbols, script};

    use super::*;

    /// Names of blocks by fate, where a name is the block's number in the script.
    fn check(before: &str, after: &str, want: &[(u64, Fate)], coverage: Coverage) {
        let mut symbols = Symbols::default();
        let mut device = |text: &str| -> Device {
            let Snapshot { mut devices, .. } = script::snapshot(&mut symbols, text).unwrap();
            devices.remove(0)
        };
        let (before, after) = (device(before), device(after));
        let changes = changes(&before, &after);
        let got: Vec<(u64, Fate)> =
            changes.blocks.iter().map(|&(h, fate)| ((h.addr & 0xffff_ffff) / 512, fate)).collect();
        assert_eq!(got, want);
        assert_eq!(changes.coverage, coverage);
    }

    const BEFORE: &str = "alloc a 512 @t.py:1:f\nalloc b 512 @t.py:1:f\nalloc c 512 @t.py:2:f";

    #[test]
    fn blocks_are_born_die_and_persist() {
        let after = format!("{BEFORE}\nfree b\nalloc d 512 @t.py:3:f\nalloc e 512\nfree e");
        check(
            BEFORE,
            &after,
            &[(0, Fate::Persisted), (1, Fate::Died), (2, Fate::Persisted), (3, Fate::Born)],
            Coverage::Whole,
        );
        check(BEFORE, BEFORE, &[0, 1, 2].map(|i| (i, Fate::Persisted)), Coverage::Whole);
    }

    #[test]
    fn a_block_freed_and_handed_out_again_is_another_one() {
        let mut symbols = Symbols::default();
        let before = script::snapshot(&mut symbols, BEFORE).unwrap().devices.remove(0);
        let mut after =
            script::snapshot(&mut symbols, &format!("{BEFORE}\nfree a")).unwrap().devices.remove(0);
        let mut again = after.events.get(0);
        again.time.0 += 1_000_000;
        after.events.push(again);
        after.segments[0].blocks[0].state = BlockState::Allocated;
        let fates: Vec<Fate> = changes(&before, &after).blocks.iter().map(|b| b.1).collect();
        assert_eq!(fates, [Fate::Died, Fate::Persisted, Fate::Persisted, Fate::Born]);
    }

    #[test]
    fn without_a_trace_address_size_and_stack_decide() {
        let states = |a: &str, b: &str| format!("old a 512 @t.py:{a}:f\nold b 512 @t.py:{b}:f");
        check(
            &states("1", "2"),
            &states("1", "3"),
            &[(0, Fate::Persisted), (1, Fate::Died), (1, Fate::Born)],
            Coverage::Nothing,
        );
        check(
            "old a 512\nold b 512",
            "old a 512\nold b 1KiB",
            &[(0, Fate::Persisted), (1, Fate::Died), (1, Fate::Born)],
            Coverage::Nothing,
        );
    }

    #[test]
    fn what_is_left_of_a_trace_still_counts() {
        // The later trace begins after the earlier one ended; b was freed and handed out anew in what is left.
        let mut symbols = Symbols::default();
        let before = script::snapshot(&mut symbols, BEFORE).unwrap().devices.remove(0);
        let text = "old a 512 @t.py:1:f\nold b 512 @t.py:1:f\nold c 512 @t.py:2:f\nfree b";
        let mut after = script::snapshot(&mut symbols, text).unwrap().devices.remove(0);
        for i in 0..after.events.len() {
            let mut event = after.events.get(i);
            event.time.0 += 1_000_000;
            after.events.set(i, event);
        }
        after.segments[0].blocks[1].state = BlockState::Allocated;
        let changes = changes(&before, &after);
        assert_eq!(changes.coverage, Coverage::Part);
        let fates: Vec<Fate> = changes.blocks.iter().map(|b| b.1).collect();
        assert_eq!(fates, [Fate::Persisted, Fate::Died, Fate::Persisted, Fate::Born]);
    }

    #[test]
    fn an_empty_stack_of_a_block_means_what_the_trace_says_of_it() {
        let mut symbols = Symbols::default();
        let text = "old a 512\nalloc b 512\nalloc c 512 @t.py:1:f\nalloc d 512\nrequest d";
        let device = script::snapshot(&mut symbols, text).unwrap().devices.remove(0);
        let blocks = held(&device);
        assert_eq!(blocks.len(), 3, "a pending block is not held");
        assert_eq!((blocks[0].stack, blocks[0].older_than_trace), (StackId::ABSENT, true));
        assert_eq!((blocks[1].stack, blocks[1].older_than_trace), (StackId::EMPTY, false));
        assert!(blocks[2].stack.has_frames());
    }
}
