//! The memo: values that a pickle names by number to use them again.

use rustc_hash::FxHashMap;

use crate::error::ErrorKind;
use crate::value::Value;

/// Values by slot.
///
/// Writers fill slots in order, so they lie in an array. A file may name any slot, though, and the array must not grow
/// faster than the file does: slots far ahead of what was filled go into a map.
#[derive(Default)]
pub(crate) struct Memo {
    near: Vec<Value>,
    far: FxHashMap<u64, Value>,
    /// How many slots of `near` were never filled.
    gaps: usize,
}

/// How far ahead of twice the filled slots a new one may lie and still have a place in the array.
const AHEAD: usize = 4096;

impl Memo {
    /// The value in a slot.
    #[inline]
    pub(crate) fn get(&self, slot: u64) -> Result<Value, ErrorKind> {
        match self.near.get(slot as usize) {
            Some(&v) if v != Value::ABSENT => Ok(v),
            _ => self.far.get(&slot).copied().ok_or(ErrorKind::EmptyMemo(slot)),
        }
    }

    /// Fills the slot whose number is the count of filled ones, as MEMOIZE does.
    #[inline]
    pub(crate) fn push(&mut self, value: Value) {
        if self.gaps == 0 && self.far.is_empty() {
            self.near.push(value);
        } else {
            self.put(self.filled() as u64, value);
        }
    }

    /// Fills a slot.
    pub(crate) fn put(&mut self, slot: u64, value: Value) {
        let index = usize::try_from(slot).unwrap_or(usize::MAX);
        if index == self.near.len() {
            self.near.push(value);
            self.far.remove(&slot);
        } else if let Some(place) = self.near.get_mut(index) {
            if *place == Value::ABSENT {
                self.gaps -= 1;
                self.far.remove(&slot);
            }
            *place = value;
        } else if index < AHEAD + 2 * self.filled() {
            self.gaps += index - self.near.len();
            self.near.resize(index, Value::ABSENT);
            self.near.push(value);
            self.far.remove(&slot);
        } else {
            self.far.insert(slot, value);
        }
    }

    /// How many slots are filled.
    fn filled(&self) -> usize {
        self.near.len() - self.gaps + self.far.len()
    }

    /// How many slots take up room.
    pub(crate) fn len(&self) -> usize {
        self.near.len() + self.far.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(v: i64) -> Value {
        Value::small_int(v).unwrap()
    }

    #[test]
    fn slots_far_ahead_take_no_room_for_those_between() {
        let mut memo = Memo::default();
        for slot in [u64::from(u32::MAX), 1 << 40, u64::MAX, 9000, 4000, 0, 1] {
            memo.put(slot, int(slot as i64 >> 8));
        }
        assert_eq!(memo.get(u64::from(u32::MAX)), Ok(int(i64::from(u32::MAX) >> 8)));
        assert_eq!(memo.get(u64::MAX), Ok(int(-1)));
        assert_eq!(memo.get(4000), Ok(int(4000 >> 8)));
        assert_eq!(memo.get(2), Err(ErrorKind::EmptyMemo(2)));
        assert_eq!(memo.filled(), 7);
        assert!(memo.len() <= AHEAD + 4);
    }

    #[test]
    fn a_slot_filled_again_holds_the_newer_value() {
        let mut memo = Memo::default();
        memo.put(9000, int(1));
        for slot in 0..9000 {
            memo.put(slot, int(2));
        }
        memo.put(9000, int(3));
        assert_eq!(memo.get(9000), Ok(int(3)));
        assert_eq!((memo.filled(), memo.len()), (9001, 9001));
    }

    #[test]
    fn memoize_counts_the_filled_slots() {
        let mut memo = Memo::default();
        memo.put(5, int(5));
        memo.push(int(7));
        assert_eq!(memo.get(1), Ok(int(7)));
        memo.push(int(8));
        assert_eq!(memo.get(2), Ok(int(8)));
    }
}
