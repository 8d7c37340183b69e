//! The memo: values that a pickle names by number to use them again.

use rustc_hash::FxHashMap;

use crate::error::ErrorKind;
use crate::value::Value;

/// Values by slot.
///
/// Writers fill slots in order, so they lie in an array, in half a word each: there are more of them than of anything else in
/// a snapshot. A file may name any slot, though, and the array must not grow faster than the file does: slots far ahead of
/// what was filled go into a map, and so do values that half a word does not hold.
#[derive(Default)]
pub(crate) struct Memo {
    near: Vec<u32>,
    far: FxHashMap<u64, Value>,
    /// How many slots of `near` were never filled.
    gaps: usize,
    /// How many slots of `near` have their value in `far`.
    elsewhere: usize,
}

/// How far ahead of twice the filled slots a new one may lie and still have a place in the array.
const AHEAD: usize = 4096;

/// Stands in the array for a slot that was never filled, or that lies in the map.
const ABSENT: u32 = u32::MAX;
/// Stands in the array for a slot whose value lies in the map.
const ELSEWHERE: u32 = u32::MAX - 1;

impl Memo {
    /// The value in a slot.
    #[inline]
    pub(crate) fn get(&self, slot: u64) -> Result<Value, ErrorKind> {
        match self.near.get(slot as usize) {
            Some(&packed) if packed != ABSENT && packed != ELSEWHERE => Ok(Value::unpacked(packed)),
            _ => self.far.get(&slot).copied().ok_or(ErrorKind::EmptyMemo(slot)),
        }
    }

    /// Fills the slot whose number is the count of filled ones, as MEMOIZE does.
    #[inline]
    pub(crate) fn push(&mut self, value: Value) {
        if let Some(packed) = value.packed().filter(|_| self.gaps == 0 && self.far.is_empty()) {
            self.near.push(packed);
        } else {
            self.put(self.filled() as u64, value);
        }
    }

    /// Fills a slot.
    pub(crate) fn put(&mut self, slot: u64, value: Value) {
        let index = usize::try_from(slot).unwrap_or(usize::MAX);
        if index >= self.near.len() {
            if index >= AHEAD + 2 * self.filled() {
                self.far.insert(slot, value);
                return;
            }
            // The new slot is a gap until it is filled, below.
            self.gaps += index + 1 - self.near.len();
            self.near.resize(index + 1, ABSENT);
        }
        let Some(place) = self.near.get_mut(index) else { return };
        match *place {
            ABSENT => {
                self.gaps -= 1;
                // It may have been far ahead once.
                self.far.remove(&slot);
            }
            ELSEWHERE => {
                self.elsewhere -= 1;
                self.far.remove(&slot);
            }
            _ => {}
        }
        *place = value.packed().unwrap_or(ELSEWHERE);
        if *place == ELSEWHERE {
            self.elsewhere += 1;
            self.far.insert(slot, value);
        }
    }

    /// How many slots are filled.
    fn filled(&self) -> usize {
        self.near.len() - self.gaps - self.elsewhere + self.far.len()
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
        assert!(memo.len() <= AHEAD + 8);
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
        assert_eq!(memo.filled(), 9001);
    }

    #[test]
    fn what_half_a_word_does_not_hold_is_kept_too() {
        let mut memo = Memo::default();
        for i in 0..10 {
            memo.push(if i % 2 == 0 { Value::dict(i) } else { int(i64::from(i)) });
        }
        memo.put(3, Value::list(33));
        memo.put(4, Value::dict(u32::MAX));
        assert_eq!(memo.get(2), Ok(Value::dict(2)));
        assert_eq!(memo.get(3), Ok(Value::list(33)));
        assert_eq!(memo.get(4), Ok(Value::dict(u32::MAX)));
        assert_eq!(memo.get(5), Ok(int(5)));
        assert_eq!(memo.filled(), 10);
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
