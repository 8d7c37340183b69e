//! Whose blocks keep memory from being given back, at one moment.
//!
//! Free memory is stranded in a unit (a segment, or a page of an expandable one) of which something is in use. Each stranded
//! byte is counted once, by what keeps its unit:
//!
//! - *alone*: all that is kept in the unit belongs to one place, and takes at most a quarter of it. That place pins it.
//! - *shared*: several places keep something in it, at most a quarter of it together. None of them alone would set it free.
//! - *dense*: more than a quarter of the unit is kept. That is a segment in use, not a pinned one.
//! - *passing*: nothing in it is kept; what is in use will be gone by the next step.
//!
//! `stranded = Σ alone + shared + dense + passing`, exactly.

use rustc_hash::FxHashMap;
use vramscope_model::{Bytes, FrameId, StackId, Symbols};

use crate::domain::Portions;
use crate::kept::Kept;
use crate::layout::Layout;
use crate::lifetimes::{AllocId, Death, Lifetimes};
use crate::units::{Unit, parts_of};

/// A place in the program: what blocks are put together by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The innermost frame of the user's code.
    Site(FrameId),
    /// A stack without one.
    Stack(StackId),
    /// Blocks that are older than the recording and of which no stack is known.
    Older,
}

impl Place {
    /// The place that allocated a block.
    pub fn of(symbols: &Symbols, lifetimes: &Lifetimes, id: AllocId) -> Self {
        let stack = lifetimes.stack(id);
        match symbols.site(stack) {
            Some(site) => Self::Site(site),
            None if !stack.has_frames() && lifetimes.birth(id).is_none() => Self::Older,
            None => Self::Stack(stack),
        }
    }

    /// The frame, if it has one.
    pub fn site(self) -> Option<FrameId> {
        match self {
            Self::Site(site) => Some(site),
            Self::Stack(_) | Self::Older => None,
        }
    }
}

/// What keeps a unit of which something is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeper {
    /// One place, by its number.
    Alone(u32),
    Shared,
    Dense,
    Passing,
}

/// The share of a unit that pins may take: the fourth part.
const PIN_SHARE: u64 = 4;

/// What keeps a unit of that size in which so many bytes are kept by some places (by number).
pub(crate) fn keeper(size: u64, kept: u64, mut places: impl Iterator<Item = u32>) -> Keeper {
    match (places.next(), places.next()) {
        (None, _) => Keeper::Passing,
        _ if kept > size / PIN_SHARE => Keeper::Dense,
        (Some(one), None) => Keeper::Alone(one),
        (Some(_), Some(_)) => Keeper::Shared,
    }
}

/// A place whose blocks pin memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The place.
    pub place: Place,
    /// A stack of it.
    pub stack: StackId,
    /// Stranded bytes that it alone pins.
    pub alone: Bytes,
    /// Stranded bytes that it pins together with other places; each of them counts them.
    pub shared: Bytes,
    /// The units that it pins, alone or with others.
    pub segments: u64,
    /// Its blocks in them.
    pub blocks: u64,
    /// Bytes of those.
    pub block_bytes: Bytes,
    /// Those of the blocks that are never freed.
    pub survivors: u64,
    newest: Option<AllocId>,
}

impl Pin {
    const NONE: Self = Self {
        place: Place::Stack(StackId::ABSENT),
        stack: StackId::ABSENT,
        alone: Bytes::ZERO,
        shared: Bytes::ZERO,
        segments: 0,
        blocks: 0,
        block_bytes: Bytes::ZERO,
        survivors: 0,
        newest: None,
    };
}

/// Stranded bytes at a moment, by what keeps them.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    /// Places that pin, most bytes alone first, then most bytes shared.
    pub places: Vec<Pin>,
    /// All stranded bytes.
    pub stranded: Bytes,
    /// Those pinned by one place.
    pub alone: Bytes,
    /// Those pinned by several.
    pub shared: Bytes,
    /// Those in units of which more than a quarter is kept.
    pub dense: Bytes,
    /// Those in units in which nothing is kept.
    pub passing: Bytes,
}

/// A unit of which something is in use.
struct InUse {
    unit: Unit,
    used: u64,
    kept: u64,
    /// Its kept blocks, with the number of their place.
    blocks: Vec<(u32, AllocId)>,
}

impl Pins {
    /// Who pins what in a layout.
    pub fn of(
        layout: &Layout,
        lifetimes: &Lifetimes,
        symbols: &Symbols,
        kept: &Kept,
        portions: Portions,
    ) -> Self {
        let mut numbers: FxHashMap<Place, u32> = FxHashMap::default();
        let mut this = Self::default();
        for stretch in layout.stretches() {
            // Blocks come by address, so the parts of a unit come one after the other.
            let mut open: Option<InUse> = None;
            for block in layout.blocks_in(stretch) {
                let stays = block.id.filter(|&id| !block.pending && kept.is_kept(lifetimes, id));
                for part in parts_of(stretch, portions, block.addr, block.size.0).into_iter().flatten() {
                    if open.as_ref().is_some_and(|u| u.unit != part.unit) {
                        this.close(open.take(), lifetimes);
                    }
                    let empty = InUse { unit: part.unit, used: 0, kept: 0, blocks: Vec::new() };
                    let unit = open.get_or_insert(empty);
                    unit.used = unit.used.saturating_add(part.bytes);
                    if let Some(id) = stays {
                        let stack = lifetimes.stack(id);
                        let place = Place::of(symbols, lifetimes, id);
                        let number = *numbers.entry(place).or_insert_with(|| {
                            this.places.push(Pin { place, stack, ..Pin::NONE });
                            this.places.len() as u32 - 1
                        });
                        unit.kept = unit.kept.saturating_add(part.bytes);
                        unit.blocks.push((number, id));
                    }
                }
            }
            this.close(open, lifetimes);
        }
        this.places.retain(|pin| pin.segments > 0);
        this.places.sort_by(|a, b| {
            (b.alone, b.shared).cmp(&(a.alone, a.shared)).then_with(|| a.place.cmp(&b.place))
        });
        this
    }

    /// Counts a unit of which all blocks have been seen.
    fn close(&mut self, unit: Option<InUse>, lifetimes: &Lifetimes) {
        let Some(unit) = unit else { return };
        let free = Bytes(unit.unit.size.saturating_sub(unit.used));
        if free == Bytes::ZERO {
            return;
        }
        self.stranded += free;
        let mut places: Vec<u32> = unit.blocks.iter().map(|&(place, _)| place).collect();
        places.sort_unstable();
        places.dedup();
        let keeper = keeper(unit.unit.size, unit.kept, places.iter().copied());
        match keeper {
            Keeper::Alone(_) => self.alone += free,
            Keeper::Shared => self.shared += free,
            Keeper::Dense => self.dense += free,
            Keeper::Passing => self.passing += free,
        }
        if !matches!(keeper, Keeper::Alone(_) | Keeper::Shared) {
            return;
        }
        for &place in &places {
            let Some(pin) = self.places.get_mut(place as usize) else { continue };
            pin.segments += 1;
            *if places.len() == 1 { &mut pin.alone } else { &mut pin.shared } += free;
        }
        for &(place, id) in &unit.blocks {
            let Some(pin) = self.places.get_mut(place as usize) else { continue };
            // A block that reaches over two pages comes twice, one time after the other.
            if pin.newest != Some(id) {
                pin.newest = Some(id);
                pin.blocks += 1;
                pin.block_bytes += lifetimes.size(id);
                pin.survivors += u64::from(lifetimes.death(id) == Death::Alive);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_a_unit() {
        let check = |kept, places: &[u32], want| {
            assert_eq!(keeper(100, kept, places.iter().copied()), want, "{kept} by {places:?}");
        };
        check(0, &[], Keeper::Passing);
        check(25, &[7], Keeper::Alone(7));
        check(26, &[7], Keeper::Dense);
        check(25, &[7, 9], Keeper::Shared);
        check(100, &[7, 9], Keeper::Dense);
    }
}
