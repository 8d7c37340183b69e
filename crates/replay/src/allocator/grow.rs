//! Obtaining memory from the driver: within the limits, and after what can be given back was.
//!
//! Source: the allocator reference, §4.1, §4.3 and §9.

use super::block::{Block, Id, Segment, Use};
use super::machine::Allocator;
use super::tally::{SegmentAction, SegmentEvent};

impl Allocator<'_> {
    /// Obtains memory for a request that nothing free can serve, giving back what is free if it must.
    pub(super) fn obtain(&mut self, pool: u32, size: u64, obtain: u64) -> Option<Id> {
        if self.collects_garbage() {
            self.collect_garbage();
        }
        if let Some(block) = self.grow(pool, size, obtain) {
            return Some(block);
        }
        if self.is_rejected_at_once(obtain) {
            return None;
        }
        if self.release_some(pool, size)
            && let Some(block) = self.grow(pool, size, obtain)
        {
            return Some(block);
        }
        self.release_all();
        self.tally.retries += 1;
        self.grow(pool, size, obtain)
    }

    /// Obtains memory from the driver and takes a block of at least `size` out of it, in no pool.
    fn grow(&mut self, pool: u32, size: u64, obtain: u64) -> Option<Id> {
        if !self.is_within_limit(obtain) || self.is_rejected_at_once(obtain) {
            return None;
        }
        if self.config.expandable_segments {
            return self.grow_in_place(pool, size);
        }
        if !self.driver_has(obtain) {
            return None;
        }
        let base = self.addresses.take(obtain);
        Some(self.add_segment(pool, base, obtain))
    }

    /// A segment from `cudaMalloc`, as one block in no pool.
    pub(super) fn add_segment(&mut self, pool: u32, base: u64, size: u64) -> Id {
        let segment = self.register(base, 0);
        let block = self.add_block(Block::alone(base, size, segment, pool, Use::Free));
        self.tally
            .segment(SegmentEvent { action: SegmentAction::Alloc, addr: base, size }, self.segments.len());
        block
    }

    /// A new segment's number.
    pub(super) fn register(&mut self, base: u64, page: u64) -> u32 {
        let registration = self.n_registered;
        self.n_registered += 1;
        self.segments.add(Segment { base, page, registration })
    }

    /// Whether the process may reserve that many bytes more.
    fn is_within_limit(&self, bytes: u64) -> bool {
        self.limits.reserved.is_none_or(|limit| self.tally.total_reserved().saturating_add(bytes) <= limit)
    }

    /// Whether that many bytes more can be had: they are there and the process may have them.
    pub(super) fn may_obtain(&self, bytes: u64) -> bool {
        self.is_within_limit(bytes) && self.driver_has(bytes)
    }

    /// Whether the driver has that many bytes left for this process.
    pub(super) fn driver_has(&self, bytes: u64) -> bool {
        self.limits
            .capacity
            .is_none_or(|capacity| self.tally.total_reserved().saturating_add(bytes) <= capacity)
    }

    /// Whether `throw_on_cudamalloc_oom` refuses to obtain that many bytes without trying anything else.
    fn is_rejected_at_once(&self, obtain: u64) -> bool {
        // A limit comes first, and with it the ways to make room.
        self.config.throw_on_cudamalloc_oom
            && self.limits.reserved.is_none()
            && self.limits.total.is_some_and(|total| {
                let share = (self.config.per_process_memory_fraction * total as f64) as u64;
                self.tally.total_reserved().saturating_add(obtain) > share
            })
    }
}
