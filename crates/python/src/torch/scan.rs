//! Looks through objects whose fields are not known for pointers to objects that are. A word counts only if what it points to says by its class that it is one.

use super::class::{Classes, Family};
use crate::own_memory::Memory;

/// Bytes that are looked through where the allocator does not tell an object's size.
const UNKNOWN_SIZE: usize = 512;
/// No object of one class is larger.
const LARGEST: usize = 16 << 10;
/// Bytes of a list: three pointers.
const LIST: usize = 24;
/// Longer lists are not believed.
const LONGEST_LIST: usize = 1 << 16;

/// Something in a function that looks like what it saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The address of a saved tensor.
    Saved(usize),
    /// The address of a tensor in a plain list.
    Tensor(usize),
}

/// How many bytes of the object at `address` may be looked through. The GNU allocator writes the size of a block in front of it; whether that is the allocator is told by the
/// block behind, which must look like one too. With others the object may end before [`UNKNOWN_SIZE`], and what is found behind it may belong to its neighbour.
pub(crate) fn size(memory: &mut Memory, address: usize) -> usize {
    let mut from_block = || {
        let header = memory.word(address.checked_sub(8)?)?;
        let size = usize::try_from(header & !7).ok()?;
        let plausible = (32..=LARGEST).contains(&size) && size.is_multiple_of(16) && header & 2 == 0;
        let next = memory.word((address - 16).checked_add(size)? + 8)?;
        (plausible && next & 1 == 1 && next & !7 >= 32 && (next >> 47) == 0).then_some(size - 8)
    };
    from_block().unwrap_or(UNKNOWN_SIZE)
}

/// The tensors that the object at `address` refers to, from the offset `from` on. Its own address does not count.
pub(crate) fn tensors(memory: &mut Memory, classes: &mut Classes, address: usize, from: usize) -> Vec<usize> {
    let end = size(memory, address);
    let mut found = Vec::new();
    for at in (from..end).step_by(8) {
        let Some(pointer) = memory.pointer(address + at).filter(|&pointer| pointer != address) else {
            continue;
        };
        match classes.of(memory, pointer) {
            Some((_, Family::Tensor)) => found.push(pointer),
            // The scales of a quantised tensor.
            Some((_, Family::Quantizer)) => {
                let end = size(memory, pointer);
                let words: Vec<_> =
                    (8..end).step_by(8).filter_map(|at| memory.pointer(pointer + at)).collect();
                found.extend(words.into_iter().filter(|&word| classes.is(memory, word, Family::Tensor)));
            }
            _ => {}
        }
    }
    found
}

/// What the function at `address` seems to have saved, from the offset `from` on. `size` is that of a saved tensor, and `hooks` where it has what packed it.
///
/// A word that merely points to a tensor is not enough: fields that were never set keep what was there before. A saved tensor is recognised by its flags as well.
pub(crate) fn saved(
    memory: &mut Memory,
    classes: &mut Classes,
    address: usize,
    from: usize,
    size: usize,
    hooks: usize,
) -> Vec<Found> {
    let end = self::size(memory, address);
    let mut found = Vec::new();
    let mut at = from;
    while at + 8 <= end {
        let place = address + at;
        if at + size <= end && is_saved(memory, classes, place, hooks) == Some(true) {
            found.push(Found::Saved(place));
            at += size;
        } else if let Some(listed) = list(memory, classes, place, size, hooks) {
            found.extend(listed);
            at += LIST;
        } else {
            at += 8;
        }
    }
    found
}

/// Whether a saved tensor lies at `place` that holds something; `None` if it cannot be one, not even an empty one.
fn is_saved(memory: &mut Memory, classes: &mut Classes, place: usize, hooks: usize) -> Option<bool> {
    let tensor = match memory.word(place)? as usize {
        0 => false,
        word => match classes.of(memory, word)?.1 {
            Family::Tensor => true,
            Family::Undefined => false,
            _ => return None,
        },
    };
    let packed = match memory.word(place + hooks)? as usize {
        0 => false,
        word => {
            classes.is(memory, word, Family::SavedHooks).then_some(())?;
            true
        }
    };
    // Five flags come before the hooks, and the first says that nothing was ever saved here.
    let flags = memory.word(place + hooks.checked_sub(8)?)?.to_le_bytes();
    let are_flags = flags.iter().take(5).all(|&flag| flag <= 1);
    let holds = tensor || packed;
    (are_flags && !(holds && flags[0] == 1)).then_some(holds)
}

/// The list whose three pointers (begin, end, end of room) lie at `place`, if all that is in it is what can be in it: saved tensors, or tensors.
fn list(
    memory: &mut Memory,
    classes: &mut Classes,
    place: usize,
    size: usize,
    hooks: usize,
) -> Option<Vec<Found>> {
    let begin = memory.pointer(place)?;
    let end = memory.pointer(place + 8)?;
    let bytes = end.checked_sub(begin).filter(|&bytes| bytes > 0)?;
    memory.pointer(place + 16).filter(|&room| room >= end)?;
    let items = |stride: usize| {
        (bytes.is_multiple_of(stride) && bytes / stride <= LONGEST_LIST).then(|| (begin..end).step_by(stride))
    };
    if let Some(mut items) = items(size) {
        let found: Option<Vec<_>> = items.try_fold(Vec::new(), |mut found, item| {
            if is_saved(memory, classes, item, hooks)? {
                found.push(Found::Saved(item));
            }
            Some(found)
        });
        if let Some(found) = found.filter(|found| !found.is_empty()) {
            return Some(found);
        }
    }
    let found: Option<Vec<_>> = items(8)?
        .map(|item| match memory.word(item)? as usize {
            0 => Some(None),
            word => match classes.of(memory, word)?.1 {
                Family::Tensor => Some(Some(Found::Tensor(word))),
                Family::Undefined => Some(None),
                _ => None,
            },
        })
        .collect();
    let found: Vec<_> = found?.into_iter().flatten().collect();
    (!found.is_empty()).then_some(found)
}
