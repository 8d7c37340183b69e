//! What does not fit in a machine word: text (each distinct one once), wide integers and floats.

use std::hash::Hasher as _;

use hashbrown::HashTable;

use crate::value::Value;

/// A distinct text of the file being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StrId(pub u32);

/// The texts, wide integers and floats of one file.
#[derive(Default)]
pub struct Atoms {
    text: String,
    /// End of each text in `text`; it begins where the one before it ends.
    ends: Vec<usize>,
    lookup: HashTable<u32>,
    big_ints: Vec<i128>,
    floats: Vec<f64>,
    /// The last text asked for: writers that do not share equal texts repeat the same one again and again.
    last: Option<StrId>,
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

impl Atoms {
    /// The number of a text, the same for equal texts.
    ///
    /// Bytes that are not UTF-8 are read as U+FFFD, as Python's own tools would show them.
    pub fn intern(&mut self, bytes: &[u8]) -> StrId {
        if let Some(last) = self.last
            && self.str(last).as_bytes() == bytes
        {
            return last;
        }
        let id = self.find_or_add(bytes);
        self.last = Some(id);
        id
    }

    fn find_or_add(&mut self, bytes: &[u8]) -> StrId {
        let key = hash(bytes);
        let Self { text, ends, lookup, .. } = self;
        if let Some(&found) = lookup.find(key, |&i| slice(text, ends, i).as_bytes() == bytes) {
            return StrId(found);
        }
        let lossy = String::from_utf8_lossy(bytes);
        let id = ends.len() as u32;
        text.push_str(&lossy);
        ends.push(text.len());
        lookup.insert_unique(key, id, |&i| hash(slice(text, ends, i).as_bytes()));
        StrId(id)
    }

    /// The text of that number; empty for a number that was never given out.
    #[inline]
    pub fn str(&self, id: StrId) -> &str {
        slice(&self.text, &self.ends, id.0)
    }

    /// How many distinct texts there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no text has been read yet.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all distinct texts together.
    pub fn text_bytes(&self) -> u64 {
        self.text.len() as u64
    }

    /// How many texts and numbers are kept.
    pub(crate) fn kept(&self) -> usize {
        self.ends.len() + self.big_ints.len() + self.floats.len()
    }

    /// A value for an integer of any width up to 128 bits.
    pub fn integer(&mut self, v: i128) -> Value {
        if let Some(small) = i64::try_from(v).ok().and_then(Value::small_int) {
            return small;
        }
        self.big_ints.push(v);
        Value::big(self.big_ints.len() as u32 - 1)
    }

    /// A value for a float.
    pub fn real(&mut self, v: f64) -> Value {
        self.floats.push(v);
        Value::float_at(self.floats.len() as u32 - 1)
    }

    pub(crate) fn big_int(&self, index: u32) -> Option<i128> {
        self.big_ints.get(index as usize).copied()
    }

    pub(crate) fn float(&self, index: u32) -> Option<f64> {
        self.floats.get(index as usize).copied()
    }
}

#[inline]
fn slice<'a>(text: &'a str, ends: &[usize], id: u32) -> &'a str {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends.get(id - 1).copied().unwrap_or(text.len()) };
    let end = ends.get(id).copied().unwrap_or(start);
    text.get(start..end).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_a_number() {
        let mut atoms = Atoms::default();
        let a = atoms.intern(b"alloc");
        let b = atoms.intern(b"free_requested");
        assert_eq!(atoms.intern(b"alloc"), a);
        assert_eq!(atoms.str(a), "alloc");
        assert_eq!(atoms.str(b), "free_requested");
        assert_eq!(atoms.str(StrId(99)), "");
        let empty = atoms.intern(b"");
        assert_eq!(atoms.str(empty), "");
    }

    #[test]
    fn bytes_that_are_not_text_are_shown_as_such() {
        let mut atoms = Atoms::default();
        let id = atoms.intern(b"a\xffb");
        assert_eq!(atoms.str(id), "a\u{fffd}b");
    }
}
