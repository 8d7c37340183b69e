//! Looks through objects whose fields are not known for pointers to objects that are. A word counts only if what it points to says by its class that it is one.

use super::class::{Classes, Family};
use super::memory::Memory;

/// Bytes that are looked through where the allocator does not tell an object's size.
const UNKNOWN_SIZE: usize = 512;
/// No object of one class is larger.
const LARGEST: usize = 16 << 10;
/// Longer lists are not believed.
const LONGEST_LIST: usize = 1 << 16;

/// Something that an object refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Tensor(usize),
    /// What packed a saved tensor.
    Hooks(usize),
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

/// What the function at `address` seems to have saved, from the offset `from` on: tensors, tensors that hooks packed, and lists of either. `saved` is the size of a saved tensor.
pub(crate) fn saved(
    memory: &mut Memory,
    classes: &mut Classes,
    address: usize,
    from: usize,
    saved: usize,
    hooks: Option<usize>,
) -> Vec<Found> {
    // The last word may lie behind the object, and then holds what was there before it: blocks are multiples of 16 bytes.
    let end = size(memory, address).saturating_sub(8);
    let mut found = Vec::new();
    let mut at = from;
    while at < end {
        let Some(pointer) = memory.pointer(address + at).filter(|&pointer| pointer != address) else {
            at += 8;
            continue;
        };
        match classes.of(memory, pointer) {
            Some((_, Family::Tensor)) => found.push(Found::Tensor(pointer)),
            Some((_, Family::SavedHooks)) => found.push(Found::Hooks(pointer)),
            Some(_) => {}
            None => {
                let listed = list(memory, classes, address + at, saved, hooks)
                    .or_else(|| list(memory, classes, address + at, 8, None));
                if let Some(listed) = listed {
                    found.extend(listed);
                    // The end of the list and of its room.
                    at += 16;
                }
            }
        }
        at += 8;
    }
    found
}

/// The list whose three pointers (begin, end, end of room) lie at `place`, if all that is in it is what can be in it.
fn list(
    memory: &mut Memory,
    classes: &mut Classes,
    place: usize,
    stride: usize,
    hooks: Option<usize>,
) -> Option<Vec<Found>> {
    let [begin, end, room] = [0, 8, 16].map(|at| memory.pointer(place + at));
    let (begin, end, room) = (begin?, end?, room?);
    let bytes = end.checked_sub(begin)?;
    if bytes == 0 || !bytes.is_multiple_of(stride) || bytes / stride > LONGEST_LIST || room < end {
        return None;
    }
    let mut found = Vec::new();
    for item in (begin..end).step_by(stride) {
        let word = memory.word(item)? as usize;
        match classes.of(memory, word) {
            Some((_, Family::Tensor)) => found.push(Found::Tensor(word)),
            Some((_, Family::Undefined)) => {}
            _ if word == 0 => {}
            _ => return None,
        }
        if let Some(packed) = hooks.and_then(|hooks| memory.pointer(item + hooks))
            && classes.is(memory, packed, Family::SavedHooks)
        {
            found.push(Found::Hooks(packed));
        }
    }
    (!found.is_empty()).then_some(found)
}
