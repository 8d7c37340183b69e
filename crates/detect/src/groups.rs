//! Allocations that belong together: those of one stack, or, where there is none, of one size.

use rustc_hash::FxHashMap;
use vramscope_model::{DeviceRecording, EventIdx, FrameId, StackId, Symbols};
use vramscope_replay::{AllocId, Death, Lifetimes, Window};

/// The allocations of one stack (or of one size without a stack) that were born in the window, oldest first.
pub(crate) struct Group {
    /// The stack. Where events have none, that of a block that is left, if it has one.
    pub(crate) stack: StackId,
    /// The allocations.
    pub(crate) members: Vec<AllocId>,
    /// When blocks died that are older than the window and belong to the group as far as anyone can tell: by their stack,
    /// where an earlier snapshot knows it, else by their size and by when they died.
    pub(crate) older_deaths: Vec<EventIdx>,
}

/// All groups of a device.
pub(crate) struct Groups {
    groups: Vec<Group>,
    /// Blocks from before the window that are held at its end, by stack; for those nobody knows when they were born.
    older: FxHashMap<StackId, Vec<AllocId>>,
}

impl Groups {
    pub(crate) fn of(
        device: &DeviceRecording,
        lifetimes: &Lifetimes,
        symbols: &Symbols,
        window: Window,
    ) -> Self {
        // Blocks that are left may have a stack where their events have none; what is gone has not, so it would not do to
        // tell allocations apart by it.
        let stack_of = |id: AllocId| {
            lifetimes
                .birth(id)
                .and_then(|b| device.events.stacks().get(b.index()).copied())
                .unwrap_or(StackId::ABSENT)
        };
        // Most allocations have one of a few stacks: count first, so that each group is made in its final size.
        let mut counts = vec![0u32; symbols.n_stacks()];
        let born: Vec<AllocId> = lifetimes
            .born()
            .filter(|&id| lifetimes.birth(id).is_some_and(|b| b >= window.from && b < window.to))
            .collect();
        for &id in &born {
            if let Some(n) = counts.get_mut(stack_of(id).0 as usize) {
                *n += 1;
            }
        }
        let mut place = vec![u32::MAX; counts.len()];
        let mut groups: Vec<Group> = Vec::new();
        let mut by_size: FxHashMap<(StackId, u64), usize> = FxHashMap::default();
        for id in born {
            let stack = stack_of(id);
            let i = if stack.has_frames() {
                let Some(place) = place.get_mut(stack.0 as usize) else { continue };
                if *place == u32::MAX {
                    *place = groups.len() as u32;
                    let n = counts.get(stack.0 as usize).copied().unwrap_or(0) as usize;
                    groups.push(Group { stack, members: Vec::with_capacity(n), older_deaths: Vec::new() });
                }
                *place as usize
            } else {
                *by_size.entry((stack, lifetimes.requested(id).0)).or_insert_with(|| {
                    groups.push(Group { stack, members: Vec::new(), older_deaths: Vec::new() });
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
        for group in groups.iter_mut().filter(|g| !g.stack.has_frames()) {
            let named = group.members.iter().map(|&id| lifetimes.stack(id)).find(|s| s.has_frames());
            group.stack = named.unwrap_or(group.stack);
        }
        adopt_older_deaths(&mut groups, lifetimes, window);
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
    ) -> Vec<(FrameId, Group)> {
        let mut sites: Vec<(FrameId, Group)> = Vec::new();
        let mut place: FxHashMap<FrameId, usize> = FxHashMap::default();
        for group in &self.groups {
            let Some(site) = symbols.site(group.stack).filter(|_| keep(group)) else { continue };
            let i = *place.entry(site).or_insert_with(|| {
                let empty = Group { stack: group.stack, members: Vec::new(), older_deaths: Vec::new() };
                sites.push((site, empty));
                sites.len() - 1
            });
            if let Some((_, joined)) = sites.get_mut(i) {
                joined.members.extend_from_slice(&group.members);
                joined.older_deaths.extend_from_slice(&group.older_deaths);
            }
        }
        for (_, joined) in &mut sites {
            joined.members.sort_unstable();
        }
        sites
    }
}

/// Gives the deaths of blocks that are older than the window to the groups that they most likely belong to. Without this a
/// store that was full when recording began would seem to grow: what comes in has a birth, what goes out has not.
fn adopt_older_deaths(groups: &mut [Group], lifetimes: &Lifetimes, window: Window) {
    let mut by_stack: FxHashMap<StackId, Vec<EventIdx>> = FxHashMap::default();
    let mut by_size: FxHashMap<u64, Vec<EventIdx>> = FxHashMap::default();
    for id in lifetimes.all() {
        if lifetimes.birth(id).is_some_and(|b| b >= window.from) {
            break;
        }
        let Death::At(death) = lifetimes.death(id) else { continue };
        if death < window.from || death >= window.to {
            continue;
        }
        let stack = lifetimes.stack(id);
        if stack.has_frames() {
            by_stack.entry(stack).or_default().push(death);
        } else {
            by_size.entry(lifetimes.requested(id).0).or_default().push(death);
        }
    }
    if by_stack.is_empty() && by_size.is_empty() {
        return;
    }
    for group in groups.iter_mut() {
        if let Some(deaths) = by_stack.remove(&group.stack) {
            group.older_deaths.extend(deaths);
        }
    }
    // A store gives back an old block when it takes a new one: of the groups that keep blocks of that size, the one with
    // the nearest birth.
    let mut births: FxHashMap<u64, Vec<(EventIdx, usize)>> = FxHashMap::default();
    for (i, group) in groups.iter().enumerate() {
        for &id in group.members.iter().filter(|&&id| lifetimes.is_held_at(id, window.to)) {
            let size = lifetimes.requested(id).0;
            if let Some(birth) = lifetimes.birth(id).filter(|_| by_size.contains_key(&size)) {
                births.entry(size).or_default().push((birth, i));
            }
        }
    }
    let mut sizes: Vec<(u64, Vec<EventIdx>)> = by_size.into_iter().collect();
    sizes.sort_unstable();
    for (size, deaths) in sizes {
        let Some(births) = births.get_mut(&size) else { continue };
        births.sort_unstable();
        for death in deaths {
            let at = births.partition_point(|&(birth, _)| birth < death);
            let near = births.get(at.saturating_sub(1)..births.len().min(at + 1)).unwrap_or(&[]);
            if let Some(&(_, group)) = near.iter().min_by_key(|(birth, _)| birth.0.abs_diff(death.0)) {
                groups[group].older_deaths.push(death);
            }
        }
    }
}
