//! How much memory the allocator may have: what the user told, or what a recording gives away by what it was given and refused.

use vramscope_model::{Action, Bytes, DeviceRecording, EventIdx};
use vramscope_replay::allocator::Limits;
use vramscope_replay::allocator::config::{Config, Rules};
use vramscope_replay::{Lifetimes, Window, levels};

/// How much memory there is, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// How it is known.
    pub source: RoomSource,
    /// The share of the device's memory that the process may have, if the user told; it overrides the settings.
    pub fraction: Option<f64>,
}

/// How it is known how much memory there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomSource {
    /// It is not.
    Unknown,
    /// The user told how many bytes the device has for this process.
    Told(u64),
    /// The recording shows what could not be had.
    Recorded(Refusal),
}

/// What requests give away that failed in the recording, or were served only after all unused memory was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The last request that failed; none where all were served in the end.
    pub event: Option<EventIdx>,
    /// Whether a memory fraction was set: the driver had enough left. Otherwise it had not, or it is not known.
    pub by_fraction: bool,
    /// The process could reserve this many bytes.
    pub at_least: u64,
    /// It could not reserve this many.
    pub below: u64,
    /// That it could have reserved so many is not excluded: of a driver it is known what it had left.
    pub most: u64,
}

impl Refusal {
    /// The least that the process certainly could not have.
    pub fn least_refused(&self) -> u64 {
        self.most.saturating_add(1)
    }
}

impl Room {
    /// What is known of a device. `refused` bytes could not be reserved, so that unused memory was given back instead.
    pub fn of(
        device: &DeviceRecording,
        lifetimes: &Lifetimes,
        own: &Config,
        refused: Option<u64>,
        capacity: Option<u64>,
        fraction: Option<f64>,
    ) -> Self {
        let source = match capacity {
            Some(capacity) => RoomSource::Told(capacity),
            None if refused.is_none() && device.events.count(Action::Oom) == 0 => RoomSource::Unknown,
            None => {
                let given = Given::before(device, lifetimes, own, lifetimes.whole().to);
                given.in_all(refused).map_or(RoomSource::Unknown, RoomSource::Recorded)
            }
        };
        Self { source, fraction }
    }

    /// The limits under some settings.
    pub fn limits(&self, config: &Config, rules: Rules) -> Limits {
        match self.source {
            RoomSource::Unknown => Limits::default(),
            RoomSource::Told(capacity) => {
                let reserved = self.reserved_limit(capacity, config, rules);
                Limits { capacity: Some(capacity), reserved, total: Some(capacity) }
            }
            RoomSource::Recorded(Refusal { by_fraction: true, at_least, .. }) => {
                Limits { reserved: Some(at_least), ..Limits::default() }
            }
            RoomSource::Recorded(Refusal { at_least, .. }) => {
                Limits { capacity: Some(at_least), ..Limits::default() }
            }
        }
    }

    /// The same with as much memory as the recording does not exclude; none where that is no more.
    pub fn at_most(&self) -> Option<Self> {
        match self.source {
            RoomSource::Recorded(refusal) if refusal.most > refusal.at_least => {
                let most = Refusal { at_least: refusal.most, ..refusal };
                Some(Self { source: RoomSource::Recorded(most), ..*self })
            }
            _ => None,
        }
    }

    /// Whether the limit is only concluded from memory that was given back: no request failed.
    pub fn is_guess(&self) -> bool {
        matches!(self.source, RoomSource::Recorded(Refusal { event: None, .. }))
    }

    /// The share of the device's memory that holds under some settings; none for all of it.
    pub fn fraction(&self, config: &Config) -> Option<f64> {
        let set = config.per_process_memory_fraction;
        self.fraction.or_else(|| (set < 1.0).then_some(set))
    }

    /// That share where it is not known of how many bytes: it limits nothing in a replay.
    pub fn fraction_of_unknown(&self, config: &Config) -> Option<f64> {
        let is_unknown = match self.source {
            RoomSource::Unknown => true,
            RoomSource::Told(_) => false,
            RoomSource::Recorded(refusal) => !refusal.by_fraction,
        };
        self.fraction(config).filter(|&f| is_unknown && f < 1.0)
    }

    /// Source: the allocator reference, §9.1.
    fn reserved_limit(&self, capacity: u64, config: &Config, rules: Rules) -> Option<u64> {
        let fraction = self.fraction(config)?;
        let is_limit = fraction < 1.0 || rules.whole_fraction_is_limit;
        is_limit.then(|| rules.bytes_of_fraction(fraction, capacity))
    }
}

/// A request that failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    /// Its event.
    pub(crate) event: EventIdx,
    /// What the driver had left.
    pub(crate) free: u64,
    /// What the process had reserved, after it gave back what it could.
    pub(crate) reserved: u64,
    /// What it would have obtained.
    pub(crate) wanted: u64,
}

/// What the driver keeps for itself: it refuses requests for less than it says to have left.
const KEPT_BY_DRIVER: u64 = 8 << 20;
/// Up to so many bytes are obtained for small blocks.
const SMALL: u64 = 2 << 20;

/// What a process was given and refused in the course of a recording: all that it tells about limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// The most that was reserved at any moment: the driver had it.
    reserved: u64,
    /// The most that the process was known to be allowed to have. Whether an expandable segment may grow is judged by what the
    /// request would have obtained otherwise; what is mapped for it may be more or less than that.
    allowed: u64,
    /// Whether unused memory is given back before a limit is reached.
    collects_garbage: bool,
    /// What is mapped at once into an expandable segment; 1 where segments are no such.
    page: u64,
    failures: Vec<Failure>,
}

impl Given {
    /// What the events before one tell.
    ///
    /// Source: the allocator reference, §4.3, §6.2 and §9.
    pub(crate) fn before(
        device: &DeviceRecording,
        lifetimes: &Lifetimes,
        own: &Config,
        until: EventIdx,
    ) -> Self {
        let events = &device.events;
        let mut this = Self {
            collects_garbage: own.garbage_collection_threshold > 0.0,
            page: if own.expandable_segments { own.large_segment.max(1) } else { 1 },
            ..Self::default()
        };
        let mut before_growth = None;
        let whole = Window { from: EventIdx(0), to: until };
        levels(device, lifetimes, whole, |at, level| {
            let event = events.get(at.index());
            let Bytes(reserved) = level.reserved;
            let before = match event.action {
                Action::SegmentAlloc | Action::SegmentMap => reserved.saturating_sub(event.size.0),
                Action::SegmentFree | Action::SegmentUnmap => reserved.saturating_add(event.size.0),
                _ => reserved,
            };
            if at.0 == 0 {
                // For the last request up to a page more may have been mapped.
                let page = if own.expandable_segments { own.large_segment } else { 0 };
                this.allowed = before.saturating_sub(page);
                this.reserved = before;
            }
            this.reserved = this.reserved.max(reserved);
            match event.action {
                Action::SegmentAlloc => this.allowed = this.allowed.max(reserved),
                Action::SegmentMap => {
                    before_growth.get_or_insert(before);
                }
                Action::Alloc => {
                    if let Some(before) = before_growth.take() {
                        let wanted = own.round(event.size.0).map_or(u64::MAX, |size| obtained(size, own));
                        this.allowed = this.allowed.max(u64::saturating_add(before, wanted));
                    }
                }
                Action::Oom => {
                    before_growth = None;
                    let wanted = obtained(event.size.0, own);
                    this.failures.push(Failure { event: at, free: event.addr, reserved, wanted });
                }
                _ => {}
            }
        });
        this
    }

    /// The most that the driver was asked for. What is mapped into an expandable segment depends on what is free at its end.
    fn asked(&self, failure: &Failure) -> u64 {
        let wanted = failure.wanted;
        if wanted <= SMALL {
            wanted
        } else {
            wanted.checked_next_multiple_of(self.page.max(1)).unwrap_or(u64::MAX)
        }
    }

    /// Whether the driver refused: it had not certainly enough.
    fn by_driver(&self, failure: &Failure) -> bool {
        failure.free < self.asked(failure).saturating_add(KEPT_BY_DRIVER)
    }

    /// What would have been reserved. A fraction is compared with all of a request, not with what is mapped for it.
    fn in_vain(&self, failure: &Failure) -> u64 {
        let more = if self.by_driver(failure) { self.asked(failure) } else { failure.wanted };
        failure.reserved.saturating_add(more)
    }

    /// What one request that failed gives away, together with what was given before.
    pub(crate) fn refusal(&self, failure: Failure) -> Refusal {
        let by_fraction = !self.by_driver(&failure);
        let below = self.in_vain(&failure);
        let at_least = if by_fraction {
            // Where more was allowed before than now is refused, the limit was set in between.
            if self.allowed < below { self.allowed } else { 0 }
        } else {
            let could_have = failure.reserved.saturating_add(failure.free);
            if could_have < below { could_have } else { failure.reserved }
        };
        let most = if by_fraction { below.saturating_sub(1) } else { at_least };
        Refusal { event: Some(failure.event), by_fraction, at_least, below, most }
    }

    /// What all of it gives away, by requests that failed for the reason for which the last one did. `refused` bytes could not
    /// be had though no request failed.
    fn in_all(&self, refused: Option<u64>) -> Option<Refusal> {
        let last = self.failures.last();
        let by_fraction = last.is_some_and(|last| !self.by_driver(last));
        let alike = || self.failures.iter().filter(|one| self.by_driver(one) != by_fraction);
        // Where garbage is collected, that too gives memory back rather than obtain more.
        let refused = refused.filter(|_| last.is_none() || !self.collects_garbage);
        // How much of a page was missing is not known.
        let refused = refused.map(|bytes| bytes.saturating_add(self.page - 1));
        let below = alike().map(|failure| self.in_vain(failure)).chain(refused).min()?;
        // What the driver had left may be too little for the next page, and it keeps some.
        let at_least = if by_fraction { self.allowed } else { self.reserved };
        // Where the limit changed on the way, what was once given counts.
        let below = below.max(at_least.saturating_add(1));
        let could_have = alike().map(|f| f.reserved.saturating_add(f.free)).min().filter(|_| !by_fraction);
        let most = could_have.unwrap_or(u64::MAX).clamp(at_least, below - 1);
        Some(Refusal { event: last.map(|last| last.event), by_fraction, at_least, below, most })
    }
}

/// What is obtained from the driver for a request of so many bytes, rounded.
pub(crate) fn obtained(size: u64, config: &Config) -> u64 {
    config.segment_size(size).unwrap_or(u64::MAX)
}

/// Bytes of the largest request in a recording.
pub fn largest_request(lifetimes: &Lifetimes) -> u64 {
    lifetimes.all().map(|id| lifetimes.requested(id)).max().unwrap_or(Bytes::ZERO).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_model::{
        Block, BlockState, Device, Event, PoolId, PoolKind, Segment, Snapshot, StackId, StreamId, TimeUs,
        join,
    };
    use vramscope_replay::allocator::config::Release;

    const MIB: u64 = 1 << 20;
    const FIRST: u64 = 1 << 40;

    /// A process that obtains a segment of each size in turn, and then asks in vain.
    fn room(
        segments: &[u64],
        action: Action,
        asked: u64,
        free: u64,
        given: (Option<u64>, Option<f64>),
    ) -> Room {
        let mut device = Device::default();
        let mut push = |action, addr, size| {
            device.events.push(Event {
                action,
                addr,
                size: Bytes(size),
                time: TimeUs(device.events.len() as i64),
                stream: StreamId(0),
                pool: PoolId::DEFAULT,
                stack: StackId::EMPTY,
            });
        };
        let mut addr = FIRST;
        for &size in segments {
            push(action, addr, size);
            push(Action::Alloc, addr, size);
            addr += size;
        }
        push(Action::Oom, free, asked);
        addr = FIRST;
        for &size in segments {
            let state = BlockState::Allocated;
            let block =
                Block { addr, size: Bytes(size), requested: Some(Bytes(size)), state, stack: StackId::EMPTY };
            device.segments.push(Segment {
                addr,
                size: Bytes(size),
                stated_allocated: Bytes(size),
                stated_active: Bytes(size),
                stream: StreamId(0),
                kind: PoolKind::Large,
                pool: PoolId::DEFAULT,
                expandable: action == Action::SegmentMap,
                stack: StackId::EMPTY,
                blocks: vec![block],
            });
            addr += size;
        }
        let recording = join(vec![Snapshot { devices: vec![device], ..Snapshot::default() }], None);
        let device = &recording.devices[0];
        let lifetimes = Lifetimes::of(device, None);
        Room::of(device, &lifetimes, &Config::default(), None, given.0, given.1)
    }

    fn rules(whole_fraction_is_limit: bool) -> Rules {
        Rules::of_release(if whole_fraction_is_limit { Release(2, 9) } else { Release(2, 13) })
    }

    #[test]
    fn a_request_that_failed_tells_the_limit() {
        let check = |action, asked, free, want| {
            let room = room(&[20 * MIB, 30 * MIB], action, asked, free, (None, None));
            let RoomSource::Recorded(Refusal { by_fraction, at_least, below, .. }) = room.source else {
                panic!("{room:?}")
            };
            let by_driver = !by_fraction;
            assert_eq!((by_driver, at_least / MIB, below / MIB), want, "{asked} {free}");
            let limits = room.limits(&Config::default(), rules(false));
            let of = |wanted| (wanted == by_driver).then_some(at_least);
            assert_eq!((limits.capacity, limits.reserved), (of(true), of(false)));
        };
        // The driver had 6 MiB left; it had plenty, so that a fraction was set.
        check(Action::SegmentAlloc, 40 * MIB, 6 * MIB, (true, 50, 90));
        check(Action::SegmentAlloc, 40 * MIB, 900 * MIB, (false, 50, 90));
        // The driver keeps a little back.
        check(Action::SegmentAlloc, 40 * MIB, 43 * MIB, (true, 50, 90));
        check(Action::SegmentAlloc, 40 * MIB, 48 * MIB, (false, 50, 90));
        // 5 MiB would have needed a segment of 20.
        check(Action::SegmentAlloc, 5 * MIB, 900 * MIB, (false, 50, 70));
        check(Action::SegmentMap, 40 * MIB, 900 * MIB, (false, 50, 90));
    }

    #[test]
    fn what_is_not_excluded_is_the_most_there_may_be() {
        let at_most = |free| {
            let room = room(&[20 * MIB, 30 * MIB], Action::SegmentAlloc, 40 * MIB, free, (None, None));
            room.at_most().map(|most| most.limits(&Config::default(), rules(false)).reserved)
        };
        assert_eq!(at_most(900 * MIB), Some(Some(90 * MIB - 1)));
        // The driver had no more.
        assert_eq!(at_most(0), None);
        let of_driver = room(&[20 * MIB, 30 * MIB], Action::SegmentAlloc, 40 * MIB, 6 * MIB, (None, None));
        let most = of_driver.at_most().map(|most| most.limits(&Config::default(), rules(false)).capacity);
        assert_eq!(most, Some(Some(56 * MIB)));
        assert_eq!(Room { source: RoomSource::Told(7), fraction: None }.at_most(), None);
    }

    #[test]
    fn pages_beyond_a_limit_are_not_taken_for_it() {
        let mut symbols = vramscope_model::Symbols::default();
        let text = "alloc a 21MiB\nalloc b 21MiB\noom 21MiB";
        let mut recording = vramscope_model::script::recording(&mut symbols, text).unwrap();
        let device = &mut recording.devices[0];
        let event = device.events.get(0);
        // Of 20 MiB each two pages are mapped for the first, one for the second; the driver has plenty left.
        let mut events = vramscope_model::Events::default();
        for (action, size, addr) in [
            (Action::SegmentMap, 40, event.addr),
            (Action::Alloc, 21, event.addr),
            (Action::SegmentMap, 20, event.addr + 40 * MIB),
            (Action::Alloc, 21, event.addr + 21 * MIB),
            (Action::Oom, 21, 900 * MIB),
        ] {
            events.push(Event { action, addr, size: Bytes(size * MIB), ..event });
        }
        device.events = events;
        device.states.clear();
        let lifetimes = Lifetimes::of(device, None);
        let own = Config { expandable_segments: true, ..Config::default() };
        let given = Given::before(device, &lifetimes, &own, lifetimes.whole().to);
        let refusal = given.in_all(None).unwrap();
        // 22 MiB would have been obtained beside the 40 that were reserved.
        let want = (true, 62, 60 + 22);
        assert_eq!((refusal.by_fraction, refusal.at_least / MIB, refusal.below / MIB), want);
        let alone = given.refusal(given.failures[0]);
        assert_eq!((alone.at_least / MIB, alone.below / MIB), (62, 82));
        assert_eq!((alone.event, alone.least_refused()), (Some(EventIdx(4)), 82 * MIB));
    }

    #[test]
    fn of_expandable_segments_the_driver_may_refuse_a_page() {
        let own = Config { expandable_segments: true, ..Config::default() };
        let given = Given::default();
        let given = Given { reserved: 560 * MIB, page: own.large_segment, ..given };
        let check = |asked: u64, free: u64, want: (bool, u64, u64)| {
            let wanted = obtained(asked * MIB, &own);
            let failure = Failure { event: EventIdx(4), free: free * MIB, reserved: 560 * MIB, wanted };
            let refusal = Given { failures: vec![failure], ..given.clone() }.in_all(None).unwrap();
            let found = (refusal.by_fraction, refusal.at_least / MIB, refusal.below / MIB);
            assert_eq!(found, want, "{asked} {free}");
        };
        // 75 MiB take four pages.
        check(75, 78, (false, 560, 640));
        check(100, 30, (false, 560, 660));
    }

    #[test]
    fn garbage_that_is_collected_tells_no_limit_where_requests_failed() {
        let check = |threshold: f64, below: u64| {
            let mut symbols = vramscope_model::Symbols::default();
            let text = "segment 20MiB\nalloc a 20MiB\noom 30MiB";
            let recording = vramscope_model::script::recording(&mut symbols, text).unwrap();
            let device = &recording.devices[0];
            let lifetimes = Lifetimes::of(device, None);
            let own = Config { garbage_collection_threshold: threshold, ..Config::default() };
            let given = Given::before(device, &lifetimes, &own, lifetimes.whole().to);
            let refusal = given.in_all(Some(35 * MIB)).unwrap();
            assert_eq!(refusal.below / MIB, below, "{threshold}: {refusal:?}");
        };
        check(0.0, 35);
        check(0.5, 50);
    }

    #[test]
    fn memory_that_was_given_back_instead_tells_it_too() {
        let mut symbols = vramscope_model::Symbols::default();
        let recording =
            vramscope_model::script::recording(&mut symbols, "segment 20MiB\nalloc a 20MiB").unwrap();
        let device = &recording.devices[0];
        let lifetimes = Lifetimes::of(device, None);
        let of = |refused| Room::of(device, &lifetimes, &Config::default(), refused, None, None);
        assert_eq!(of(None).source, RoomSource::Unknown);
        let room = of(Some(30 * MIB));
        let want = Refusal {
            event: None,
            by_fraction: false,
            at_least: 20 * MIB,
            below: 30 * MIB,
            most: 30 * MIB - 1,
        };
        assert_eq!(room.source, RoomSource::Recorded(want));
        assert!(room.is_guess());
        assert_eq!(room.limits(&Config::default(), rules(false)).capacity, Some(20 * MIB));
    }

    #[test]
    fn what_the_user_tells_counts_more() {
        let check = |given, whole_is_limit, want| {
            let room = room(&[20 * MIB], Action::SegmentAlloc, 40 * MIB, 900 * MIB, given);
            let limits = room.limits(&Config::default(), rules(whole_is_limit));
            assert_eq!((limits.capacity, limits.reserved), want, "{given:?}");
        };
        check((Some(1001), None), false, (Some(1001), None));
        check((Some(1001), Some(0.5)), false, (Some(1001), Some(501)));
        check((Some(1001), Some(0.5)), true, (Some(1001), Some(500)));
        check((Some(1001), Some(1.0)), false, (Some(1001), None));
        check((Some(1001), Some(1.0)), true, (Some(1001), Some(1001)));
    }

    #[test]
    fn a_fraction_of_unknown_memory_is_no_limit() {
        let room = Room { source: RoomSource::Unknown, fraction: Some(0.25) };
        let config = Config { per_process_memory_fraction: 0.5, ..Config::default() };
        assert_eq!(room.limits(&config, rules(true)), Limits::default());
        assert_eq!(room.fraction_of_unknown(&config), Some(0.25));
        let room = Room { fraction: None, ..room };
        assert_eq!(room.fraction_of_unknown(&config), Some(0.5));
        assert_eq!(room.fraction_of_unknown(&Config::default()), None);
        let told = Room { source: RoomSource::Told(1000), fraction: None };
        assert_eq!(told.fraction_of_unknown(&config), None);
        assert_eq!(told.limits(&config, rules(false)).reserved, Some(500));
    }
}
