//! Adds up bytes by the place in the program that allocated them.

use rustc_hash::FxHashMap;
use vramscope_model::{FrameId, StackId, Symbols};

use crate::analysis::SiteBytes;
use crate::place;

/// Bytes and blocks by stack.
#[derive(Default)]
pub(super) struct ByStack {
    sums: FxHashMap<StackId, (u64, u64)>,
    before: (u64, u64),
}

/// What blocks are called of which nothing says where they were allocated, since that was before the recording.
pub(super) const BEFORE: &str = "older than the recording";

/// What stacks are joined by.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Site(FrameId),
    Label(String),
}

impl ByStack {
    pub(super) fn add(&mut self, stack: StackId, bytes: u64) {
        let sum = self.sums.entry(stack).or_default();
        sum.0 = sum.0.saturating_add(bytes);
        sum.1 += 1;
    }

    /// Adds a block that is older than the recording; its stack may be known all the same.
    pub(super) fn add_before(&mut self, stack: StackId, bytes: u64) {
        if stack.has_frames() {
            self.add(stack, bytes);
        } else {
            self.before.0 = self.before.0.saturating_add(bytes);
            self.before.1 += 1;
        }
    }

    /// By place, most bytes first.
    pub(super) fn by_site(self, symbols: &Symbols) -> Vec<SiteBytes> {
        let mut sites: FxHashMap<Key, (u64, u64)> = FxHashMap::default();
        let mut stacks: Vec<(StackId, (u64, u64))> = self.sums.into_iter().collect();
        stacks.sort_unstable();
        for (stack, (bytes, blocks)) in stacks {
            let key = match symbols.site(stack) {
                Some(site) => Key::Site(site),
                None => Key::Label(place::label(symbols, stack)),
            };
            let sum = sites.entry(key).or_default();
            sum.0 = sum.0.saturating_add(bytes);
            sum.1 += blocks;
        }
        if self.before.1 > 0 {
            sites.insert(Key::Label(BEFORE.to_owned()), self.before);
        }
        let mut sites: Vec<(Key, (u64, u64))> = sites.into_iter().collect();
        sites.sort_unstable_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
        sites
            .into_iter()
            .map(|(key, (bytes, blocks))| match key {
                Key::Site(site) => SiteBytes {
                    site: Some(place::location(symbols, site)),
                    label: place::site_label(symbols, site),
                    bytes,
                    blocks,
                },
                Key::Label(label) => SiteBytes { site: None, label, bytes, blocks },
            })
            .collect()
    }
}
