//! The allocator itself: requests and frees in, segments and blocks out.
//!
//! Source: the allocator reference, §4 and §5.

use std::collections::BTreeSet;

use vramscope_model::{BlockState, PoolKind, StreamId};

use super::addresses::Addresses;
use super::block::{Block, Id, NONE, Segment, Slots, Use};
use super::config::{Config, MIB, Rules, SMALL_MAX, Tie};
use super::outcome::Limits;
use super::pool::{Key, Pool};
use super::tally::Tally;

/// The least that is split off: what cannot serve any request stays with the block.
pub(super) const LEAST_BLOCK: u64 = 512;
/// In the large pool a rest of at most this many bytes stays with the block.
pub(super) const LARGE_REST: u64 = MIB;
/// No device has more, so a request for more fails.
const LARGEST: u64 = 1 << 46;

/// A request that could not be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    /// What was asked for, rounded.
    pub(super) size: u64,
}

/// The allocator of one device.
#[derive(Clone, Debug)]
pub(super) struct Allocator<'a> {
    pub(super) config: &'a Config,
    pub(super) rules: Rules,
    pub(super) limits: Limits,
    pub(super) blocks: Slots<Block>,
    pub(super) segments: Slots<Segment>,
    pub(super) pools: Vec<Pool>,
    /// The pools of each stream by its number: for small and for large requests.
    pools_of: Vec<[u32; 2]>,
    /// Blocks that wait for another stream.
    pub(super) pending: BTreeSet<Id>,
    /// Whether memory was given back, for which the driver waits until all streams are done: the next request finds that out.
    pub(super) was_waited_for: bool,
    /// Owners whose pending blocks became free because everything was waited for.
    pub(super) completed_early: Vec<u32>,
    /// How often small and large blocks were searched for, where garbage is collected.
    pub(super) searches: [u32; 2],
    /// How many segments there ever were.
    pub(super) n_registered: u32,
    /// How many blocks there ever were.
    n_created: u32,
    pub(super) addresses: Addresses,
    pub(super) tally: Tally,
}

const NO_POOL: u32 = u32::MAX;

impl<'a> Allocator<'a> {
    pub(super) fn new(config: &'a Config, rules: Rules, limits: Limits) -> Self {
        Self {
            config,
            rules,
            limits,
            blocks: Slots::default(),
            segments: Slots::default(),
            pools: Vec::new(),
            pools_of: Vec::new(),
            pending: BTreeSet::new(),
            was_waited_for: false,
            completed_early: Vec::new(),
            searches: [0; 2],
            n_registered: 0,
            n_created: 0,
            addresses: Addresses::default(),
            tally: Tally::default(),
        }
    }

    /// Serves a request.
    ///
    /// # Errors
    /// When memory runs out, even after all that is free was given back.
    pub(super) fn malloc(&mut self, request: u64, stream: StreamId, owner: u32) -> Result<Id, Failed> {
        let (Some(size), true) = (self.config.round(request), request <= LARGEST) else {
            return Err(Failed { size: request });
        };
        if self.was_waited_for {
            self.complete_all();
        }
        let obtain = self.config.segment_size(size).unwrap_or(size);
        let pool = self.pool_for(size, stream);
        let found = match self.search(pool, size) {
            Some(block) => Some(block),
            None => self.obtain(pool, size, obtain),
        };
        let Some(block) = found else { return Err(Failed { size }) };
        let block = self.split(block, size);
        let held = &mut self.blocks[block];
        held.usage = Use::Held;
        held.owner = owner;
        let bytes = held.size;
        self.tally.hold(bytes);
        Ok(block)
    }

    /// Takes a block back. It can be handed out at once unless another stream may still use it.
    pub(super) fn free(&mut self, block: Id, is_pending: bool) {
        self.tally.give_back(self.blocks[block].size);
        if is_pending {
            self.blocks[block].usage = Use::Pending;
            self.pending.insert(block);
        } else {
            self.make_free(block);
        }
    }

    /// No stream uses a pending block any more.
    pub(super) fn complete(&mut self, block: Id) {
        if self.pending.remove(&block) {
            self.make_free(block);
        }
    }

    /// Makes a block available, as one with its free neighbours.
    pub(super) fn make_free(&mut self, block: Id) {
        self.blocks[block].usage = Use::Free;
        self.merge_with_neighbours(block);
        self.insert_free(block);
    }

    /// Every block with memory behind it: where it lies, its bytes and its state.
    pub(super) fn layout(&self) -> impl Iterator<Item = (u64, (u64, BlockState))> {
        self.blocks.numbered().filter_map(|(_, block)| Some((block.addr, (block.size, block.usage.state()?))))
    }

    /// The pool that serves requests of a size, rounded.
    pub(super) fn pool_for(&mut self, size: u64, stream: StreamId) -> u32 {
        self.pool(if size <= SMALL_MAX { PoolKind::Small } else { PoolKind::Large }, stream)
    }

    /// The pool that serves a kind of requests of a stream.
    pub(super) fn pool(&mut self, kind: PoolKind, stream: StreamId) -> u32 {
        let place = usize::from(stream.0);
        if place >= self.pools_of.len() {
            self.pools_of.resize(place + 1, [NO_POOL; 2]);
        }
        let known = self.pools_of[place][kind as usize];
        if known != NO_POOL {
            return known;
        }
        let pool = self.pools.len() as u32;
        self.pools.push(Pool::new(kind));
        self.pools_of[place][kind as usize] = pool;
        pool
    }

    /// Bytes free in the pool that would serve a request, and the largest block of them.
    pub(super) fn free_for(&mut self, size: u64, stream: StreamId) -> (u64, u64) {
        let pool = self.pool_for(size, stream);
        self.pools[pool as usize].free_bytes()
    }

    /// Takes the free block out of its pool that serves a request, if there is one.
    fn search(&mut self, pool: u32, size: u64) -> Option<Id> {
        if self.collects_garbage() {
            let searches = &mut self.searches[self.pools[pool as usize].kind as usize];
            *searches = searches.wrapping_add(1);
        }
        let key = self.best_fit(pool, size)?;
        self.pools[pool as usize].free.remove(&key);
        Some(key.id)
    }

    /// The free block that serves a request: the smallest that is large enough, with exceptions for expandable segments and
    /// for blocks that must not be split.
    fn best_fit(&self, pool: u32, size: u64) -> Option<Key> {
        let mut candidates = self.pools[pool as usize].free.range(Key::at_least(size)..).copied();
        let mut best = candidates.next()?;
        if self.is_expandable(best.id) {
            if self.config.expandable_segments {
                // What can grow counts as large as it can become, so that holes are filled first.
                let mut reach = self.reach(best.id);
                for next in candidates {
                    let next_reach = self.reach(next.id);
                    if next_reach >= reach {
                        break;
                    }
                    (best, reach) = (next, next_reach);
                    if !self.is_expandable(best.id) {
                        break;
                    }
                }
            } else {
                best = candidates.find(|key| !self.is_expandable(key.id))?;
            }
        }
        match self.config.max_split_size {
            Some(max) if size < max && best.size >= max => None,
            Some(max)
                if size >= max && best.size >= size.saturating_add(self.config.max_non_split_rounding) =>
            {
                None
            }
            _ => Some(best),
        }
    }

    /// The bytes of a block and of what could be mapped right behind it.
    fn reach(&self, block: Id) -> u64 {
        let Block { size, next, .. } = self.blocks[block];
        if next != NONE && self.blocks[next].usage == Use::Unmapped {
            size.saturating_add(self.blocks[next].size)
        } else {
            size
        }
    }

    /// Cuts what is not needed off a block that is in no pool. Returns the block to hand out.
    fn split(&mut self, block: Id, size: u64) -> Id {
        let Block { size: whole, pool, .. } = self.blocks[block];
        let rest = whole.saturating_sub(size);
        let is_split = if self.pools[pool as usize].kind == PoolKind::Small || self.config.expandable_segments
        {
            rest >= LEAST_BLOCK
        } else {
            self.config.max_split_size.is_none_or(|max| size < max) && rest > LARGE_REST
        };
        if !is_split {
            return block;
        }
        let Block { addr, prev, segment, .. } = self.blocks[block];
        let front =
            self.add_block(Block { prev, next: block, ..Block::alone(addr, size, segment, pool, Use::Held) });
        self.link_next(prev, front);
        let rest_of = &mut self.blocks[block];
        rest_of.prev = front;
        rest_of.addr += size;
        rest_of.size = rest;
        rest_of.usage = Use::Free;
        self.insert_free(block);
        front
    }

    /// Joins a block that is in no pool with its neighbours that are in the same state and in use by nobody.
    pub(super) fn merge_with_neighbours(&mut self, block: Id) {
        let Block { prev, next, .. } = self.blocks[block];
        if self.absorb(block, prev) {
            let Block { addr, size, prev: before, .. } = self.blocks[prev];
            let this = &mut self.blocks[block];
            this.addr = addr;
            this.size += size;
            this.prev = before;
            self.link_next(before, block);
            self.blocks.remove(prev);
        }
        if self.absorb(block, next) {
            let Block { size, next: behind, .. } = self.blocks[next];
            let this = &mut self.blocks[block];
            this.size += size;
            this.next = behind;
            if behind != NONE {
                self.blocks[behind].prev = block;
            }
            self.blocks.remove(next);
        }
    }

    /// Takes a neighbour out of its pool if it can become a part of the block.
    fn absorb(&mut self, block: Id, neighbour: Id) -> bool {
        if neighbour == NONE || self.blocks[neighbour].usage != self.blocks[block].usage {
            return false;
        }
        match self.blocks[neighbour].usage {
            Use::Free => self.remove_free(neighbour),
            Use::Unmapped => self.remove_unmapped(neighbour),
            Use::Held | Use::Pending => return false,
        }
        true
    }

    /// A new block's number.
    pub(super) fn add_block(&mut self, mut block: Block) -> Id {
        let created = self.n_created;
        self.n_created = created.wrapping_add(1);
        block.created = created;
        self.blocks.add(block)
    }

    pub(super) fn link_next(&mut self, prev: Id, next: Id) {
        if prev != NONE {
            self.blocks[prev].next = next;
        }
    }

    pub(super) fn is_expandable(&self, block: Id) -> bool {
        self.segments[self.blocks[block].segment].is_expandable()
    }

    pub(super) fn key(&self, id: Id) -> Key {
        let block = &self.blocks[id];
        let tie = match self.rules.tie {
            Tie::Address => block.addr,
            Tie::Creation => u64::from(block.created),
            Tie::Registration => {
                let segment = &self.segments[block.segment];
                let place = block.addr.saturating_sub(segment.base) / LEAST_BLOCK;
                u64::from(segment.registration) << 32 | place.min(u64::from(u32::MAX))
            }
        };
        Key { size: block.size, tie, id }
    }

    pub(super) fn insert_free(&mut self, block: Id) {
        let pool = self.blocks[block].pool as usize;
        self.blocks[block].free_since = self.searches[self.pools[pool].kind as usize];
        let key = self.key(block);
        self.pools[pool].free.insert(key);
    }

    pub(super) fn remove_free(&mut self, block: Id) {
        let key = self.key(block);
        let pool = self.blocks[block].pool as usize;
        self.pools[pool].free.remove(&key);
    }

    pub(super) fn insert_unmapped(&mut self, block: Id) {
        let Block { addr, pool, .. } = self.blocks[block];
        self.pools[pool as usize].unmapped.insert((addr, block));
    }

    pub(super) fn remove_unmapped(&mut self, block: Id) {
        let Block { addr, pool, .. } = self.blocks[block];
        self.pools[pool as usize].unmapped.remove(&(addr, block));
    }
}
