//! The units of which something is in use, as blocks come and go, with their bytes × time.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use vramscope_model::{Action, Event};

use crate::domain::{Domain, Portions};
use crate::ground::Ground;
use crate::pins::{Keeper, keeper};
use crate::units::{Part, parts_of};

/// Bytes of one domain.
#[derive(Clone, Copy, Default)]
struct Pool {
    reserved: u64,
    used: u64,
    stranded: u64,
}

/// A unit of which something is in use.
struct InUse {
    size: u64,
    domain: Domain,
    used: u64,
    kept: u64,
    /// Its blocks, kept or not.
    blocks: u32,
    /// The kept ones by the number of their place: how many, and what `shared` was when the first of them came.
    places: BTreeMap<u32, (u32, f64)>,
    /// Bytes × time during which several places pinned it. A unit may have many places and change often, so each of them
    /// gets its part only when it leaves.
    shared: f64,
    /// Up to when its bytes × time are added up.
    since: f64,
}

impl InUse {
    fn free(&self) -> u64 {
        self.size.saturating_sub(self.used)
    }
}

/// Bytes × time.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) releasable: f64,
    pub(crate) alone: f64,
    pub(crate) shared: f64,
    pub(crate) dense: f64,
    pub(crate) passing: f64,
    /// Alone and shared of each place, by its number.
    pub(crate) by_place: Vec<(f64, f64)>,
}

impl Sums {
    fn place(&mut self, place: u32) -> &mut (f64, f64) {
        let i = place as usize;
        if self.by_place.len() <= i {
            self.by_place.resize(i + 1, (0.0, 0.0));
        }
        &mut self.by_place[i]
    }
}

/// What is in use, and what it has added up to.
pub(crate) struct Occupancy {
    ground: Ground,
    portions: Portions,
    pools: FxHashMap<Domain, Pool>,
    units: BTreeMap<u64, InUse>,
    /// Over all pools.
    total: Pool,
    since: f64,
    sums: Sums,
}

impl Occupancy {
    pub(crate) fn new(ground: Ground, portions: Portions, now: f64) -> Self {
        let mut pools: FxHashMap<Domain, Pool> = FxHashMap::default();
        let mut total = Pool::default();
        for stretch in ground.stretches() {
            let pool = pools.entry(stretch.domain).or_default();
            pool.reserved = pool.reserved.saturating_add(stretch.size());
            total.reserved = total.reserved.saturating_add(stretch.size());
        }
        let (units, sums) = (BTreeMap::new(), Sums::default());
        Self { ground, portions, pools, units, total, since: now, sums }
    }

    /// What is free for some requests, and the part of it in whole segments and pages.
    pub(crate) fn free_in(&self, domain: Domain) -> (u64, u64) {
        let pool = self.pools.get(&domain).copied().unwrap_or_default();
        let free = pool.reserved.saturating_sub(pool.used);
        (free, free.saturating_sub(pool.stranded))
    }

    /// A block comes; `place` is the number of its place if it is kept.
    pub(crate) fn come(&mut self, addr: u64, size: u64, place: Option<u32>, now: f64) {
        self.change(addr, size, place, now, true);
    }

    /// It goes.
    pub(crate) fn go(&mut self, addr: u64, size: u64, place: Option<u32>, now: f64) {
        self.change(addr, size, place, now, false);
    }

    fn change(&mut self, addr: u64, size: u64, place: Option<u32>, now: f64, comes: bool) {
        let Some(stretch) = self.ground.at(addr).copied() else { return };
        self.pass(now);
        let step = |sum: &mut u64, by: u64| {
            *sum = if comes { sum.saturating_add(by) } else { sum.saturating_sub(by) };
        };
        let inside = size.min(stretch.end - addr);
        let pool = self.pools.entry(stretch.domain).or_default();
        step(&mut pool.used, inside);
        step(&mut self.total.used, inside);
        for part in parts_of(&stretch, self.portions, addr, size).into_iter().flatten() {
            self.change_unit(part, stretch.domain, place, now, comes);
        }
    }

    fn change_unit(&mut self, part: Part, domain: Domain, place: Option<u32>, now: f64, comes: bool) {
        let start = part.unit.start;
        if !comes && !self.units.contains_key(&start) {
            return;
        }
        let unit = self.units.entry(start).or_insert_with(|| InUse {
            size: part.unit.size,
            domain,
            used: 0,
            kept: 0,
            blocks: 0,
            places: BTreeMap::new(),
            shared: 0.0,
            since: now,
        });
        let before = if unit.blocks > 0 { unit.free() } else { 0 };
        count(&mut self.sums, unit, now);
        if comes {
            unit.used = unit.used.saturating_add(part.bytes);
            unit.blocks += 1;
        } else {
            unit.used = unit.used.saturating_sub(part.bytes);
            unit.blocks = unit.blocks.saturating_sub(1);
        }
        if let Some(place) = place {
            if comes {
                unit.kept = unit.kept.saturating_add(part.bytes);
                unit.places.entry(place).or_insert((0, unit.shared)).0 += 1;
            } else {
                unit.kept = unit.kept.saturating_sub(part.bytes);
                if let Some((n, base)) = unit.places.get_mut(&place) {
                    *n -= 1;
                    if *n == 0 {
                        self.sums.place(place).1 += unit.shared - *base;
                        unit.places.remove(&place);
                    }
                }
            }
        }
        let after = if unit.blocks > 0 { unit.free() } else { 0 };
        if unit.blocks == 0 {
            self.units.remove(&start);
        }
        self.strand(domain, before, after);
    }

    fn strand(&mut self, domain: Domain, before: u64, after: u64) {
        let pool = self.pools.entry(domain).or_default();
        pool.stranded = pool.stranded.saturating_sub(before).saturating_add(after);
        self.total.stranded = self.total.stranded.saturating_sub(before).saturating_add(after);
    }

    /// Memory is obtained or given back.
    pub(crate) fn follow_ground(&mut self, event: &Event, domain: Domain, now: f64) {
        self.pass(now);
        let comes = matches!(event.action, Action::SegmentAlloc | Action::SegmentMap);
        let domain = if comes { domain } else { self.ground.at(event.addr).map_or(domain, |s| s.domain) };
        let Some(bytes) = self.ground.apply(event, domain) else { return };
        let pool = self.pools.entry(domain).or_default();
        for sum in [&mut pool.reserved, &mut self.total.reserved] {
            *sum = if comes { sum.saturating_add(bytes) } else { sum.saturating_sub(bytes) };
        }
        if !comes {
            // Nothing in it was in use, unless frees are missing.
            let end = event.addr.saturating_add(bytes);
            let left: Vec<u64> = self.units.range(event.addr..end).map(|(&start, _)| start).collect();
            for start in left {
                let Some(mut unit) = self.units.remove(&start) else { continue };
                count(&mut self.sums, &mut unit, now);
                settle(&mut self.sums, &unit);
                self.strand(unit.domain, unit.free(), 0);
                let pool = self.pools.entry(unit.domain).or_default();
                pool.used = pool.used.saturating_sub(unit.used);
                self.total.used = self.total.used.saturating_sub(unit.used);
            }
        }
    }

    /// Adds up whole segments and pages up to now.
    fn pass(&mut self, now: f64) {
        let free = self.total.reserved.saturating_sub(self.total.used).saturating_sub(self.total.stranded);
        self.sums.releasable += free as f64 * (now - self.since);
        self.since = now;
    }

    pub(crate) fn finish(mut self, now: f64) -> Sums {
        self.pass(now);
        for unit in self.units.values_mut() {
            count(&mut self.sums, unit, now);
            settle(&mut self.sums, unit);
        }
        self.sums
    }
}

/// Adds up a unit's stranded bytes up to now.
fn count(sums: &mut Sums, unit: &mut InUse, now: f64) {
    let amount = unit.free() as f64 * (now - unit.since);
    unit.since = now;
    if unit.blocks == 0 {
        return;
    }
    match keeper(unit.size, unit.kept, unit.places.keys().copied()) {
        Keeper::Alone(place) => {
            sums.place(place).0 += amount;
            sums.alone += amount;
        }
        Keeper::Shared => {
            unit.shared += amount;
            sums.shared += amount;
        }
        Keeper::Dense => sums.dense += amount,
        Keeper::Passing => sums.passing += amount,
    }
}

/// Gives the places that are left in a unit what they shared.
fn settle(sums: &mut Sums, unit: &InUse) {
    for (&place, &(_, base)) in &unit.places {
        sums.place(place).1 += unit.shared - base;
    }
}
