//! The dicts of a snapshot, one by one: which key goes into which column.

use vramscope_model::{
    Action, Annotation, Block, BlockState, Bytes, Event, FrameId, PoolId, PoolKind, Segment, StackId, Stage,
    StreamId, StringId, TimeUs,
};
use vramscope_pickle::{Context, Kind, Value};

use super::{Builder, Node};
use crate::error::excerpt;
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

/// The outermost dict.
#[derive(Clone, Copy, Default)]
pub(super) struct RootDraft {
    pub(super) segments: Option<Value>,
    pub(super) traces: Option<Value>,
    pub(super) settings: Option<Value>,
    pub(super) host_segments: Option<Value>,
    pub(super) host_traces: Option<Value>,
}

/// An address or size as the file has it. The C++ writer writes addresses of 2^63 and more as negative numbers.
#[inline]
fn unsigned(value: Value, cx: &Context<'_>) -> u64 {
    match value.kind() {
        Kind::Int(v) => v as u64,
        _ => value.int(cx.atoms).map_or(0, |v| v as u64),
    }
}

fn number(value: Value, cx: &Context<'_>) -> i64 {
    match value.kind() {
        Kind::Int(v) => v,
        Kind::Float => value.float(cx.atoms).map_or(0, |v| v as i64),
        _ => value.int(cx.atoms).and_then(|v| i64::try_from(v).ok()).unwrap_or(0),
    }
}

fn bytes(value: Value, cx: &Context<'_>) -> Bytes {
    // A negative size is damage; nothing good can be made of it.
    match value.kind() {
        Kind::Int(v) => Bytes(u64::try_from(v).unwrap_or(0)),
        _ => Bytes(value.int(cx.atoms).and_then(|v| u64::try_from(v).ok()).unwrap_or(0)),
    }
}

fn truth(value: Value) -> bool {
    match value.kind() {
        Kind::Bool(b) => b,
        Kind::Int(v) => v != 0,
        _ => false,
    }
}

/// A segment of which nothing is known yet. Those that never state their kind (made from a profile) hold blocks of any
/// size, as the large pool does.
fn blank_segment() -> Segment {
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
    /// Keys and values with the keys understood.
    #[inline]
    fn each(&mut self, pairs: &[Value], cx: &Context<'_>, mut take: impl FnMut(&mut Self, Key, Value)) {
        for pair in pairs.chunks_exact(2) {
            if let Kind::Str(id) = pair[0].kind() {
                let key = self.words.key(id, cx.atoms);
                take(self, key, pair[1]);
            }
        }
    }

    fn text(&mut self, value: Value, cx: &Context<'_>) -> Option<StringId> {
        match value.kind() {
            Kind::Str(id) => Some(self.words.symbol(id, cx.atoms, self.symbols)),
            _ => None,
        }
    }

    fn stream_of(&mut self, value: Value, cx: &Context<'_>) -> StreamId {
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

    fn pool_in(&mut self, value: Value, cx: &Context<'_>) -> PoolId {
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
    fn stack_in(&mut self, value: Value) -> StackId {
        let (Kind::List(number) | Kind::Tuple(number)) = value.kind() else { return StackId::ABSENT };
        match self.node(number) {
            Node::Stack(stack) => stack,
            Node::Growing(i) => self.grown_stack(i),
            _ => StackId::EMPTY,
        }
    }

    #[cold]
    fn grown_stack(&mut self, i: u32) -> StackId {
        let Some(stack) = self.growing.get_mut(i as usize) else { return StackId::EMPTY };
        let frames = std::mem::take(&mut stack.frames);
        *stack.used_as.get_or_insert_with(|| self.symbols.stack(&frames))
    }

    // Events.

    #[inline]
    pub(super) fn new_event(&mut self, pairs: &[Value], cx: &Context<'_>) -> Node {
        let i = self.events.len();
        let blank = Event {
            action: Action::Other,
            addr: 0,
            size: Bytes::ZERO,
            time: TimeUs::UNKNOWN,
            stream: StreamId(0),
            pool: PoolId::DEFAULT,
            stack: StackId::ABSENT,
        };
        let event = self.fill_event(i, blank, pairs, cx);
        self.events.push(event);
        Node::Event(i as u32)
    }

    pub(super) fn set_event(&mut self, i: u32, pairs: &[Value], cx: &Context<'_>) {
        let i = i as usize;
        if i < self.events.len() {
            let event = self.fill_event(i, self.events.get(i), pairs, cx);
            self.events.set(i, event);
        }
    }

    #[inline]
    fn fill_event(&mut self, i: usize, mut event: Event, pairs: &[Value], cx: &Context<'_>) -> Event {
        for pair in pairs.chunks_exact(2) {
            let Kind::Str(id) = pair[0].kind() else { continue };
            let value = pair[1];
            match self.words.key(id, cx.atoms) {
                Key::Action => {
                    if let Kind::Str(name) = value.kind() {
                        event.action = self.words.action(name, cx.atoms);
                        if event.action == Action::Other {
                            self.note_unknown_action(i, value, cx);
                        }
                    }
                }
                Key::Addr | Key::DeviceFree => event.addr = unsigned(value, cx),
                Key::Size => event.size = bytes(value, cx),
                Key::Stream => event.stream = self.stream_of(value, cx),
                Key::TimeUs => {
                    event.time = TimeUs(number(value, cx));
                    self.features.time = true;
                }
                Key::Frames => {
                    event.stack = self.stack_in(value);
                    self.features.frames = true;
                }
                Key::PoolId => {
                    event.pool = self.pool_in(value, cx);
                    self.features.pool_id = true;
                }
                Key::CompileContext => {
                    self.features.compile_context = true;
                    if let Kind::Str(text) = value.kind()
                        && !matches!(cx.atoms.str(text), "N/A" | "")
                    {
                        let text = self.words.symbol(text, cx.atoms, self.symbols);
                        self.events.set_compile_context(i, text);
                    }
                }
                Key::UserMetadata => {
                    self.features.user_metadata = true;
                    if let Kind::Str(text) = value.kind()
                        && !cx.atoms.str(text).is_empty()
                    {
                        let text = self.words.symbol(text, cx.atoms, self.symbols);
                        self.events.set_note(i, text);
                    }
                }
                Key::InternalMetadata => self.features.internal_metadata = true,
                _ => {}
            }
        }
        event
    }

    #[cold]
    fn note_unknown_action(&mut self, i: usize, value: Value, cx: &Context<'_>) {
        if let Some(name) = self.text(value, cx) {
            self.events.set_note(i, name);
            let text = format!(
                "events of action `{}` are not known here; they are kept in the counts and otherwise passed over",
                excerpt(self.symbols.str(name))
            );
            self.warn_once(cx.offset, &text);
        }
    }

    // Frames.

    pub(super) fn frame_of(&mut self, pairs: &[Value], cx: &Context<'_>) -> FrameId {
        let (mut file, mut name, mut line) = ("", "", 0);
        for pair in pairs.chunks_exact(2) {
            let Kind::Str(id) = pair[0].kind() else { continue };
            let text = |v: Value| match v.kind() {
                Kind::Str(id) => cx.atoms.str(id),
                _ => "",
            };
            match self.words.key(id, cx.atoms) {
                Key::Filename => file = text(pair[1]),
                Key::Name => name = text(pair[1]),
                Key::Line => line = u32::try_from(number(pair[1], cx)).unwrap_or(0),
                _ => {}
            }
        }
        self.symbols.frame(file, name, line)
    }

    // Blocks and their history.

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
            Key::Size => block.size = bytes(value, cx),
            Key::Address => {
                block.addr = unsigned(value, cx);
                has_address = true;
                this.features.block_address = true;
            }
            Key::RequestedSize => {
                block.requested = Some(bytes(value, cx));
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
            Key::RealSize => draft.real_size = bytes(value, cx).0,
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

    // Segments.

    pub(super) fn new_segment(&mut self, pairs: &[Value], cx: &Context<'_>) -> Node {
        self.segments.push((0, blank_segment()));
        let i = self.segments.len() as u32 - 1;
        self.set_segment(i, pairs, cx);
        Node::Segment(i)
    }

    pub(super) fn set_segment(&mut self, i: u32, pairs: &[Value], cx: &Context<'_>) {
        let Some(place) = self.segments.get_mut(i as usize) else { return };
        let (mut device, mut segment) = std::mem::replace(place, (0, blank_segment()));
        self.each(pairs, cx, |this, key, value| match key {
            Key::Device => device = u32::try_from(number(value, cx)).unwrap_or(0),
            Key::Address => segment.addr = unsigned(value, cx),
            Key::TotalSize => segment.size = bytes(value, cx),
            Key::AllocatedSize => segment.stated_allocated = bytes(value, cx),
            Key::ActiveSize => segment.stated_active = bytes(value, cx),
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
            Key::Blocks => segment.blocks = this.blocks_in(value),
            _ => {}
        });
        if let Some(place) = self.segments.get_mut(i as usize) {
            *place = (device, segment);
        }
    }

    /// The blocks of a list. Those without an address are laid out when the segment's is known.
    fn blocks_in(&mut self, value: Value) -> Vec<Block> {
        let Kind::List(list) = value.kind() else { return Vec::new() };
        let Node::Values(i) = self.node(list) else { return Vec::new() };
        let values = self.values.get_mut(i as usize).map(std::mem::take).unwrap_or_default();
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

    // Marks.

    pub(super) fn new_annotation(&mut self, pairs: &[Value], cx: &Context<'_>) -> Node {
        let name = self.symbols.string("");
        self.annotations.push(Annotation { name, stage: Stage::Other, device: 0, time: TimeUs::UNKNOWN });
        let i = self.annotations.len() as u32 - 1;
        self.set_annotation(i, pairs, cx);
        Node::Annotation(i)
    }

    pub(super) fn set_annotation(&mut self, i: u32, pairs: &[Value], cx: &Context<'_>) {
        let Some(mut annotation) = self.annotations.get(i as usize).copied() else { return };
        self.each(pairs, cx, |this, key, value| match key {
            Key::Name => annotation.name = this.text(value, cx).unwrap_or(annotation.name),
            Key::Stage => {
                if let Kind::Str(stage) = value.kind() {
                    annotation.stage = match cx.atoms.str(stage) {
                        "START" => Stage::Start,
                        "END" => Stage::End,
                        _ => Stage::Other,
                    };
                }
            }
            Key::Device => annotation.device = u32::try_from(number(value, cx)).unwrap_or(0),
            Key::TimeUs => annotation.time = TimeUs(number(value, cx)),
            _ => {}
        });
        if let Some(place) = self.annotations.get_mut(i as usize) {
            *place = annotation;
        }
    }

    // The whole.

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
            Key::ExternalAnnotations => this.features.annotations = true,
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
