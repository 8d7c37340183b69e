//! Giving memory back to the driver: a little, the unused, or all that is free.
//!
//! Source: the allocator reference, §7 (garbage) and §8 (releasing).

use vramscope_model::PoolKind;

use super::block::{Block, Id};
use super::machine::Allocator;
use super::pool::Key;
use super::tally::{SegmentAction, SegmentEvent};

impl Allocator<'_> {
    /// Whether segments that were not used for long are given back before new ones are obtained.
    pub(super) fn collects_garbage(&self) -> bool {
        self.limits.reserved.is_some() && self.config.garbage_collection_threshold > 0.0
    }

    /// Gives back the large segments that were free for longer than the average, until reserved memory is below the
    /// threshold.
    pub(super) fn collect_garbage(&mut self) {
        let Some(limit) = self.limits.reserved else { return };
        let threshold = (self.config.garbage_collection_threshold * limit as f64) as u64;
        let target = self.tally.total_reserved().saturating_sub(threshold);
        if target == 0 {
            return;
        }
        let mut whole = self.whole_large_blocks();
        let mut total_age: u64 = whole.iter().map(|&id| self.age(id)).sum();
        let mut count = whole.len() as u64;
        let (mut given_back, mut goes_on) = (0u64, true);
        while given_back < target && goes_on && count > 0 {
            let average = total_age as f64 / count as f64;
            goes_on = false;
            whole.retain(|&id| {
                let age = self.age(id);
                if self.is_expandable(id) || (age as f64) < average {
                    return true;
                }
                given_back = given_back.saturating_add(self.blocks[id].size);
                total_age = total_age.saturating_sub(age);
                count -= 1;
                goes_on = true;
                self.release(id);
                false
            });
        }
        self.tally.collections += u64::from(given_back > 0);
    }

    /// The free blocks of large pools that span their segments, as they are found.
    fn whole_large_blocks(&self) -> Vec<Id> {
        let large = self.pools.iter().filter(|pool| pool.kind == PoolKind::Large);
        let free = large.flat_map(|pool| pool.free.iter().map(|key| key.id));
        free.filter(|&id| !self.blocks[id].is_split()).collect()
    }

    /// How often blocks were searched for since a block became free.
    fn age(&self, id: Id) -> u64 {
        u64::from(self.searches[PoolKind::Large as usize].wrapping_sub(self.blocks[id].free_since))
    }

    /// Gives back blocks that are never split, as many as make up for a request. Returns whether they do.
    pub(super) fn release_some(&mut self, pool: u32, size: u64) -> bool {
        let Some(max_split) = self.config.max_split_size else { return false };
        let wanted = size.max(max_split);
        let free = &self.pools[pool as usize].free;
        let first = free.range(Key::at_least(wanted)..).next().map(|key| key.id);
        if let Some(id) = first.filter(|&id| !self.is_expandable(id)) {
            // Under other settings it may have been split: then it is no segment.
            if self.blocks[id].is_split() {
                return false;
            }
            self.release(id);
            return true;
        }
        let mut released = 0u64;
        let mut victims = Vec::new();
        for key in free.range(..Key::at_least(wanted)).rev() {
            if released >= wanted || key.size < max_split {
                break;
            }
            if !self.is_expandable(key.id) && !self.blocks[key.id].is_split() {
                released = released.saturating_add(key.size);
                victims.push(key.id);
            }
        }
        for id in victims {
            self.release(id);
        }
        released >= wanted
    }

    /// Waits for every stream, then gives back all that is free: what `empty_cache()` does.
    pub(super) fn release_all(&mut self) {
        self.complete_all();
        for kind in [PoolKind::Large, PoolKind::Small] {
            let free: Vec<Id> = self
                .pools
                .iter()
                .filter(|pool| pool.kind == kind)
                .flat_map(|pool| pool.free.iter().map(|key| key.id))
                .collect();
            let (expandable, whole): (Vec<Id>, Vec<Id>) =
                free.into_iter().partition(|&id| self.is_expandable(id));
            for id in whole {
                if !self.blocks[id].is_split() {
                    self.release(id);
                }
            }
            for id in expandable {
                self.unmap(id);
            }
        }
    }

    /// How many pieces [`Self::release_all`] would give back if nothing is pending.
    pub(super) fn n_releasable(&self) -> usize {
        let free = self.pools.iter().flat_map(|pool| pool.free.iter().map(|key| key.id));
        free.filter(|&id| {
            if self.is_expandable(id) { self.whole_pages(id).is_some() } else { !self.blocks[id].is_split() }
        })
        .count()
    }

    /// Gives exactly that memory back, as far as it is free.
    pub(super) fn release_at(&mut self, addr: u64, size: u64) {
        let Some(end) = addr.checked_add(size).filter(|&end| end > addr) else { return };
        let mut free = self.pools.iter().flat_map(|pool| pool.free.iter().map(|key| key.id));
        let around = free.find(|&id| {
            let block = &self.blocks[id];
            block.addr <= addr && end <= block.addr + block.size
        });
        let Some(id) = around else { return };
        if self.is_expandable(id) {
            self.unmap_pages(id, addr, size);
        } else if !self.blocks[id].is_split() {
            self.release(id);
        }
    }

    /// All streams were waited for.
    pub(super) fn complete_all(&mut self) {
        self.was_waited_for = false;
        for id in std::mem::take(&mut self.pending) {
            self.completed_early.push(self.blocks[id].owner);
            self.make_free(id);
        }
    }

    /// Gives a segment back that is free as a whole.
    pub(super) fn release(&mut self, id: Id) {
        self.remove_free(id);
        let Block { addr, size, segment, .. } = self.blocks[id];
        self.blocks.remove(id);
        self.segments.remove(segment);
        self.addresses.free(addr, size);
        self.was_waited_for = true;
        let n_segments = self.segments.len();
        self.tally.segment(SegmentEvent { action: SegmentAction::Free, addr, size }, n_segments);
    }
}
