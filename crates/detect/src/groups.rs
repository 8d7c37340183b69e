//! Allocations that belong together: those of one stack, or, where there is none, of one size.

use rustc_hash::FxHashMap;
use vramscope_model::{FrameId, StackId, Symbols};
use vramscope_replay::{AllocId, Lifetimes, Window};

/// The allocations of one stack (or of one size without a stack) that were born in the window, oldest first.
pub(crate) struct Group {
    /// The stack.
    pub(crate) stack: StackId,
    /// The allocations.
    pub(crate) members: Vec<AllocId>,
}

/// All groups of a device.
pub(crate) struct Groups {
    groups: Vec<Group>,
    /// Blocks from before the window that are held at its end, by stack; for those nobody knows when they were born.
    older: FxHashMap<StackId, Vec<AllocId>>,
}

impl Groups {
    pub(crate) fn of(lifetimes: &Lifetimes, symbols: &Symbols, window: Window) -> Self {
        // Most allocations have one of a few stacks: count first, so that each group is made in its final size.
        let mut counts = vec![0u32; symbols.n_stacks()];
        let born: Vec<AllocId> = lifetimes
            .born()
            .filter(|&id| lifetimes.birth(id).is_some_and(|b| b >= window.from && b < window.to))
            .collect();
        for &id in &born {
            if let Some(n) = counts.get_mut(lifetimes.stack(id).0 as usize) {
                *n += 1;
            }
        }
        let mut place = vec![u32::MAX; counts.len()];
        let mut groups: Vec<Group> = Vec::new();
        let mut by_size: FxHashMap<(StackId, u64), usize> = FxHashMap::default();
        for id in born {
            let stack = lifetimes.stack(id);
            let i = if stack.has_frames() {
                let Some(place) = place.get_mut(stack.0 as usize) else { continue };
                if *place == u32::MAX {
                    *place = groups.len() as u32;
                    let n = counts.get(stack.0 as usize).copied().unwrap_or(0) as usize;
                    groups.push(Group { stack, members: Vec::with_capacity(n) });
                }
                *place as usize
            } else {
                *by_size.entry((stack, lifetimes.requested(id).0)).or_insert_with(|| {
                    groups.push(Group { stack, members: Vec::new() });
                    groups.len() - 1
                })
            };
            if let Some(group) = groups.get_mut(i) {
                group.members.push(id);
            }
        }
        let mut older: FxHashMap<StackId, Vec<AllocId>> = FxHashMap::default();
        for id in lifetimes.all() {
            if lifetimes.birth(id).is_some_and(|b| b >= window.from) {
                break;
            }
            if lifetimes.is_held_at(id, window.to) && lifetimes.stack(id).has_frames() {
                older.entry(lifetimes.stack(id)).or_default().push(id);
            }
        }
        Self { groups, older }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter()
    }

    /// Blocks of a stack that are held and older than the window.
    pub(crate) fn older(&self, stack: StackId) -> &[AllocId] {
        self.older.get(&stack).map_or(&[], |v| v)
    }

    /// Some of the groups, joined by their site; those without one are left out. Members are in the order of their
    /// births.
    pub(crate) fn by_site(
        &self,
        symbols: &Symbols,
        mut keep: impl FnMut(&Group) -> bool,
    ) -> Vec<(FrameId, Vec<AllocId>)> {
        let mut sites: Vec<(FrameId, Vec<AllocId>)> = Vec::new();
        let mut place: FxHashMap<FrameId, usize> = FxHashMap::default();
        for group in &self.groups {
            let Some(site) = symbols.site(group.stack).filter(|_| keep(group)) else { continue };
            let i = *place.entry(site).or_insert_with(|| {
                sites.push((site, Vec::new()));
                sites.len() - 1
            });
            if let Some((_, members)) = sites.get_mut(i) {
                members.extend_from_slice(&group.members);
            }
        }
        for (_, members) in &mut sites {
            members.sort_unstable();
        }
        sites
    }
}
