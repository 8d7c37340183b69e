//! The dicts of the state at the end: blocks and their history, segments, and the outermost dict.

use vramscope_model::{Block, BlockState, Bytes, PoolId, PoolKind, Segment, StackId, StreamId};
use vramscope_pickle::{Context, Kind, Value};

use super::values::{truth, whole};
use super::{Builder, Node};
use crate::keys::Key;

/// A block as written; its address may be left to its place in the segment (before torch 2.1).
#[derive(Clone, Copy)]
pub(super) struct BlockDraft {
    pub(super) block: Block,
    pub(super) has_address: bool,
}

/// What torch 1.13 and 2.0 kept of a block's past: the newest record holds what later versions write on the block.
#[derive(Clone, Copy)]
pub(super) struct HistoryDraft {
    real_size: u64,
    stack: StackId,
}

/// A segment as written.
pub(super) struct SegmentDraft {
    /// Its device, unless that is no device's number.
    pub(super) device: Option<u32>,
    /// All of it but the blocks.
    pub(super) segment: Segment,
    /// The list of its blocks, which may still grow; it is looked at when all is read.
    pub(super) blocks: Option<Value>,
}

/// The outermost dict.
#[derive(Clone, Copy, Default)]
pub(super) struct RootDraft {
    pub(super) segments: Option<Value>,
    pub(super) traces: Option<Value>,
    pub(super) settings: Option<Value>,
    pub(super) annotations: Option<Value>,
    pub(super) host_segments: Option<Value>,
    pub(super) host_traces: Option<Value>,
}

/// A segment of which nothing is known yet. Those that never state their kind (made from a profile) hold blocks of any
/// size, as the large pool does.
pub(super) fn blank_segment() -> Segment {
    Segment {
        addr: 0,
        size: Bytes::ZERO,
        stated_allocated: Bytes::ZERO,
        stated_active: Bytes::ZERO,
        stream: StreamId(0),
        kind: PoolKind::Large,
        pool: PoolId::DEFAULT,
        expandable: false,
        stack: StackId::ABSENT,
        blocks: Vec::new(),
    }
}

impl Builder<'_> {
    pub(super) fn new_block(&mut self, pairs: &[Value], cx: &Context<'_>) -> Node {
        let block = Block {
            addr: 0,
            size: Bytes::ZERO,
            requested: None,
            state: BlockState::Inactive,
            stack: StackId::ABSENT,
        };
        self.blocks.push(BlockDraft { block, has_address: false });
        let i = self.blocks.len() as u32 - 1;
        self.set_block(i, pairs, cx);
        Node::Block(i)
    }

    pub(super) fn set_block(&mut self, i: u32, pairs: &[Value], cx: &Context<'_>) {
        let Some(mut draft) = self.blocks.get(i as usize).copied() else { return };
        let block = &mut draft.block;
        let mut has_address = draft.has_address;
        self.each(pairs, cx, |this, key, value| match key {
            Key::Size => block.size = this.bytes(value, cx),
            Key::Address => {
                block.addr = this.address(value, cx);
                has_address = true;
                this.features.block_address = true;
            }
            Key::RequestedSize => {
                block.requested = Some(this.bytes(value, cx));
                this.features.requested_size = true;
            }
            Key::State => {
                if let Kind::Str(name) = value.kind() {
                    block.state = match cx.atoms.str(name) {
                        "active_allocated" => BlockState::Allocated,
                        // The documentation of every release names the second, but none writes it.
                        "active_pending_free" | "active_awaiting_free" => BlockState::PendingFree,
                        "inactive" => BlockState::Inactive,
                        _ => {
                            this.warn_once(
                                cx.offset,
                                "a block is in a state not known here; it is taken as free",
                            );
                            BlockState::Inactive
                        }
                    };
                }
            }
            Key::Frames => {
                block.stack = this.stack_in(value);
                this.features.frames = true;
            }
            Key::History => {
                this.features.block_history = true;
                if let Some(newest) = this.newest_history(value) {
                    block.stack = newest.stack;
                    block.requested = block.requested.or(Some(Bytes(newest.real_size)));
                }
            }
            _ => {}
        });
        draft.has_address = has_address;
        if let Some(place) = self.blocks.get_mut(i as usize) {
            *place = draft;
        }
    }

    fn newest_history(&self, value: Value) -> Option<HistoryDraft> {
        let Kind::List(list) = value.kind() else { return None };
        let Node::Values(i) = self.node(list) else { return None };
        let Kind::Dict(first) = self.values.get(i as usize)?.first()?.kind() else { return None };
        match self.node(first) {
            Node::History(i) => self.histories.get(i as usize).copied(),
            _ => None,
        }
    }

    pub(super) fn new_history(&mut self, pairs: &[Value], cx: &Context<'_>) -> Node {
        self.histories.push(HistoryDraft { real_size: 0, stack: StackId::ABSENT });
        let i = self.histories.len() as u32 - 1;
        self.set_history(i, pairs, cx);
        Node::History(i)
    }

    pub(super) fn set_history(&mut self, i: u32, pairs: &[Value], cx: &Context<'_>) {
        let Some(mut draft) = self.histories.get(i as usize).copied() else { return };
        self.each(pairs, cx, |this, key, value| match key {
            Key::RealSize => draft.real_size = this.bytes(value, cx).0,
            Key::Frames => {
                draft.stack = this.stack_in(value);
                this.features.frames = true;
            }
            _ => {}
        });
        if let Some(place) = self.histories.get_mut(i as usize) {
            *place = draft;
        }
    }

    pub(super) fn new_segment(&mut self, pairs: &[Value], cx: &Context<'_>) -> Node {
        self.segments.push(SegmentDraft { device: Some(0), segment: blank_segment(), blocks: None });
        let i = self.segments.len() as u32 - 1;
        self.set_segment(i, pairs, cx);
        Node::Segment(i)
    }

    pub(super) fn set_segment(&mut self, i: u32, pairs: &[Value], cx: &Context<'_>) {
        let Some(place) = self.segments.get_mut(i as usize) else { return };
        let mut blocks = place.blocks;
        let mut device = place.device;
        let mut segment = std::mem::replace(&mut place.segment, blank_segment());
        self.each(pairs, cx, |this, key, value| match key {
            Key::Device => device = whole(value, cx).and_then(|v| u32::try_from(v).ok()),
            Key::Address => segment.addr = this.address(value, cx),
            Key::TotalSize => segment.size = this.bytes(value, cx),
            Key::AllocatedSize => segment.stated_allocated = this.bytes(value, cx),
            Key::ActiveSize => segment.stated_active = this.bytes(value, cx),
            Key::Stream => {
                segment.stream = this.stream_of(value, cx);
                this.features.stream = true;
            }
            Key::SegmentType => {
                if let Kind::Str(name) = value.kind() {
                    let small = cx.atoms.str(name) == "small";
                    segment.kind = if small { PoolKind::Small } else { PoolKind::Large };
                }
            }
            Key::SegmentPoolId => segment.pool = this.pool_in(value, cx),
            Key::IsExpandable => segment.expandable = truth(value),
            Key::Frames => segment.stack = this.stack_in(value),
            Key::Blocks => blocks = Some(value),
            _ => {}
        });
        if let Some(place) = self.segments.get_mut(i as usize) {
            *place = SegmentDraft { device, segment, blocks };
        }
    }

    /// The blocks of a list, which are then its segment's. Those without an address are laid out when the segment's is
    /// known.
    pub(super) fn take_blocks(&mut self, value: Value) -> Vec<Block> {
        let (Kind::List(list) | Kind::Tuple(list)) = value.kind() else { return Vec::new() };
        let Node::Values(i) = self.node(list) else { return Vec::new() };
        let values = self.values.get_mut(i as usize).map(std::mem::take).unwrap_or_default();
        if values.is_empty() {
            // Copies of it would let a small file fill the memory, and no block lies in two segments.
            self.warn("two segments share a list of blocks; it was taken as that of the first");
        }
        values
            .iter()
            .filter_map(|v| {
                let Kind::Dict(number) = v.kind() else { return None };
                let Node::Block(i) = self.node(number) else { return None };
                let draft = self.blocks.get(i as usize)?;
                // Address 0 marks a block without one: no device memory lies there.
                Some(Block { addr: if draft.has_address { draft.block.addr } else { 0 }, ..draft.block })
            })
            .collect()
    }

    pub(super) fn new_root(&mut self, pairs: &[Value], cx: &Context<'_>) -> Node {
        self.roots.push(RootDraft::default());
        let i = self.roots.len() as u32 - 1;
        self.set_root(i, pairs, cx);
        Node::Root(i)
    }

    pub(super) fn set_root(&mut self, i: u32, pairs: &[Value], cx: &Context<'_>) {
        let Some(mut root) = self.roots.get(i as usize).copied() else { return };
        self.each(pairs, cx, |this, key, value| match key {
            Key::Segments => root.segments = Some(value),
            Key::DeviceTraces => {
                root.traces = Some(value);
                this.features.traces = true;
            }
            Key::AllocatorSettings => {
                root.settings = Some(value);
                this.features.settings = true;
            }
            Key::ExternalAnnotations => {
                root.annotations = Some(value);
                this.features.annotations = true;
            }
            Key::HostSegments => {
                root.host_segments = Some(value);
                this.features.host = true;
            }
            Key::HostTraces => root.host_traces = Some(value),
            _ => {}
        });
        if let Some(place) = self.roots.get_mut(i as usize) {
            *place = root;
        }
    }
}
