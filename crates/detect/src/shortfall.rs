//! A failed request explained: what it needed, what was there, who held it, and what would have let it pass.
//!
//! All figures are those of the layout just before the request was given up, when the allocator had returned to the driver
//! what it could.
//!
//! Source: the allocator reference, §4.3 (limits), §8.2 (releasing), §9 (out of memory).

pub(crate) mod sentences;

use rustc_hash::FxHashMap;
use vramscope_model::{Action, Bytes, EventIdx, PoolId, Settings, StackId};
use vramscope_replay::{
    Domain, Failed, Free, Kept, Layout, Pins, Place, Placed, Portions, Rescue, levels_at, rescue,
};

use crate::Context;
use crate::recommendation::LIVE_SHARE;
use crate::room::{Failure, Given, Refusal, obtained};

/// Why a request failed.
#[derive(Clone, Debug)]
pub struct Shortfall {
    /// The event of the failure.
    pub event: EventIdx,
    /// What was asked for, rounded.
    pub request: Bytes,
    /// What had to be obtained from the driver for it.
    pub needed: Bytes,
    /// Which pool, kind and stream it was for. Before torch 2.12 the pool is not recorded, and taken for the default one.
    pub domain: Domain,
    /// Held by the program.
    pub allocated: Bytes,
    /// Given back, but another stream may still use it.
    pub pending: Bytes,
    /// Obtained from the driver.
    pub reserved: Bytes,
    /// What the driver had free.
    pub device_free: Bytes,
    /// What stood in the way: what the process could have, and what it could not.
    pub limit: Refusal,
    /// Segments of so many bytes would have had to go back first.
    pub missing: Bytes,
    /// What was free for such requests.
    pub here: Free,
    /// What was free for any requests.
    pub pools: Vec<(Domain, Free)>,
    /// Who held most, most first.
    pub holders: Vec<Holder>,
    /// What all other places held.
    pub others: Others,
    /// Whose blocks kept free memory from going back.
    pub pins: Pins,
    /// What went back to the driver right before, in vain.
    pub returned: Bytes,
    /// Whether `empty_cache()` before the request would have let it pass.
    pub empty_cache: EmptyCache,
    /// Few bytes less that would have been enough.
    pub least: Option<Rescue>,
    /// The same if all of them were of the place that held most.
    pub least_at_largest: Option<Rescue>,
    /// What is held and the request come to at least, whatever the settings.
    pub at_least: Bytes,
    /// Whether that is more than the limit: then no setting helps.
    pub no_setting_helps: bool,
}

/// A place and what it held.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    /// The place.
    pub place: Place,
    /// A stack of it.
    pub stack: StackId,
    /// Bytes, as blocks.
    pub bytes: Bytes,
    /// Blocks.
    pub blocks: u64,
}

/// What places held that are not named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// How many places.
    pub places: u64,
    /// Bytes, as blocks.
    pub bytes: Bytes,
    /// Blocks.
    pub blocks: u64,
}

/// Whether returning free memory before a request would have let it pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyCache {
    /// Nothing was left that could go back: the allocator does that by itself before it fails.
    NothingLeft,
    /// Not all was returned (during the capture of a graph nothing is), but so much is not enough.
    NotEnough(Bytes),
    /// So much was not returned, and would have been enough.
    Enough(Bytes),
}

/// How many places are named.
const NAMED: usize = 5;

/// A request that is not served, and what is there when it is given up.
struct Unserved {
    at: EventIdx,
    request: Bytes,
    needed: Bytes,
    domain: Domain,
    layout: Layout,
    allocated: Bytes,
    reserved: Bytes,
    device_free: Bytes,
    limit: Refusal,
    returned: Bytes,
}

impl Shortfall {
    /// Explains the failure that an event tells of.
    pub(crate) fn of(cx: &Context<'_>, at: EventIdx) -> Self {
        let event = cx.device.events.get(at.index());
        let own = cx.own_config();
        let layout = Layout::at(cx.device, cx.lifetimes, at);
        let level = levels_at(cx.device, cx.lifetimes, &[at]).first().copied().unwrap_or_default();
        let pending = layout.blocks().filter(|b| b.pending).map(|b| b.size).sum::<Bytes>();
        let reserved = level.reserved.max(level.allocated + pending);
        let (request, device_free) = (event.size, Bytes(event.addr));
        let needed = Bytes(obtained(request.0, &own));
        let given = Given::before(cx.device, cx.lifetimes, &own, at);
        let failure = Failure { event: at, free: device_free.0, reserved: reserved.0, wanted: needed.0 };
        let unserved = Unserved {
            at,
            request,
            needed,
            domain: Domain { pool: event.pool, kind: Portions::kind_of(request.0), stream: event.stream },
            layout,
            allocated: level.allocated,
            reserved,
            device_free,
            limit: given.refusal(failure),
            returned: returned_before(cx, at),
        };
        Self::explain(cx, unserved)
    }

    /// Explains why a request that was served would have failed if the process could have had only so many bytes, provided
    /// that until then all would have been as it was.
    pub(crate) fn within(cx: &Context<'_>, at: EventIdx, capacity: Bytes) -> Self {
        let event = cx.device.events.get(at.index());
        let own = cx.own_config();
        // What was obtained for it came right before.
        let actions = cx.device.events.actions();
        let obtains = |a: &&Action| matches!(a, Action::SegmentAlloc | Action::SegmentMap);
        let before = actions.get(..at.index()).unwrap_or(&[]);
        let start = EventIdx(at.0 - before.iter().rev().take_while(obtains).count() as u32);
        let mut layout = Layout::at(cx.device, cx.lifetimes, start);
        let returned = layout.give_back(Portions::of(cx.recording.settings.as_ref()));
        let level = levels_at(cx.device, cx.lifetimes, &[start]).first().copied().unwrap_or_default();
        let request = Bytes(own.round(event.size.0).unwrap_or(event.size.0));
        let reserved = level.reserved - returned;
        let unserved = Unserved {
            at,
            request,
            needed: Bytes(obtained(request.0, &own)),
            domain: Domain { pool: event.pool, kind: Portions::kind_of(request.0), stream: event.stream },
            layout,
            allocated: level.allocated,
            reserved,
            device_free: capacity - reserved,
            limit: Refusal {
                event: Some(at),
                by_fraction: false,
                at_least: capacity.0,
                below: capacity.0.saturating_add(1),
                most: capacity.0,
            },
            returned,
        };
        Self::explain(cx, unserved)
    }

    fn explain(cx: &Context<'_>, unserved: Unserved) -> Self {
        let Unserved { at, request, needed, domain, layout, allocated, reserved, limit, .. } = unserved;
        let settings = cx.recording.settings.as_ref();
        let portions = Portions::of(settings);
        let pools = layout.free(portions);
        let sums = vramscope_replay::total(pools.values());
        let missing = (reserved + needed).saturating_sub(Bytes(limit.at_least));
        let (holders, others) = holders(cx, &layout);
        let kept = Kept::by(cx.steps, cx.lifetimes);
        let pins = Pins::of(&layout, cx.lifetimes, cx.symbols, &kept, portions);
        let failed = Failed { domain, request, missing, max_split: settings.and_then(|s| s.max_split_size) };
        let is_held = |b: &Placed| b.id.is_some() && !b.pending;
        let least = rescue(&layout, portions, &failed, is_held);
        let largest = holders.first().map(|h| h.place);
        let least_at_largest = largest.and_then(|largest| {
            rescue(&layout, portions, &failed, |b| {
                is_held(b) && b.id.is_some_and(|id| Place::of(cx.symbols, cx.lifetimes, id) == largest)
            })
        });
        // Private pools keep what they have until their graphs are gone.
        let left =
            pools.iter().filter(|(d, _)| d.pool == PoolId::DEFAULT).map(|(_, free)| free.releasable).sum();
        let at_least = least_held(cx, &layout) + Bytes(Settings::round(None, request.0));
        Self {
            event: at,
            request,
            needed,
            domain,
            allocated,
            pending: sums.pending,
            reserved,
            device_free: unserved.device_free,
            limit,
            missing,
            here: pools.get(&domain).copied().unwrap_or_default(),
            pools: pools.into_iter().collect(),
            holders,
            others,
            pins,
            returned: unserved.returned,
            empty_cache: match left {
                Bytes::ZERO => EmptyCache::NothingLeft,
                left if left >= missing => EmptyCache::Enough(left),
                left => EmptyCache::NotEnough(left),
            },
            least,
            least_at_largest,
            at_least,
            no_setting_helps: at_least.0 >= limit.least_refused(),
        }
    }
}

impl Shortfall {
    /// Whether nearly all that the process could have was in use, with the request. Then the program needs too much, whatever
    /// may let this one request pass.
    pub fn is_of_live_memory(&self) -> bool {
        let needed = self.allocated + self.request;
        self.limit.at_least > 0 && needed.0 as f64 >= LIVE_SHARE * self.limit.at_least as f64
    }
}

/// The places that hold most just before an event.
pub(crate) fn holders_at(cx: &Context<'_>, at: EventIdx) -> Vec<Holder> {
    holders(cx, &Layout::at(cx.device, cx.lifetimes, at)).0
}

/// The places that held most, and what the rest held.
fn holders(cx: &Context<'_>, layout: &Layout) -> (Vec<Holder>, Others) {
    let mut numbers: FxHashMap<Place, usize> = FxHashMap::default();
    let mut all: Vec<Holder> = Vec::new();
    for block in layout.blocks().filter(|b| !b.pending) {
        let Some(id) = block.id else { continue };
        let stack = cx.lifetimes.stack(id);
        let place = Place::of(cx.symbols, cx.lifetimes, id);
        let number = *numbers.entry(place).or_insert_with(|| {
            all.push(Holder { place, stack, bytes: Bytes::ZERO, blocks: 0 });
            all.len() - 1
        });
        if let Some(holder) = all.get_mut(number) {
            holder.bytes += block.size;
            holder.blocks += 1;
        }
    }
    all.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.place.cmp(&b.place)));
    let rest = all.split_off(NAMED.min(all.len()));
    let others = Others {
        places: rest.len() as u64,
        bytes: rest.iter().map(|h| h.bytes).sum(),
        blocks: rest.iter().map(|h| h.blocks).sum(),
    };
    (all, others)
}

/// What the blocks in use take at least: as asked for, rounded to the smallest block.
fn least_held(cx: &Context<'_>, layout: &Layout) -> Bytes {
    let least = |b: &Placed| match b.id {
        Some(id) => Bytes(Settings::round(None, cx.lifetimes.requested(id).0)).min(b.size),
        None => b.size,
    };
    layout.blocks().map(least).sum()
}

/// What went back to the driver in the course of the request.
fn returned_before(cx: &Context<'_>, at: EventIdx) -> Bytes {
    let events = &cx.device.events;
    let course = (0..at.index()).rev().map(|i| events.get(i)).take_while(|e| {
        matches!(e.action, Action::SegmentFree | Action::SegmentUnmap | Action::FreeCompleted)
    });
    course.filter(|e| e.action != Action::FreeCompleted).map(|e| e.size).sum()
}
