//! From addresses to numbers of nodes, by two array look-ups.

use super::pages::zeros;

/// 16 bytes: no two objects begin in the same.
const GRANULE_BITS: usize = 4;
/// 1 MiB is one chunk.
const CHUNK_BITS: usize = 20;
const GRANULES: usize = 1 << (CHUNK_BITS - GRANULE_BITS);
/// 16 GiB is one region.
const REGION_BITS: usize = 34;
const CHUNKS: usize = 1 << (REGION_BITS - CHUNK_BITS);
/// User space has 47 bits.
const REGIONS: usize = 1 << (47 - REGION_BITS);

/// Nothing is known of an address yet.
pub(super) const UNKNOWN: u32 = 0;
/// What is there is no node.
pub(super) const NO_NODE: u32 = u32::MAX;
/// References to the node are counted, but no edges: it is a module or a module's namespace.
pub(super) const CUT: u32 = 1 << 31;
/// As many nodes fit.
pub(super) const MOST_NODES: usize = (CUT - 2) as usize;

/// So many chunks are asked of the system together.
const SLAB: usize = 1 << 24;

/// Where the knowledge of one address is kept: the chunk's number, and the granule.
#[derive(Clone, Copy)]
pub(super) struct Slot(usize);

/// What is known of addresses: a node's number plus one (perhaps with [`CUT`]), [`NO_NODE`] or [`UNKNOWN`].
pub(super) struct Table {
    regions: Vec<Vec<u32>>,
    slabs: Vec<Vec<u32>>,
    /// The first one stands for all addresses that no object can have.
    chunks: usize,
    last: (usize, usize),
}

impl Table {
    pub(super) fn new() -> Self {
        let mut first = zeros(SLAB);
        first[..GRANULES].fill(NO_NODE);
        Self { regions: vec![Vec::new(); REGIONS], slabs: vec![first], chunks: 1, last: (usize::MAX, 0) }
    }

    /// Where the knowledge of an address is kept.
    #[inline]
    pub(super) fn slot(&mut self, address: usize) -> Slot {
        let number = address >> CHUNK_BITS;
        let start = if number == self.last.0 { self.last.1 } else { self.chunk(number) };
        // All of the first chunk says the same.
        Slot(start | ((address >> GRANULE_BITS) & (GRANULES - 1)))
    }

    fn chunk(&mut self, number: usize) -> usize {
        let Some(region) = self.regions.get_mut(number / CHUNKS) else { return 0 };
        if region.is_empty() {
            *region = zeros(CHUNKS);
        }
        let chunk = &mut region[number % CHUNKS];
        if *chunk == 0 {
            *chunk = self.chunks as u32;
            self.chunks += 1;
            if self.chunks * GRANULES > self.slabs.len() * SLAB {
                self.slabs.push(zeros(SLAB));
            }
        }
        let start = *chunk as usize * GRANULES;
        self.last = (number, start);
        start
    }

    #[inline]
    pub(super) fn get(&self, slot: Slot) -> u32 {
        self.slabs[slot.0 / SLAB][slot.0 % SLAB]
    }

    #[inline]
    pub(super) fn set(&mut self, slot: Slot, known: u32) {
        if slot.0 >= GRANULES {
            self.slabs[slot.0 / SLAB][slot.0 % SLAB] = known;
        }
    }

    /// Asks the processor to have it at hand soon.
    #[inline]
    pub(super) fn prefetch(&self, slot: Slot) {
        prefetch(&raw const self.slabs[slot.0 / SLAB][slot.0 % SLAB] as usize);
    }

    /// The node that may begin at an address. Addresses of which nothing is known take no room.
    pub(super) fn find(&self, address: usize) -> Option<u32> {
        let number = address >> CHUNK_BITS;
        let chunk = *self.regions.get(number / CHUNKS)?.get(number % CHUNKS)?;
        let granule = (address >> GRANULE_BITS) & (GRANULES - 1);
        node(self.get(Slot(chunk as usize * GRANULES + granule)))
    }
}

/// The node that an entry of the table stands for.
#[inline]
pub(super) fn node(known: u32) -> Option<u32> {
    if known == UNKNOWN || known == NO_NODE { None } else { Some((known & !CUT) - 1) }
}

/// Asks the processor to have an address at hand soon. Any address will do.
#[inline]
pub(super) fn prefetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching reads nothing that the program can see, and faults are ignored.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address as *const i8);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
