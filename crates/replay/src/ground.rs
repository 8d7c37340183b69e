//! The memory that the allocator has from the driver, stretch by stretch, and which requests each serves.
//!
//! A stretch is a segment, or a mapped range of an expandable one. Events tell when each came and went, but not always
//! what it serves: the pool is recorded since torch 2.12 only, the kind never. The states tell both, so the trace is
//! followed backwards from the last of them, and what a stretch is known to serve is kept for the event that obtained it.
//!
//! Contradictions in damaged files (memory obtained twice, given back without having been there) are passed over.
//!
//! Source: the allocator reference, §10.4 (pools), §12.3 (events), §13 (the state at the first event).

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use vramscope_model::{Action, DeviceRecording, Event, State};

use crate::domain::{Domain, domain_of};

/// A segment, or a mapped range of an expandable one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Where it starts.
    pub start: u64,
    /// The address just behind it.
    pub end: u64,
    /// Which requests it serves.
    pub domain: Domain,
    /// Whether it can grow and shrink in place.
    pub expandable: bool,
}

impl Stretch {
    /// Its bytes.
    pub fn size(&self) -> u64 {
        self.end - self.start
    }
}

/// The stretches at one moment, by address. They never overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ground(BTreeMap<u64, Stretch>);

impl Ground {
    pub(crate) fn stretches(&self) -> impl ExactSizeIterator<Item = &Stretch> {
        self.0.values()
    }

    #[cfg(test)]
    pub(crate) fn insert(&mut self, stretch: Stretch) {
        assert!(self.add(stretch));
    }

    /// The stretch that an address lies in.
    pub(crate) fn at(&self, addr: u64) -> Option<&Stretch> {
        self.0.range(..=addr).next_back().map(|(_, s)| s).filter(|s| addr < s.end)
    }

    /// Takes a stretch in, unless there is something already. It grows together with expandable neighbours that serve the
    /// same requests.
    fn add(&mut self, mut new: Stretch) -> bool {
        let before = self.0.range(..=new.start).next_back().map(|(_, s)| *s);
        let after = self.0.range(new.start..).next().map(|(_, s)| *s);
        if new.start >= new.end
            || before.is_some_and(|s| s.end > new.start)
            || after.is_some_and(|s| s.start < new.end)
        {
            return false;
        }
        let joins = |s: &Stretch| new.expandable && s.expandable && s.domain == new.domain;
        if let Some(s) = before.filter(|s| s.end == new.start && joins(s)) {
            new.start = s.start;
        }
        if let Some(s) = after.filter(|s| s.start == new.end && joins(s)) {
            self.0.remove(&s.start);
            new.end = s.end;
        }
        self.0.insert(new.start, new);
        true
    }

    /// Takes out the segment that starts at an address.
    pub(crate) fn remove(&mut self, start: u64) -> Option<Stretch> {
        self.0.remove(&start)
    }

    /// Takes a range out of the stretch that holds all of it. What is left on its sides stays.
    pub(crate) fn cut(&mut self, start: u64, end: u64) -> Option<Stretch> {
        let whole = *self.at(start).filter(|s| end <= s.end && start < end)?;
        self.0.remove(&whole.start);
        if whole.start < start {
            self.0.insert(whole.start, Stretch { end: start, expandable: true, ..whole });
        }
        if end < whole.end {
            self.0.insert(end, Stretch { start: end, expandable: true, ..whole });
        }
        Some(Stretch { start, end, expandable: true, ..whole })
    }

    /// What a range that is mapped next to another one serves: the same, on the same stream.
    fn neighbour(&self, start: u64, end: u64, domain: Domain) -> Option<Domain> {
        let before = self.0.range(..start).next_back().map(|(_, s)| s).filter(|s| s.end == start);
        let after = self.0.get(&end);
        let fits = |s: &&Stretch| s.expandable && s.domain.stream == domain.stream;
        before.filter(fits).or(after.filter(fits)).map(|s| s.domain)
    }

    /// Follows an event that obtains memory or gives it back. Returns how many bytes came or went.
    pub(crate) fn apply(&mut self, event: &Event, domain: Domain) -> Option<u64> {
        let (start, end) = (event.addr, event.addr.saturating_add(event.size.0));
        match event.action {
            Action::SegmentAlloc | Action::SegmentMap => {
                let expandable = event.action == Action::SegmentMap;
                self.add(Stretch { start, end, domain, expandable }).then_some(end - start)
            }
            Action::SegmentFree => self.remove(start).map(|s| s.size()),
            Action::SegmentUnmap => self.cut(start, end).map(|s| s.size()),
            _ => None,
        }
    }

    /// Undoes such an event. Returns what the memory served that it obtained.
    fn undo(&mut self, event: &Event) -> Option<Domain> {
        let (start, end) = (event.addr, event.addr.saturating_add(event.size.0));
        let told = domain_of(event);
        match event.action {
            Action::SegmentAlloc => return self.remove(start).map(|s| s.domain),
            Action::SegmentMap => return self.cut(start, end).map(|s| s.domain),
            Action::SegmentFree => {
                self.add(Stretch { start, end, domain: told, expandable: false });
            }
            Action::SegmentUnmap => {
                let domain = self.neighbour(start, end, told).unwrap_or(told);
                self.add(Stretch { start, end, domain, expandable: true });
            }
            _ => {}
        }
        None
    }

    fn of(state: &State) -> Self {
        let mut this = Self::default();
        for s in &state.segments {
            let domain = Domain { pool: s.pool, kind: s.kind, stream: s.stream };
            let (start, end, expandable) = (s.addr, s.end(), s.expandable);
            this.add(Stretch { start, end, domain, expandable });
        }
        this
    }

    /// Lets a state tell what the stretches serve that it shows, too.
    fn learn(&mut self, state: &State) {
        for s in &state.segments {
            if let Some(known) = self.0.get_mut(&s.addr).filter(|known| known.end == s.end()) {
                known.domain = Domain { pool: s.pool, kind: s.kind, stream: s.stream };
            }
        }
    }
}

/// What the memory serves that each event obtained.
#[derive(Debug, Default)]
pub(crate) struct Purposes(FxHashMap<u32, Domain>);

impl Purposes {
    /// As far as any state shows it, else as far as the event itself tells.
    pub(crate) fn of(&self, i: usize, event: &Event) -> Domain {
        self.0.get(&(i as u32)).copied().unwrap_or_else(|| domain_of(event))
    }
}

/// The stretches that were there before the first event, and what all that the trace obtains serves.
pub(crate) fn ground_at_start(device: &DeviceRecording) -> (Ground, Purposes) {
    let n = device.events.len();
    let placed = device.states.iter().rev().find(|s| s.after.is_some());
    let anchor = placed.or_else(|| device.last_state());
    let end = anchor.and_then(|s| s.after).map_or(n, |a| a.index().min(n));
    let mut ground = anchor.map(Ground::of).unwrap_or_default();
    let mut purposes = Purposes::default();
    let mut earlier = device.states.iter().rev().filter(|s| s.after.is_some()).skip(1).peekable();
    for i in (0..=end).rev() {
        while let Some(state) = earlier.next_if(|s| s.after.is_some_and(|a| a.index() >= i)) {
            ground.learn(state);
        }
        let Some(before) = i.checked_sub(1) else { break };
        if changes_ground(device.events.actions()[before])
            && let Some(domain) = ground.undo(&device.events.get(before))
        {
            purposes.0.insert(before as u32, domain);
        }
    }
    (ground, purposes)
}

/// Whether an event obtains memory from the driver or gives it back.
pub(crate) fn changes_ground(action: Action) -> bool {
    matches!(action, Action::SegmentAlloc | Action::SegmentFree | Action::SegmentMap | Action::SegmentUnmap)
}

#[cfg(test)]
mod tests {
    use vramscope_model::{PoolId, PoolKind, StreamId};

    use super::*;

    const DOMAIN: Domain = Domain { pool: PoolId(0), kind: PoolKind::Large, stream: StreamId(0) };

    fn stretch(start: u64, end: u64, expandable: bool) -> Stretch {
        Stretch { start, end, domain: DOMAIN, expandable }
    }

    fn check(ground: &Ground, want: &[(u64, u64)]) {
        let found: Vec<(u64, u64)> = ground.stretches().map(|s| (s.start, s.end)).collect();
        assert_eq!(found, want);
    }

    #[test]
    fn expandable_neighbours_grow_together_and_are_cut_apart() {
        let mut ground = Ground::default();
        assert!(ground.add(stretch(0, 20, true)));
        assert!(ground.add(stretch(40, 60, true)));
        check(&ground, &[(0, 20), (40, 60)]);
        assert!(ground.add(stretch(20, 40, true)));
        check(&ground, &[(0, 60)]);
        assert!(ground.add(stretch(60, 80, false)));
        check(&ground, &[(0, 60), (60, 80)]);
        assert_eq!(ground.cut(20, 40).map(|s| s.size()), Some(20));
        check(&ground, &[(0, 20), (40, 60), (60, 80)]);
        let other = Domain { stream: StreamId(1), ..DOMAIN };
        assert!(ground.add(Stretch { domain: other, ..stretch(20, 40, true) }));
        check(&ground, &[(0, 20), (20, 40), (40, 60), (60, 80)]);
        assert_eq!(ground.at(39).map(|s| s.domain), Some(other));
        assert_eq!(ground.at(80), None);
    }

    #[test]
    fn contradictions_are_passed_over() {
        let mut ground = Ground::default();
        assert!(ground.add(stretch(10, 20, false)));
        assert!(!ground.add(stretch(0, 11, false)));
        assert!(!ground.add(stretch(19, 30, false)));
        assert!(!ground.add(stretch(0, 100, true)));
        assert!(!ground.add(stretch(12, 15, true)));
        assert!(!ground.add(stretch(5, 5, true)));
        assert_eq!(ground.remove(11), None);
        assert_eq!(ground.cut(15, 25), None);
        assert_eq!(ground.cut(u64::MAX, u64::MAX), None);
        check(&ground, &[(10, 20)]);
    }
}
