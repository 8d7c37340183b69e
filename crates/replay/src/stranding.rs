//! Free memory over time: how much of it could not be used, what kept it, and how often a request failed to fit into it.
//!
//! One pass follows every unit of which something is in use ([`crate::units`]): a unit changes only when a block comes or
//! goes in it, so bytes × time are added up then. What keeps a unit is defined in [`crate::pins`].

use rustc_hash::FxHashMap;
use vramscope_model::{Action, Bytes, DeviceRecording, EventIdx, Settings, StackId, Symbols};

use crate::domain::Portions;
use crate::fits::{self, FailedFit, request_behind};
use crate::ground::{changes_ground, ground_at_start};
use crate::kept::Kept;
use crate::lifetimes::{AllocId, Death, Lifetimes, NO_ALLOC, Wait, Window};
use crate::occupancy::Occupancy;
use crate::pins::Place;

/// A place whose blocks pinned memory during a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PinOverTime {
    /// The place.
    pub place: Place,
    /// A stack of it.
    pub stack: StackId,
    /// Stranded bytes that it alone pinned, times time.
    pub alone: f64,
    /// Stranded bytes that it pinned together with other places, times time; each of them counts them.
    pub shared: f64,
    /// Its kept blocks that were there in the window, pinning or not.
    pub blocks: u64,
    /// Those of them that are never freed.
    pub survivors: u64,
}

/// Bytes × time, in byte-seconds; in bytes × events where the recording has no times. Divided by
/// [`Stranding::duration`] they are averages.
#[derive(Clone, Debug, Default)]
pub struct Stranding {
    /// Whether the recording has times.
    pub has_times: bool,
    /// How long the window is: in seconds, or in events.
    pub duration: f64,
    /// Free, in whole segments and pages.
    pub releasable: f64,
    /// Free, in segments and pages of which something is in use: the sum of the next four.
    pub stranded: f64,
    /// Of that: pinned by one place.
    pub alone: f64,
    /// Pinned by several.
    pub shared: f64,
    /// In units of which more than a quarter is kept.
    pub dense: f64,
    /// In units in which nothing is kept.
    pub passing: f64,
    /// Who pinned, most alone first.
    pub places: Vec<PinOverTime>,
    /// The requests of the window that failed to fit.
    pub fits: Vec<FailedFit>,
}

impl Stranding {
    /// Follows a window of a trace.
    pub fn of(
        device: &DeviceRecording,
        lifetimes: &Lifetimes,
        symbols: &Symbols,
        kept: &Kept,
        settings: Option<&Settings>,
        window: Window,
    ) -> Self {
        let (ground, purposes) = ground_at_start(device);
        let clock = Clock::of(device, window);
        let portions = Portions::of(settings);
        let mut occupancy = Occupancy::new(ground, portions, clock.start);
        let mut numbers = Numbers { symbols, by_place: FxHashMap::default(), places: Vec::new() };
        let waits = Waits::of(lifetimes);
        let replaced = replaced(lifetimes);
        let mut numbered = |id: AllocId| kept.is_kept(lifetimes, id).then(|| numbers.of(lifetimes, id));

        for id in lifetimes.all().take(lifetimes.n_before()) {
            if lifetimes.is_held_at(id, EventIdx(0)) {
                occupancy.come(lifetimes.addr(id), lifetimes.size(id).0, numbered(id), clock.start);
            }
        }
        for wait in lifetimes.waits.iter().filter(|w| w.covers(EventIdx(0))) {
            occupancy.come(wait.addr, wait.size, None, clock.start);
        }
        let mut fits: Vec<FailedFit> = Vec::new();
        let mut served = None;
        let events = &device.events;
        let mut now = clock.start;
        for i in 0..events.len().min(window.to.index()) {
            let (at, action, addr) = (EventIdx(i as u32), events.actions()[i], events.addrs()[i]);
            now = clock.at(device, at, now);
            if changes_ground(action) {
                let event = events.get(i);
                let domain = purposes.of(i, &event);
                if matches!(action, Action::SegmentAlloc | Action::SegmentMap)
                    && at >= window.from
                    && let Some(j) = request_behind(events, i)
                {
                    let request = Settings::round(settings, events.sizes()[j]);
                    let (free, releasable) = occupancy.free_in(domain);
                    if served == Some(j) {
                        // More for the same request.
                        if let Some(fit) = fits.last_mut().filter(|f| f.alloc.index() == j) {
                            fit.obtained += event.size;
                        }
                    } else if free >= request {
                        fits.push(FailedFit {
                            event: at,
                            alloc: EventIdx(j as u32),
                            domain,
                            request: Bytes(request),
                            obtained: event.size,
                            free: Bytes(free),
                            releasable: Bytes(releasable),
                            largest: None,
                        });
                    }
                    served = Some(j);
                }
                occupancy.follow_ground(&event, domain, now);
                continue;
            }
            let id = lifetimes.alloc_of(at);
            match (action, id) {
                (Action::Alloc, Some(id)) => {
                    if let Some(&old) = replaced.get(&at.0) {
                        occupancy.go(addr, lifetimes.size(old).0, numbered(old), now);
                    }
                    if lifetimes.death(id) != Death::Unrecorded {
                        occupancy.come(addr, lifetimes.size(id).0, numbered(id), now);
                    }
                }
                (Action::FreeRequested | Action::FreeCompleted, Some(id)) => {
                    occupancy.go(addr, lifetimes.size(id).0, numbered(id), now);
                    if let Some(wait) = waits.after(id, at) {
                        occupancy.come(addr, wait.size, None, now);
                    }
                }
                _ => {}
            }
            if let Some(wait) = waits.ending(at) {
                occupancy.go(wait.addr, wait.size, None, now);
            }
        }
        let sums = occupancy.finish(clock.end);
        let keeps_large = settings.is_some_and(|s| s.max_split_size.is_some());
        let fits = fits::with_largest(device, lifetimes, fits, keeps_large);
        let mut places: Vec<PinOverTime> = numbers.places;
        for id in lifetimes.all() {
            let is_there = lifetimes.is_held_at(id, window.from)
                || lifetimes.birth(id).is_some_and(|b| b >= window.from && b < window.to);
            if !is_there || !kept.is_kept(lifetimes, id) {
                continue;
            }
            let number = numbers.by_place.get(&Place::of(symbols, lifetimes, id));
            if let Some(pin) = number.and_then(|&i| places.get_mut(i as usize)) {
                pin.blocks += 1;
                pin.survivors += u64::from(lifetimes.death(id) == Death::Alive);
            }
        }
        for (pin, &(alone, shared)) in places.iter_mut().zip(&sums.by_place) {
            (pin.alone, pin.shared) = (alone, shared);
        }
        places.retain(|p| p.alone > 0.0 || p.shared > 0.0);
        places.sort_by(|a, b| {
            b.alone
                .total_cmp(&a.alone)
                .then(b.shared.total_cmp(&a.shared))
                .then_with(|| a.place.cmp(&b.place))
        });
        Self {
            has_times: clock.has_times,
            duration: clock.end - clock.start,
            releasable: sums.releasable,
            stranded: sums.alone + sums.shared + sums.dense + sums.passing,
            alone: sums.alone,
            shared: sums.shared,
            dense: sums.dense,
            passing: sums.passing,
            places,
            fits,
        }
    }

    /// The average over the window of something that is given as bytes × time.
    pub fn average(&self, bytes_time: f64) -> Bytes {
        if self.duration > 0.0 {
            Bytes((bytes_time / self.duration).round().max(0.0) as u64)
        } else {
            Bytes::ZERO
        }
    }
}

/// Numbers for places, in the order in which they come up.
struct Numbers<'a> {
    symbols: &'a Symbols,
    by_place: FxHashMap<Place, u32>,
    places: Vec<PinOverTime>,
}

impl Numbers<'_> {
    fn of(&mut self, lifetimes: &Lifetimes, id: AllocId) -> u32 {
        let stack = lifetimes.stack(id);
        let place = Place::of(self.symbols, lifetimes, id);
        *self.by_place.entry(place).or_insert_with(|| {
            self.places.push(PinOverTime { place, stack, alone: 0.0, shared: 0.0, blocks: 0, survivors: 0 });
            self.places.len() as u32 - 1
        })
    }
}

/// The waits by what begins and what ends them.
struct Waits {
    by_id: FxHashMap<u32, Wait>,
    by_end: FxHashMap<u32, Wait>,
}

impl Waits {
    fn of(lifetimes: &Lifetimes) -> Self {
        let waits = &lifetimes.waits;
        Self {
            by_id: waits.iter().filter(|w| w.id != NO_ALLOC).map(|&w| (w.id, w)).collect(),
            by_end: waits.iter().map(|&w| (w.to, w)).collect(),
        }
    }

    /// The wait that follows a stay, if it is not over with it.
    fn after(&self, id: AllocId, death: EventIdx) -> Option<&Wait> {
        self.by_id.get(&id.0).filter(|w| w.covers(EventIdx(death.0 + 1)))
    }

    fn ending(&self, at: EventIdx) -> Option<&Wait> {
        self.by_end.get(&at.0)
    }
}

/// Blocks whose free is missing, by the event that hands their address out again.
fn replaced(lifetimes: &Lifetimes) -> FxHashMap<u32, AllocId> {
    if lifetimes.agreement().missing_frees == 0 {
        return FxHashMap::default();
    }
    lifetimes
        .all()
        .filter_map(|id| match lifetimes.death(id) {
            Death::At(event) if lifetimes.alloc_of(event) != Some(id) => Some((event.0, id)),
            _ => None,
        })
        .collect()
}

/// Seconds since the beginning of the trace, or events where it has no times; held still outside the window.
struct Clock {
    has_times: bool,
    origin: i64,
    start: f64,
    end: f64,
}

impl Clock {
    fn of(device: &DeviceRecording, window: Window) -> Self {
        let first = device.events.time(window.from);
        let last = device.events.time(EventIdx(window.to.0.saturating_sub(1)));
        match (first, last) {
            (Some(first), Some(last)) => {
                let seconds = last.0.saturating_sub(first.0).max(0) as f64 / 1e6;
                Self { has_times: true, origin: first.0, start: 0.0, end: seconds }
            }
            _ => Self {
                has_times: false,
                origin: 0,
                start: f64::from(window.from.0),
                end: f64::from(window.to.0.max(window.from.0)),
            },
        }
    }

    /// The time of an event; never before that of an earlier one.
    fn at(&self, device: &DeviceRecording, event: EventIdx, before: f64) -> f64 {
        let now = if self.has_times {
            match device.events.time(event) {
                Some(time) => time.0.saturating_sub(self.origin) as f64 / 1e6,
                None => before,
            }
        } else {
            f64::from(event.0)
        };
        now.clamp(before, self.end.max(before))
    }
}
