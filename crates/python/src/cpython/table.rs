//! From addresses to numbers of nodes, by two array look-ups.

use std::array;

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
/// References to the node are counted, but no edges: it is a class, a module or a module's namespace.
pub(super) const CUT: u32 = 1 << 31;
/// As many nodes fit.
pub(super) const MOST_NODES: usize = (CUT - 2) as usize;

/// What is known of one address.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    chunk: u32,
    granule: u16,
}

/// What is known of addresses: a node's number plus one (perhaps with [`CUT`]), [`NO_NODE`] or [`UNKNOWN`].
pub(super) struct Table {
    regions: Vec<Option<Box<[u32; CHUNKS]>>>,
    /// The first one stands for all addresses that no object can have.
    chunks: Vec<Box<[u32; GRANULES]>>,
    last: (usize, u32),
}

/// Zeros that cost nothing until they are written.
fn zeros<const N: usize>() -> Box<[u32; N]> {
    match vec![0; N].into_boxed_slice().try_into() {
        Ok(zeros) => zeros,
        Err(_) => Box::new(array::from_fn(|_| 0)), // never: it has that length
    }
}

impl Table {
    pub(super) fn new() -> Self {
        let mut nowhere = zeros();
        nowhere.fill(NO_NODE);
        Self { regions: (0..REGIONS).map(|_| None).collect(), chunks: vec![nowhere], last: (usize::MAX, 0) }
    }

    /// Where the knowledge of an address is kept.
    #[inline]
    pub(super) fn slot(&mut self, address: usize) -> Slot {
        let number = address >> CHUNK_BITS;
        let chunk = if number == self.last.0 { self.last.1 } else { self.chunk(number) };
        if chunk == 0 {
            return Slot { chunk, granule: 0 };
        }
        Slot { chunk, granule: (address >> GRANULE_BITS) as u16 }
    }

    fn chunk(&mut self, number: usize) -> u32 {
        let Some(region) = self.regions.get_mut(number / CHUNKS) else { return 0 };
        let region = region.get_or_insert_with(zeros);
        let chunk = &mut region[number % CHUNKS];
        if *chunk == 0 {
            *chunk = self.chunks.len() as u32;
            self.chunks.push(zeros());
        }
        self.last = (number, *chunk);
        *chunk
    }

    #[inline]
    pub(super) fn get(&self, slot: Slot) -> u32 {
        self.chunks[slot.chunk as usize][slot.granule as usize]
    }

    #[inline]
    pub(super) fn set(&mut self, slot: Slot, known: u32) {
        if slot.chunk != 0 {
            self.chunks[slot.chunk as usize][slot.granule as usize] = known;
        }
    }

    /// Asks the processor to have it at hand soon.
    #[inline]
    pub(super) fn prefetch(&self, slot: Slot) {
        prefetch(&raw const self.chunks[slot.chunk as usize][slot.granule as usize] as usize);
    }

    /// The node that may begin at an address. Addresses of which nothing is known take no room.
    pub(super) fn find(&self, address: usize) -> Option<u32> {
        let number = address >> CHUNK_BITS;
        let chunk = self.regions.get(number / CHUNKS)?.as_ref()?[number % CHUNKS];
        let known = self.chunks[chunk as usize][(address >> GRANULE_BITS) & (GRANULES - 1)];
        node(known)
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
