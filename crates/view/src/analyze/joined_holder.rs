//! From the blocks of a finding to the object that holds them, by address.
//!
//! Addresses are used again, so a block counts only if it was there when the holders were looked for, at the same address,
//! with the same size. Of those the newest have a vote: what was there early may be held by more than what grows.

use vramscope_detect as detect;
use vramscope_model::{DeviceRecording, EventIdx, TimeUs};
use vramscope_replay::{AllocId, Death, Lifetimes, Window};

use crate::holders::{Class, FoundHolder, HeldBlock, HoldersFile, Joined, OTHER_HOLDERS, holder_of};
use crate::quantity::grouped;

/// How many of the newest blocks have a vote.
const VOTERS: usize = 64;

/// Where blocks of findings are looked up.
pub(super) struct Lookup<'a> {
    pub(super) files: &'a [HoldersFile],
    pub(super) device: &'a DeviceRecording,
    pub(super) lifetimes: &'a Lifetimes,
    pub(super) window: Window,
}

impl Lookup<'_> {
    /// Who holds the blocks of a finding, and what to keep in mind about that.
    pub(super) fn holder(&self, finding: &detect::Finding) -> (Option<FoundHolder>, Option<String>) {
        if finding.members.is_empty() {
            return (None, None);
        }
        match finding.kind {
            detect::Kind::Leak | detect::Kind::Growing => self.of_survivors(&finding.members),
            detect::Kind::ReferenceCycle => (self.of_garbage(&finding.members), None),
            _ => (None, None),
        }
    }

    fn of_survivors(&self, members: &[AllocId]) -> (Option<FoundHolder>, Option<String>) {
        let Some(file) = self.nearest() else { return (None, None) };
        let (joined, alive) = self.joined(members, file);
        let caveat = (joined.len() * 2 < alive || alive == 0).then(|| {
            let found = match joined.len() {
                0 => "none".to_owned(),
                n => format!("only {}", grouped(n as u64)),
            };
            format!(
                "{found} of the {} blocks of a finding are in `{}` with the same address and size, so who holds them is {}",
                grouped(members.len() as u64),
                file.path,
                if joined.is_empty() { "not known" } else { "not sure" }
            )
        });
        (elected(file, &joined), caveat)
    }

    /// Garbage is gone sooner or later: any file may have seen it.
    fn of_garbage(&self, members: &[AllocId]) -> Option<FoundHolder> {
        let is_garbage = |found: &FoundHolder| found.holder.class == Class::CycleGarbage;
        let by_address = self.files.iter().filter_map(|file| {
            let (mut joined, _) = self.joined(members, file);
            joined.retain(|block| class_of(file, block) == Some(Class::CycleGarbage));
            elected(file, &joined)
        });
        let largest = by_address.filter(is_garbage).max_by_key(|found| found.holder.bytes);
        largest.or_else(|| self.of_garbage_of_that_size(members))
    }

    /// Where none was looked at while it was there: other garbage of the same makings.
    fn of_garbage_of_that_size(&self, members: &[AllocId]) -> Option<FoundHolder> {
        let is_alike = |block: &&HeldBlock| {
            block.device == Some(self.device.ordinal)
                && members.iter().any(|&id| self.lifetimes.size(id) == block.bytes)
        };
        let candidates = self.files.iter().flat_map(|file| {
            let alike = file.holders.blocks.iter().filter(is_alike);
            alike.filter(|block| class_of(file, block) == Some(Class::CycleGarbage)).filter_map(
                move |block| {
                    let holder = file.holders.holders.get(block.holder as usize)?;
                    Some((holder, file))
                },
            )
        });
        let (holder, file) = candidates.max_by_key(|(holder, _)| holder.bytes)?;
        (holder.path != OTHER_HOLDERS).then(|| FoundHolder {
            holder: holder.clone(),
            file: file.path.clone(),
            joined: Joined::BySize,
        })
    }

    /// The file that was written nearest to the state that findings are judged on; the last one where times are not known.
    fn nearest(&self) -> Option<&HoldersFile> {
        let last = self.window.to.0.checked_sub(1).and_then(|last| self.device.events.time(EventIdx(last)));
        let distance = |file: &HoldersFile| {
            let apart = last.zip(file.time_us).map(|(last, at)| last.0.abs_diff(at));
            apart.unwrap_or(u64::MAX)
        };
        let of_device = self
            .files
            .iter()
            .filter(|file| file.devices.is_empty() || file.devices.contains(&self.device.ordinal));
        // Of those that are as near the last, as `min_by_key` would take the first.
        of_device.rev().min_by_key(|file| distance(file))
    }

    /// The blocks that a file has of some, newest first; and how many of these were there when it was written.
    fn joined<'f>(&self, members: &[AllocId], file: &'f HoldersFile) -> (Vec<&'f HeldBlock>, usize) {
        let at = file.time_us.map(TimeUs);
        let mut alive = 0;
        let mut joined = Vec::new();
        for &id in members.iter().rev().filter(|&&id| self.is_there(id, at)) {
            alive += 1;
            let (address, bytes) = (self.lifetimes.addr(id), self.lifetimes.size(id));
            let blocks = &file.holders.blocks;
            let found = blocks.binary_search_by_key(&address, |block| block.address).ok();
            let same = |block: &&HeldBlock| block.bytes == bytes && block.device == Some(self.device.ordinal);
            joined.extend(found.and_then(|i| blocks.get(i)).filter(same));
        }
        (joined, alive)
    }

    /// Whether a block was there at a moment; where that is not known it may have been.
    fn is_there(&self, id: AllocId, at: Option<TimeUs>) -> bool {
        let Some(at) = at else { return self.lifetimes.death(id) == Death::Alive };
        let time = |event: EventIdx| self.device.events.time(event);
        let is_born = self.lifetimes.birth(id).and_then(time).is_none_or(|birth| birth <= at);
        let is_gone = match self.lifetimes.death(id) {
            Death::At(event) => time(event).is_some_and(|death| death <= at),
            Death::Unrecorded => true,
            Death::Alive => false,
        };
        is_born && !is_gone
    }
}

fn class_of(file: &HoldersFile, block: &HeldBlock) -> Option<Class> {
    file.holders.holders.get(block.holder as usize).map(|holder| holder.class)
}

/// The holder that the newest of some blocks vote for.
fn elected(file: &HoldersFile, newest_first: &[&HeldBlock]) -> Option<FoundHolder> {
    let voters = newest_first.iter().take(VOTERS).map(|block| block.address);
    let holder = holder_of(&file.holders, voters).filter(|_| !newest_first.is_empty())?;
    // What is too small to be named by itself names nobody.
    if holder.path == OTHER_HOLDERS {
        return None;
    }
    let is_its = |block: &&&HeldBlock| file.holders.holders.get(block.holder as usize) == Some(holder);
    Some(FoundHolder {
        holder: holder.clone(),
        file: file.path.clone(),
        joined: Joined::ByAddress {
            found: newest_first.len() as u64,
            held: newest_first.iter().filter(is_its).count() as u64,
        },
    })
}
