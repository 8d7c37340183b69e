//! Single values of a snapshot's dicts, as the model's quantities.

use vramscope_model::{Bytes, PoolId, StackId, StreamId, StringId};
use vramscope_pickle::{Context, Kind, Value};

use super::{Builder, Node};
use crate::keys::Key;

/// An address or size as the file has it. The C++ writer writes addresses of 2^63 and more as negative numbers.
#[inline]
pub(super) fn unsigned(value: Value, cx: &Context<'_>) -> u64 {
    match value.kind() {
        Kind::Int(v) => v as u64,
        _ => value.int(cx.atoms).map_or(0, |v| v as u64),
    }
}

pub(super) fn number(value: Value, cx: &Context<'_>) -> i64 {
    match value.kind() {
        Kind::Int(v) => v,
        Kind::Float => value.float(cx.atoms).map_or(0, |v| v as i64),
        _ => value.int(cx.atoms).and_then(|v| i64::try_from(v).ok()).unwrap_or(0),
    }
}

pub(super) fn bytes(value: Value, cx: &Context<'_>) -> Bytes {
    // A negative size is damage; nothing good can be made of it.
    match value.kind() {
        Kind::Int(v) => Bytes(u64::try_from(v).unwrap_or(0)),
        _ => Bytes(value.int(cx.atoms).and_then(|v| u64::try_from(v).ok()).unwrap_or(0)),
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
        match unsigned(value, cx) {
            0 => StreamId(0),
            handle => self.symbols.stream(handle),
        }
    }

    /// A pair of numbers as the name of a pool.
    pub(super) fn pool_of(&mut self, items: &[Value], cx: &Context<'_>) -> Option<PoolId> {
        let &[a, b] = items else { return None };
        let (Some(a), Some(b)) = (a.int(cx.atoms), b.int(cx.atoms)) else { return None };
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
