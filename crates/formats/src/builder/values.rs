//! Single values of a snapshot's dicts, as the model's quantities.

use vramscope_model::{Bytes, PoolId, StackId, StreamId, StringId, TimeUs};
use vramscope_pickle::{Context, Kind, Value};

use super::{Builder, Node};
use crate::keys::Key;

/// The integer that a value is, or that a float is in full: JSON made elsewhere writes 512 as 512.0.
pub(super) fn whole(value: Value, cx: &Context<'_>) -> Option<i128> {
    match value.kind() {
        Kind::Int(v) => Some(i128::from(v)),
        Kind::Float => {
            let float = value.float(cx.atoms)?;
            // Beyond 2^64 there is nothing that a snapshot counts.
            (float.fract() == 0.0 && float.abs() <= u64::MAX as f64).then_some(float as i128)
        }
        _ => value.int(cx.atoms),
    }
}

pub(super) fn truth(value: Value) -> bool {
    match value.kind() {
        Kind::Bool(b) => b,
        Kind::Int(v) => v != 0,
        _ => false,
    }
}

impl Builder<'_> {
    /// A number of bytes; nothing where there is none. What 2^63 bytes and more would be is not memory.
    #[inline]
    pub(super) fn bytes(&mut self, value: Value, cx: &Context<'_>) -> Bytes {
        match value.kind() {
            Kind::Int(v) if v >= 0 => Bytes(v as u64),
            _ => self.odd_bytes(value, cx),
        }
    }

    #[cold]
    fn odd_bytes(&mut self, value: Value, cx: &Context<'_>) -> Bytes {
        let size = whole(value, cx).and_then(|v| i64::try_from(v).ok()).filter(|&v| v >= 0);
        if size.is_none() {
            self.warn_once(cx.offset, "a size is no number of bytes; it is taken as 0");
        }
        Bytes(size.unwrap_or(0) as u64)
    }

    /// An address as the file has it. The C++ writer writes those of 2^63 and more as negative numbers.
    #[inline]
    pub(super) fn address(&mut self, value: Value, cx: &Context<'_>) -> u64 {
        match value.kind() {
            Kind::Int(v) => v as u64,
            _ => self.odd_address(value, cx),
        }
    }

    #[cold]
    fn odd_address(&mut self, value: Value, cx: &Context<'_>) -> u64 {
        let fits = |v: i128| u64::try_from(v).ok().or_else(|| i64::try_from(v).ok().map(|v| v as u64));
        whole(value, cx).and_then(fits).unwrap_or_else(|| {
            self.warn_once(cx.offset, "an address is no number of 64 bits; it is taken as 0");
            0
        })
    }

    /// A moment. Those so far off that the time between two of them would be no number are taken as not recorded.
    #[inline]
    pub(super) fn time(&mut self, value: Value, cx: &Context<'_>) -> TimeUs {
        match value.kind() {
            // It has 60 bits.
            Kind::Int(v) => TimeUs(v),
            _ => self.odd_time(value, cx),
        }
    }

    #[cold]
    fn odd_time(&mut self, value: Value, cx: &Context<'_>) -> TimeUs {
        const FARTHEST: i64 = 1 << 61;
        // Whole microseconds are all that is kept of a float.
        let time = match value.kind() {
            Kind::Float => value.float(cx.atoms).filter(|v| v.is_finite()).map(|v| v as i64),
            _ => whole(value, cx).and_then(|v| i64::try_from(v).ok()),
        };
        time.filter(|v| (-FARTHEST..FARTHEST).contains(v)).map_or_else(
            || {
                self.warn_once(
                    cx.offset,
                    "a time is no number of microseconds that a clock shows; it is taken as not recorded",
                );
                TimeUs::UNKNOWN
            },
            TimeUs,
        )
    }

    /// Keys and values with the keys understood.
    #[inline]
    pub(super) fn each(
        &mut self,
        pairs: &[Value],
        cx: &Context<'_>,
        mut take: impl FnMut(&mut Self, Key, Value),
    ) {
        for pair in pairs.chunks_exact(2) {
            if let Kind::Str(id) = pair[0].kind() {
                let key = self.words.key(id, cx.atoms);
                take(self, key, pair[1]);
            }
        }
    }

    pub(super) fn text(&mut self, value: Value, cx: &Context<'_>) -> Option<StringId> {
        match value.kind() {
            Kind::Str(id) => Some(self.words.symbol(id, cx.atoms, self.symbols)),
            _ => None,
        }
    }

    pub(super) fn stream_of(&mut self, value: Value, cx: &Context<'_>) -> StreamId {
        // Handles are addresses, which the C++ writer may write as negative numbers.
        let handle = match value.kind() {
            Kind::Int(v) => v as u64,
            _ => whole(value, cx).unwrap_or(0) as u64,
        };
        if handle == 0 { StreamId(0) } else { self.symbols.stream(handle) }
    }

    /// A pair of numbers as the name of a pool.
    pub(super) fn pool_of(&mut self, items: &[Value], cx: &Context<'_>) -> Option<PoolId> {
        let &[a, b] = items else { return None };
        let (Some(a), Some(b)) = (whole(a, cx), whole(b, cx)) else { return None };
        Some(if a == 0 && b == 0 { PoolId::DEFAULT } else { self.symbols.pool((a as u64, b as u64)) })
    }

    pub(super) fn pool_in(&mut self, value: Value, cx: &Context<'_>) -> PoolId {
        let (Kind::Tuple(number) | Kind::List(number)) = value.kind() else { return PoolId::DEFAULT };
        match self.node(number) {
            Node::Pool(pool) => pool,
            Node::Values(i) => {
                let pair =
                    self.values.get(i as usize).and_then(|v| <[Value; 2]>::try_from(v.as_slice()).ok());
                pair.and_then(|pair| self.pool_of(&pair, cx)).unwrap_or(PoolId::DEFAULT)
            }
            _ => PoolId::DEFAULT,
        }
    }

    #[inline]
    pub(super) fn stack_in(&mut self, value: Value) -> StackId {
        let (Kind::List(number) | Kind::Tuple(number)) = value.kind() else { return StackId::ABSENT };
        match self.node(number) {
            Node::Stack(stack) => stack,
            Node::Growing(i) => self.grown_stack(i),
            _ => StackId::EMPTY,
        }
    }

    #[cold]
    pub(super) fn grown_stack(&mut self, i: u32) -> StackId {
        let Some(stack) = self.growing.get_mut(i as usize) else { return StackId::EMPTY };
        let frames = std::mem::take(&mut stack.frames);
        *stack.used_as.get_or_insert_with(|| self.symbols.stack(&frames))
    }
}
