//! Texts, frames, stacks, streams and pools, each distinct one stored once.
//!
//! All snapshots read in one go share one [`Symbols`], so that equal stacks of different files have equal ids.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};

use crate::origin::Origin;

/// A distinct text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StringId(pub u32);

/// A distinct frame: file, line and function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// A distinct stack of frames, innermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

impl StackId {
    /// No stack was recorded: the entry has no frames at all.
    pub const ABSENT: Self = Self(0);
    /// A stack was recorded but holds no frame (a thread without Python code, when only Python is recorded).
    pub const EMPTY: Self = Self(1);

    /// Whether there is any frame to show.
    #[inline]
    pub fn has_frames(self) -> bool {
        self.0 > 1
    }
}

/// A distinct CUDA stream. At most 65,535 are told apart; the rest share the last number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u16);

/// A distinct memory pool; 0 is the default one. At most 65,535 are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(pub u16);

impl PoolId {
    /// The pool that all allocations use unless told otherwise.
    pub const DEFAULT: Self = Self(0);
}

/// One frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The file as it was recorded.
    pub file: StringId,
    /// The function.
    pub name: StringId,
    /// The line, counted from 1; 0 where unknown.
    pub line: u32,
    /// Whose code it is.
    pub origin: Origin,
}

/// The tables behind the ids.
#[derive(Clone, Debug)]
pub struct Symbols {
    text: String,
    text_ends: Vec<u32>,
    text_lookup: HashTable<u32>,
    frames: Vec<Frame>,
    frame_lookup: FxHashMap<(StringId, StringId, u32), FrameId>,
    stack_frames: Vec<FrameId>,
    stack_ends: Vec<u32>,
    stack_lookup: HashTable<u32>,
    /// The innermost user frame of each stack.
    sites: Vec<Option<FrameId>>,
    streams: Numbered<u64>,
    pools: Numbered<(u64, u64)>,
}

/// Distinct things by a number of 16 bits, in the order of their first use.
#[derive(Clone, Debug)]
struct Numbered<T> {
    items: Vec<T>,
    lookup: FxHashMap<T, u16>,
}

impl<T: Copy + Eq + Hash> Numbered<T> {
    fn with(first: T) -> Self {
        Self { items: vec![first], lookup: FxHashMap::from_iter([(first, 0)]) }
    }

    fn number(&mut self, item: T) -> u16 {
        if let Some(&known) = self.lookup.get(&item) {
            return known;
        }
        if self.items.len() < usize::from(u16::MAX) {
            self.lookup.insert(item, self.items.len() as u16);
            self.items.push(item);
        }
        (self.items.len() - 1) as u16
    }
}

impl Default for Symbols {
    fn default() -> Self {
        let mut symbols = Self {
            text: String::new(),
            text_ends: Vec::new(),
            text_lookup: HashTable::new(),
            frames: Vec::new(),
            frame_lookup: FxHashMap::default(),
            stack_frames: Vec::new(),
            stack_ends: vec![0, 0],
            stack_lookup: HashTable::new(),
            sites: vec![None, None],
            streams: Numbered::with(0),
            pools: Numbered::with((0, 0)),
        };
        // The empty list of frames is stack 1, whoever asks for it.
        symbols.stack_lookup.insert_unique(hash_of(&[] as &[FrameId]), StackId::EMPTY.0, |_| 0);
        symbols
    }
}

fn hash_of<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

fn span<'a, T>(items: &'a [T], ends: &[u32], i: u32) -> &'a [T] {
    let i = i as usize;
    let start = if i == 0 { 0 } else { ends.get(i - 1).copied().unwrap_or(0) };
    let end = ends.get(i).copied().unwrap_or(start);
    items.get(start as usize..end as usize).unwrap_or(&[])
}

impl Symbols {
    /// The id of a text.
    pub fn string(&mut self, text: &str) -> StringId {
        let key = hash_of(text);
        let Self { text: all, text_ends, text_lookup, .. } = self;
        let at = |all: &str, ends: &[u32], i: u32| hash_of(str_at(all, ends, i));
        if let Some(&i) = text_lookup.find(key, |&i| str_at(all, text_ends, i) == text) {
            return StringId(i);
        }
        // Beyond 4 GiB of distinct texts all further ones are shown as nothing: the ends would not fit.
        let text = if u32::try_from(all.len() + text.len()).is_ok() { text } else { "" };
        let id = text_ends.len() as u32;
        all.push_str(text);
        text_ends.push(all.len() as u32);
        text_lookup.insert_unique(key, id, |&i| at(all, text_ends, i));
        StringId(id)
    }

    /// The id of a frame.
    pub fn frame(&mut self, file: &str, name: &str, line: u32) -> FrameId {
        let key = (self.string(file), self.string(name), line);
        if let Some(&id) = self.frame_lookup.get(&key) {
            return id;
        }
        let id = FrameId(self.frames.len() as u32);
        self.frames.push(Frame { file: key.0, name: key.1, line, origin: Origin::of(file, name) });
        self.frame_lookup.insert(key, id);
        id
    }

    /// The id of a stack, innermost frame first.
    pub fn stack(&mut self, frames: &[FrameId]) -> StackId {
        let key = hash_of(frames);
        let Self { stack_frames, stack_ends, stack_lookup, .. } = self;
        if let Some(&i) = stack_lookup.find(key, |&i| span(stack_frames, stack_ends, i) == frames) {
            return StackId(i);
        }
        let id = stack_ends.len() as u32;
        stack_frames.extend_from_slice(frames);
        stack_ends.push(stack_frames.len() as u32);
        stack_lookup.insert_unique(key, id, |&i| hash_of(span(stack_frames, stack_ends, i)));
        let site = frames.iter().copied().find(|&f| self.get_frame(f).origin == Origin::User);
        self.sites.push(site);
        StackId(id)
    }

    /// The id of a CUDA stream, given its handle as recorded.
    pub fn stream(&mut self, handle: u64) -> StreamId {
        StreamId(self.streams.number(handle))
    }

    /// The id of a memory pool, given the pair that names it.
    pub fn pool(&mut self, name: (u64, u64)) -> PoolId {
        PoolId(self.pools.number(name))
    }

    /// The text of that id.
    pub fn str(&self, id: StringId) -> &str {
        str_at(&self.text, &self.text_ends, id.0)
    }

    /// The frame of that id.
    pub fn get_frame(&self, id: FrameId) -> Frame {
        self.frames.get(id.0 as usize).copied().unwrap_or(Frame {
            file: StringId(u32::MAX),
            name: StringId(u32::MAX),
            line: 0,
            origin: Origin::Native,
        })
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, id: StackId) -> &[FrameId] {
        span(&self.stack_frames, &self.stack_ends, id.0)
    }

    /// The innermost user frame of a stack: its *site*.
    #[inline]
    pub fn site(&self, id: StackId) -> Option<FrameId> {
        self.sites.get(id.0 as usize).copied().flatten()
    }

    /// The handle of a stream as recorded.
    pub fn stream_handle(&self, id: StreamId) -> u64 {
        self.streams.items.get(id.0 as usize).copied().unwrap_or(0)
    }

    /// The pair that names a pool.
    pub fn pool_name(&self, id: PoolId) -> (u64, u64) {
        self.pools.items.get(id.0 as usize).copied().unwrap_or((0, 0))
    }

    /// How many distinct stacks there are, the absent and the empty one included.
    pub fn n_stacks(&self) -> usize {
        self.stack_ends.len()
    }

    /// How many distinct frames there are.
    pub fn n_frames(&self) -> usize {
        self.frames.len()
    }
}

fn str_at<'a>(all: &'a str, ends: &[u32], i: u32) -> &'a str {
    let i = i as usize;
    let start = if i == 0 { 0 } else { ends.get(i - 1).copied().unwrap_or(u32::MAX) };
    let end = ends.get(i).copied().unwrap_or(start);
    all.get(start as usize..end as usize).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_things_share_an_id() {
        let mut s = Symbols::default();
        let lib = s.frame("/v/lib/python3.12/site-packages/torch/nn/functional.py", "conv2d", 1);
        let user = s.frame("/srv/train.py", "forward", 14);
        let a = s.stack(&[lib, user]);
        assert_eq!(s.stack(&[lib, user]), a);
        assert_ne!(s.stack(&[user, lib]), a);
        assert_eq!(s.stack(&[]), StackId::EMPTY);
        assert_eq!(s.site(a), Some(user));
        assert_eq!(s.site(StackId::ABSENT), None);
        assert_eq!(s.str(s.get_frame(user).name), "forward");
        assert_eq!(s.frames(a), [lib, user]);
        assert_eq!(s.stream(0), StreamId(0));
        assert_eq!(s.stream(77), s.stream(77));
        assert_eq!(s.pool((0, 0)), PoolId::DEFAULT);
    }
}
