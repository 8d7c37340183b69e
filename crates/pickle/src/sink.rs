//! What the machine is given and what it gives: the sink, the bounds, how far it got.

use crate::atoms::Atoms;
use crate::value::Value;

/// What receives the containers of a pickle as they are filled.
///
/// Containers are numbered by the sink; the machine hands the number back with every batch of items.
/// Items arrive exactly as often as the file says: a list of a million entries may come in one batch or
/// in a thousand, a dict may come key by key.
pub trait Sink {
    /// A new, empty dict; returns its number.
    fn dict(&mut self) -> u32;
    /// A new, empty list or set; returns its number.
    fn list(&mut self) -> u32;
    /// A tuple with all its items; returns its number.
    fn tuple(&mut self, items: &[Value], cx: &Context<'_>) -> u32;
    /// Keys and values, alternating, put into a dict. `pairs` has even length.
    fn set_items(&mut self, dict: u32, pairs: &[Value], cx: &Context<'_>);
    /// Items put at the end of a list.
    fn append(&mut self, list: u32, items: &[Value], cx: &Context<'_>);
    /// Whether the sink holds more than it is willing to hold of a pickle whose first `offset` bytes were read. The machine
    /// asks once for each piece that it is fed.
    fn is_full(&self, offset: u64) -> bool {
        let _ = offset;
        false
    }
}

/// What a sink may look at while it takes items.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Texts and wide numbers of the file.
    pub atoms: &'a Atoms,
    /// Offset in bytes of the opcode being carried out.
    pub offset: u64,
}

/// Bounds on what a file may declare.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of one text, number or bytes object.
    pub value_bytes: u64,
    /// Values kept at a time: on the stack, in the memo, marks, distinct texts, wide numbers and floats together.
    pub values: u64,
    /// Values kept at a time whatever the size of the file. Beyond these, the file must have
    /// [`BYTES_PER_VALUE`] bytes for each one.
    pub free_values: u64,
    /// Bytes of all distinct texts together.
    pub text_bytes: u64,
}

/// What a value that is kept costs a writer at least, on average. Snapshots have one for each 30 bytes or more; a file
/// made to fill the memory has one for each byte.
pub const BYTES_PER_VALUE: u64 = 4;

impl Default for Limits {
    fn default() -> Self {
        Self { value_bytes: 64 << 20, values: 1 << 31, free_values: 1 << 20, text_bytes: 1 << 30 }
    }
}

impl Limits {
    /// How many values may be kept after so many bytes.
    pub(crate) fn values_at(&self, offset: u64) -> u64 {
        self.values.min(self.free_values + offset / BYTES_PER_VALUE)
    }
}

/// How far [`Machine::feed`](crate::Machine::feed) got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fed {
    /// Bytes used up; the rest must be given again, with more behind it.
    pub consumed: usize,
    /// Bytes that must be there beyond `consumed` before the next opcode can be carried out; 0 if done.
    pub needed: usize,
    /// Whether the pickle has ended (its STOP opcode was reached).
    pub done: bool,
}
