//! Where the driver puts what it hands out.
//!
//! Addresses matter only to tell equally large free blocks apart (before torch 2.13), and to compare a replay with what
//! was recorded. So the replay of a recording uses the recorded ones, and every other goes upwards from a round number.
//!
//! Source: the allocator reference, §14.8.

use std::collections::VecDeque;

const FIRST: u64 = 1 << 40;
const LAST: u64 = 1 << 60;
/// What lies between two segments, so that none of them touch.
const GAP: u64 = 2 << 20;

/// The address space.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    /// Addresses that the next segments are to have.
    given: VecDeque<u64>,
    next: u64,
}

impl Default for Addresses {
    fn default() -> Self {
        Self { given: VecDeque::new(), next: FIRST }
    }
}

impl Addresses {
    /// Says which addresses the next segments are to have; those given before are forgotten.
    pub(super) fn give(&mut self, addresses: impl Iterator<Item = u64>) {
        self.given.clear();
        // Beyond these no device has addresses, and sums could not be trusted.
        self.given.extend(addresses.filter(|&addr| addr < LAST));
    }

    /// Where a new segment of that size begins.
    pub(super) fn take(&mut self, size: u64) -> u64 {
        self.given.pop_front().unwrap_or_else(|| {
            let addr = self.next;
            self.next = addr.saturating_add(size).saturating_add(GAP);
            addr
        })
    }
}
