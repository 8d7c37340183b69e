//! One machine word per pickled value.

use crate::atoms::{Atoms, StrId};

/// A value on the machine's stack or in its memo: 8 bytes, freely copied.
///
/// The low four bits are a tag. Integers of up to 60 bits lie in the word itself; wider ones, floats and
/// strings are indices into [`Atoms`]; containers carry the number that the sink gave them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Value(u64);

/// What a [`Value`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An integer of up to 60 bits.
    Int(i64),
    /// A wider integer; see [`Value::int`].
    BigInt,
    /// A float; see [`Value::float`].
    Float,
    /// Text.
    Str(StrId),
    /// A dict, by the sink's number.
    Dict(u32),
    /// A list (or a set), by the sink's number.
    List(u32),
    /// A tuple, by the sink's number.
    Tuple(u32),
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// The name of a class or function (`module name`); it is never looked up.
    Global(StrId),
    /// Something that would need code to run or that we do not keep (bytes, instances).
    Opaque,
}

const TAG_BITS: u32 = 4;
const TAG: u64 = (1 << TAG_BITS) - 1;
const INT: u64 = 0;
const BIG: u64 = 1;
const FLOAT: u64 = 2;
const STR: u64 = 3;
const DICT: u64 = 4;
const LIST: u64 = 5;
const TUPLE: u64 = 6;
const CONST: u64 = 7;
const GLOBAL: u64 = 8;

impl Value {
    /// `None`.
    pub const NONE: Self = Self(CONST);
    /// `False`.
    pub const FALSE: Self = Self(CONST | (1 << TAG_BITS));
    /// `True`.
    pub const TRUE: Self = Self(CONST | (2 << TAG_BITS));
    /// A value that is not kept.
    pub const OPAQUE: Self = Self(CONST | (3 << TAG_BITS));

    /// An integer, if it fits in 60 bits.
    #[inline]
    pub fn small_int(v: i64) -> Option<Self> {
        let word = v << TAG_BITS;
        (word >> TAG_BITS == v).then_some(Self(word as u64 | INT))
    }

    #[inline]
    fn indexed(tag: u64, index: u32) -> Self {
        Self((u64::from(index) << TAG_BITS) | tag)
    }

    #[inline]
    pub(crate) fn big(index: u32) -> Self {
        Self::indexed(BIG, index)
    }

    #[inline]
    pub(crate) fn float_at(index: u32) -> Self {
        Self::indexed(FLOAT, index)
    }

    /// Text that was interned in [`Atoms`].
    #[inline]
    pub fn str(id: StrId) -> Self {
        Self::indexed(STR, id.0)
    }

    #[inline]
    pub(crate) fn global(id: StrId) -> Self {
        Self::indexed(GLOBAL, id.0)
    }

    /// A dict that the sink numbered.
    #[inline]
    pub fn dict(number: u32) -> Self {
        Self::indexed(DICT, number)
    }

    /// A list that the sink numbered.
    #[inline]
    pub fn list(number: u32) -> Self {
        Self::indexed(LIST, number)
    }

    /// A tuple that the sink numbered.
    #[inline]
    pub fn tuple(number: u32) -> Self {
        Self::indexed(TUPLE, number)
    }

    /// `True` or `False`.
    #[inline]
    pub fn bool(v: bool) -> Self {
        if v { Self::TRUE } else { Self::FALSE }
    }

    /// The value in half a word, where it fits: containers and texts do unless there are very many.
    #[inline]
    pub(crate) fn packed(self) -> Option<u32> {
        let index = self.0 >> TAG_BITS;
        (self.0 & TAG != INT && index < 1 << (32 - TAG_BITS)).then_some(self.0 as u32)
    }

    /// The value that was packed.
    #[inline]
    pub(crate) fn unpacked(packed: u32) -> Self {
        Self(u64::from(packed))
    }

    /// What this value is.
    #[inline]
    pub fn kind(self) -> Kind {
        let index = (self.0 >> TAG_BITS) as u32;
        match self.0 & TAG {
            INT => Kind::Int(self.0 as i64 >> TAG_BITS),
            BIG => Kind::BigInt,
            FLOAT => Kind::Float,
            STR => Kind::Str(StrId(index)),
            DICT => Kind::Dict(index),
            LIST => Kind::List(index),
            TUPLE => Kind::Tuple(index),
            GLOBAL => Kind::Global(StrId(index)),
            _ => match self {
                Self::NONE => Kind::None,
                Self::TRUE => Kind::Bool(true),
                Self::FALSE => Kind::Bool(false),
                _ => Kind::Opaque,
            },
        }
    }

    /// The integer, of whatever width (up to 128 bits); booleans count as in Python.
    #[inline]
    pub fn int(self, atoms: &Atoms) -> Option<i128> {
        match self.0 & TAG {
            INT => Some(i128::from(self.0 as i64 >> TAG_BITS)),
            BIG => atoms.big_int((self.0 >> TAG_BITS) as u32),
            CONST => match self {
                Self::TRUE => Some(1),
                Self::FALSE => Some(0),
                _ => None,
            },
            _ => None,
        }
    }

    /// The float, or the integer as one.
    pub fn float(self, atoms: &Atoms) -> Option<f64> {
        match self.0 & TAG {
            FLOAT => atoms.float((self.0 >> TAG_BITS) as u32),
            _ => self.int(atoms).map(|v| v as f64),
        }
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.kind())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_60_bits_lie_in_the_word() {
        for v in [0, 1, -1, (1 << 59) - 1, -(1 << 59), 140_415_030_263_808] {
            let value = Value::small_int(v).unwrap();
            assert_eq!(value.kind(), Kind::Int(v));
        }
        for v in [1 << 59, -(1 << 59) - 1, i64::MAX, i64::MIN] {
            assert_eq!(Value::small_int(v), None);
        }
    }

    #[test]
    fn constants_are_themselves() {
        assert_eq!(Value::NONE.kind(), Kind::None);
        assert_eq!(Value::TRUE.kind(), Kind::Bool(true));
        assert_eq!(Value::FALSE.kind(), Kind::Bool(false));
        assert_eq!(Value::OPAQUE.kind(), Kind::Opaque);
    }
}
