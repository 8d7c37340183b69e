//! Which segments and blocks there were at any moment of a recording, where, and what was free between them.
//!
//! The trace alone does not tell: it has neither the sizes of blocks nor what was there when it begins. Segments are
//! followed backwards from the last state ([`crate::ground`]), blocks come from their [`Lifetimes`]. With full history the
//! result is exact: at the moment of each snapshot it equals the snapshot.
//!
//! Source: the allocator reference, §5.3 (free neighbours are always merged), §12.3 (events), §13.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use vramscope_model::{Action, Bytes, DeviceRecording, EventIdx};

use crate::ground::{Ground, Purposes, Stretch, changes_ground, ground_at_start};
use crate::lifetimes::{AllocId, Death, Lifetimes, NO_ALLOC, Wait};

/// A block that is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Where it starts.
    pub addr: u64,
    /// Its bytes.
    pub size: Bytes,
    /// The stay it belongs to; none where it was given back before the recording and waits since then.
    pub id: Option<AllocId>,
    /// Whether it was given back, but another stream may still use it.
    pub pending: bool,
}

impl Placed {
    /// The address just behind it.
    pub fn end(&self) -> u64 {
        self.addr.saturating_add(self.size.0)
    }
}

/// A free block: a gap between others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where it starts.
    pub start: u64,
    /// The address just behind it.
    pub end: u64,
}

impl Gap {
    /// Its bytes.
    pub fn size(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// The segments and blocks of a device at one moment.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    pub(crate) ground: Ground,
    blocks: BTreeMap<u64, Placed>,
}

impl Layout {
    /// The layout just before an event (or at the end, for the number of events).
    pub fn at(device: &DeviceRecording, lifetimes: &Lifetimes, at: EventIdx) -> Self {
        let (mut ground, purposes) = ground_at_start(device);
        let n = at.index().min(device.events.len());
        for i in 0..n {
            follow_ground(&mut ground, device, &purposes, i);
        }
        Self { ground, blocks: blocks_at(lifetimes, at) }
    }

    /// Calls `visit` with the layout just before each of some events, which must be sorted. All moments together take one
    /// pass over the trace.
    pub fn visit(
        device: &DeviceRecording,
        lifetimes: &Lifetimes,
        moments: &[EventIdx],
        mut visit: impl FnMut(EventIdx, &Self),
    ) {
        let Some(&first) = moments.first() else { return };
        let (mut ground, purposes) = ground_at_start(device);
        let n = device.events.len();
        let begin = first.index().min(n);
        for i in 0..begin {
            follow_ground(&mut ground, device, &purposes, i);
        }
        let mut this = Self { ground, blocks: blocks_at(lifetimes, first) };
        let waits: FxHashMap<u32, Wait> = lifetimes.waits.iter().map(|&w| (w.id, w)).collect();
        let mut next = moments.iter().copied().peekable();
        for i in begin..=n {
            while let Some(at) = next.next_if(|at| at.index() <= i || i == n) {
                visit(at, &this);
            }
            if i == n || next.peek().is_none() {
                break;
            }
            follow_ground(&mut this.ground, device, &purposes, i);
            this.follow_block(device, lifetimes, &waits, i);
        }
    }

    fn follow_block(
        &mut self,
        device: &DeviceRecording,
        lifetimes: &Lifetimes,
        waits: &FxHashMap<u32, Wait>,
        i: usize,
    ) {
        let addr = device.events.addrs()[i];
        match (device.events.actions()[i], lifetimes.alloc_of(EventIdx(i as u32))) {
            (Action::Alloc, Some(id)) => {
                self.blocks.remove(&addr);
                if lifetimes.death(id) != Death::Unrecorded {
                    self.blocks.insert(addr, held(lifetimes, id));
                }
            }
            (Action::FreeRequested | Action::FreeCompleted, Some(id)) => {
                self.blocks.remove(&addr);
                if let Some(wait) = waits.get(&id.0).filter(|w| w.covers(EventIdx(i as u32 + 1))) {
                    self.blocks.insert(addr, waiting(wait));
                }
            }
            (Action::FreeCompleted, None) if self.blocks.get(&addr).is_some_and(|b| b.pending) => {
                self.blocks.remove(&addr);
            }
            _ => {}
        }
    }

    /// The segments, by address; an expandable one as its mapped ranges.
    pub fn stretches(&self) -> impl ExactSizeIterator<Item = &Stretch> {
        self.ground.stretches()
    }

    /// The segment that an address lies in.
    pub fn stretch_at(&self, addr: u64) -> Option<&Stretch> {
        self.ground.at(addr)
    }

    /// Every block that is held or waits, by address. In damaged recordings some may lie in no segment.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = &Placed> {
        self.blocks.values()
    }

    /// The blocks of a segment, by address.
    pub fn blocks_in(&self, stretch: &Stretch) -> impl DoubleEndedIterator<Item = &Placed> {
        self.blocks.range(stretch.start..stretch.end).map(|(_, b)| b)
    }

    /// The free blocks of a segment, by address.
    pub fn gaps_in(&self, stretch: &Stretch) -> impl Iterator<Item = Gap> {
        let mut start = stretch.start;
        let ends = self.blocks_in(stretch).map(|b| (b.addr, b.end())).chain([(stretch.end, stretch.end)]);
        ends.filter_map(move |(next, end)| {
            let gap = Gap { start, end: next };
            start = start.max(end);
            (gap.start < gap.end).then_some(gap)
        })
    }
}

fn follow_ground(ground: &mut Ground, device: &DeviceRecording, purposes: &Purposes, i: usize) {
    if changes_ground(device.events.actions()[i]) {
        let event = device.events.get(i);
        ground.apply(&event, purposes.of(i, &event));
    }
}

fn held(lifetimes: &Lifetimes, id: AllocId) -> Placed {
    Placed { addr: lifetimes.addr(id), size: lifetimes.size(id), id: Some(id), pending: false }
}

fn waiting(wait: &Wait) -> Placed {
    let id = (wait.id != NO_ALLOC).then_some(AllocId(wait.id));
    Placed { addr: wait.addr, size: Bytes(wait.size), id, pending: true }
}

/// The blocks that are not free just before an event. Where two overlap, which only damaged recordings have, the one that is
/// held rather than waiting, and the younger one, counts.
fn blocks_at(lifetimes: &Lifetimes, at: EventIdx) -> BTreeMap<u64, Placed> {
    let mut blocks: Vec<Placed> = lifetimes.waits.iter().filter(|w| w.covers(at)).map(waiting).collect();
    blocks.extend(lifetimes.all().filter(|&id| lifetimes.is_held_at(id, at)).map(|id| held(lifetimes, id)));
    blocks.sort_unstable_by_key(|b| b.addr);
    let mut kept: Vec<Placed> = Vec::with_capacity(blocks.len());
    for block in blocks {
        match kept.last_mut() {
            Some(last) if last.end() > block.addr => {
                if (!block.pending, block.id) > (!last.pending, last.id) {
                    *last = block;
                }
            }
            _ => kept.push(block),
        }
    }
    kept.into_iter().map(|b| (b.addr, b)).collect()
}

/// Layouts drawn as text, for tests.
#[cfg(test)]
pub(crate) mod drawing {
    use vramscope_model::{PoolId, PoolKind, StreamId};

    use super::*;
    use crate::domain::Domain;

    pub(crate) const DOMAIN: Domain =
        Domain { pool: PoolId::DEFAULT, kind: PoolKind::Large, stream: StreamId(0) };
    pub(crate) const MIB: u64 = 1 << 20;

    /// A word is a segment, `~` before it makes it expandable; a character is 1 MiB: `.` free, a letter a part of the block
    /// of that name (and number: `a` is 0).
    pub(crate) fn layout(drawing: &str) -> Layout {
        let (mut layout, mut at) = (Layout::default(), 1000 * MIB);
        for word in drawing.split_whitespace() {
            let expandable = word.starts_with('~');
            let word = word.trim_start_matches('~');
            let (start, end) = (at, at + word.len() as u64 * MIB);
            layout.ground.insert(Stretch { start, end, domain: DOMAIN, expandable });
            for name in word.bytes() {
                match layout.blocks.values_mut().next_back() {
                    _ if name == b'.' => {}
                    Some(last) if last.id == Some(AllocId(u32::from(name - b'a'))) => last.size += Bytes(MIB),
                    _ => {
                        let id = Some(AllocId(u32::from(name - b'a')));
                        layout.blocks.insert(at, Placed { addr: at, size: Bytes(MIB), id, pending: false });
                    }
                }
                at += MIB;
            }
            at = end + 1000 * MIB;
        }
        layout
    }
}

#[cfg(test)]
mod tests {
    use super::drawing::{MIB, layout};

    #[test]
    fn gaps_lie_between_blocks() {
        let check = |drawing: &str, want: &[(u64, u64)]| {
            let layout = layout(drawing);
            let mut gaps = Vec::new();
            for stretch in layout.stretches() {
                gaps.extend(
                    layout.gaps_in(stretch).map(|g| ((g.start - stretch.start) / MIB, g.size() / MIB)),
                );
            }
            assert_eq!(gaps, want, "{drawing}");
        };
        check("...", &[(0, 3)]);
        check("aab", &[]);
        check("a..b.", &[(1, 2), (4, 1)]);
        check(".a .b", &[(0, 1), (0, 1)]);
    }
}
