//! Builds a [`Snapshot`](vramscope_model::Snapshot) from containers as they are filled, whatever format they come from.
//!
//! A dict tells what it is by its keys. As soon as they suffice it becomes a row of some column (an event, a block, a
//! frame …) and only the row's number is kept; a dict that has not shown yet what it is (protocol 0 fills dicts key by
//! key) keeps its items until it has. Lists of frames become stacks, lists of events become ranges. So the memory
//! needed is that of the columns and 8 bytes for each container, never a tree of values.

mod assemble;
mod records;

use std::ops::Range;

use vramscope_model::{Annotation, Events, Features, FrameId, PoolId, Segment, StackId, Symbols};
use vramscope_pickle::{Context, Kind, Sink, Value};

use crate::error::Warning;
use crate::keys::{Key, Words};
use records::{BlockDraft, HistoryDraft, RootDraft};

/// What became of a container. Numbers are places in the builder's tables.
#[derive(Clone, Copy, Debug)]
enum Node {
    /// A dict or list that holds nothing yet.
    Empty,
    /// A dict that has not shown what it is, or whose items are wanted as they are (settings).
    Items(u32),
    /// A list of values that is neither a stack nor a trace.
    Values(u32),
    Frame(FrameId),
    Stack(StackId),
    Event(u32),
    /// A list of events, as ranges of the event columns.
    Trace(u32),
    Block(u32),
    History(u32),
    Segment(u32),
    Annotation(u32),
    Pool(PoolId),
    Root(u32),
}

/// See the module's documentation.
pub(crate) struct Builder<'a> {
    symbols: &'a mut Symbols,
    words: Words,
    nodes: Vec<Node>,
    items: Vec<Vec<Value>>,
    values: Vec<Vec<Value>>,
    events: Events,
    traces: Vec<Vec<Range<u32>>>,
    blocks: Vec<BlockDraft>,
    histories: Vec<HistoryDraft>,
    segments: Vec<(u32, Segment)>,
    annotations: Vec<Annotation>,
    roots: Vec<RootDraft>,
    features: Features,
    warnings: Vec<Warning>,
    scratch: Vec<FrameId>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(symbols: &'a mut Symbols) -> Self {
        Self {
            symbols,
            words: Words::default(),
            nodes: Vec::new(),
            items: Vec::new(),
            values: Vec::new(),
            events: Events::default(),
            traces: Vec::new(),
            blocks: Vec::new(),
            histories: Vec::new(),
            segments: Vec::new(),
            annotations: Vec::new(),
            roots: Vec::new(),
            features: Features::default(),
            warnings: Vec::new(),
            scratch: Vec::new(),
        }
    }

    #[inline]
    fn node(&self, number: u32) -> Node {
        self.nodes.get(number as usize).copied().unwrap_or(Node::Empty)
    }

    #[inline]
    fn set_node(&mut self, number: u32, node: Node) {
        if let Some(place) = self.nodes.get_mut(number as usize) {
            *place = node;
        }
    }

    #[inline]
    fn new_node(&mut self, node: Node) -> u32 {
        let number = self.nodes.len() as u32;
        self.nodes.push(node);
        number
    }

    /// Says something once, with the first place where it was seen.
    fn warn_once(&mut self, offset: u64, text: &str) {
        if !self.warnings.iter().any(|w| w.text == text) {
            self.warnings.push(Warning::at(offset, text));
        }
    }

    /// The union of the keys of some items.
    #[inline]
    fn keys_of(&mut self, pairs: &[Value], cx: &Context<'_>) -> u64 {
        let mut mask = 0;
        for pair in pairs.chunks_exact(2) {
            if let Kind::Str(id) = pair[0].kind() {
                mask |= self.words.key(id, cx.atoms).bit();
            }
        }
        mask
    }

    /// Turns an undecided dict into what its keys show it to be.
    fn decide(&mut self, pairs: &[Value], mask: u64, cx: &Context<'_>) -> Node {
        let has = |key: Key| mask & key.bit() != 0;
        if has(Key::Action) {
            self.new_event(pairs, cx)
        } else if has(Key::Filename) && has(Key::Line) && has(Key::Name) {
            Node::Frame(self.frame_of(pairs, cx))
        } else if has(Key::State) && has(Key::Size) {
            self.new_block(pairs, cx)
        } else if has(Key::TotalSize) {
            self.new_segment(pairs, cx)
        } else if has(Key::Segments) || has(Key::DeviceTraces) {
            self.new_root(pairs, cx)
        } else if has(Key::Stage) || (has(Key::Name) && has(Key::TimeUs)) {
            self.new_annotation(pairs, cx)
        } else if has(Key::RealSize) {
            self.new_history(pairs, cx)
        } else {
            self.items.push(pairs.to_vec());
            Node::Items(self.items.len() as u32 - 1)
        }
    }

    /// The frame that a value stands for, if it is one.
    fn frame_in(&mut self, value: Value, cx: &Context<'_>) -> Option<FrameId> {
        let Kind::Dict(number) = value.kind() else { return None };
        match self.node(number) {
            Node::Frame(frame) => Some(frame),
            Node::Items(i) => {
                // A frame that lacks a key: what it has is still worth showing.
                let pairs = self.items.get(i as usize)?.clone();
                let mask = self.keys_of(&pairs, cx);
                let is_frame = mask & (Key::Filename.bit() | Key::Line.bit()) != 0;
                is_frame.then(|| self.frame_of(&pairs, cx))
            }
            _ => None,
        }
    }

    fn append_values(&mut self, list: u32, items: &[Value]) {
        if let Node::Values(i) = self.node(list) {
            if let Some(values) = self.values.get_mut(i as usize) {
                values.extend_from_slice(items);
            }
            return;
        }
        self.values.push(items.to_vec());
        self.set_node(list, Node::Values(self.values.len() as u32 - 1));
    }

    /// Adds events to a trace, as long as they are events.
    fn append_events(&mut self, trace: u32, items: &[Value], cx: &Context<'_>) {
        let nodes = &self.nodes;
        let Some(ranges) = self.traces.get_mut(trace as usize) else { return };
        let mut stray = false;
        for item in items {
            let Kind::Dict(number) = item.kind() else {
                stray = true;
                continue;
            };
            let Some(&Node::Event(event)) = nodes.get(number as usize) else {
                stray = true;
                continue;
            };
            match ranges.last_mut() {
                Some(last) if last.end == event => last.end = event + 1,
                _ => ranges.push(event..event + 1),
            }
        }
        if stray {
            self.warn_once(cx.offset, "a trace holds something that is no event; it was left out");
        }
    }

    /// Adds frames to a stack. Returns whether all items were frames.
    fn append_frames(&mut self, list: u32, before: StackId, items: &[Value], cx: &Context<'_>) -> bool {
        let mut frames = std::mem::take(&mut self.scratch);
        frames.clear();
        frames.extend_from_slice(self.symbols.frames(before));
        let mut all = true;
        for &item in items {
            // Nearly all frames were decided long ago; look there first.
            let known = match item.kind() {
                Kind::Dict(number) => match self.nodes.get(number as usize) {
                    Some(&Node::Frame(frame)) => Some(frame),
                    _ => self.frame_in(item, cx),
                },
                _ => None,
            };
            match known {
                Some(frame) => frames.push(frame),
                None => all = false,
            }
        }
        if all || !frames.is_empty() {
            let stack = self.symbols.stack(&frames);
            self.set_node(list, Node::Stack(stack));
        }
        self.scratch = frames;
        all
    }
}

impl Sink for Builder<'_> {
    #[inline]
    fn dict(&mut self) -> u32 {
        self.new_node(Node::Empty)
    }

    #[inline]
    fn list(&mut self) -> u32 {
        self.new_node(Node::Empty)
    }

    fn tuple(&mut self, items: &[Value], cx: &Context<'_>) -> u32 {
        let pool = self.pool_of(items, cx);
        let number = self.new_node(pool.map_or(Node::Empty, Node::Pool));
        if pool.is_none() {
            self.append(number, items, cx);
        }
        number
    }

    #[inline]
    fn set_items(&mut self, dict: u32, pairs: &[Value], cx: &Context<'_>) {
        match self.node(dict) {
            Node::Empty => {
                // Nearly all dicts are events, and every writer puts their action first.
                let is_event = match pairs.first().map(|v| v.kind()) {
                    Some(Kind::Str(id)) => self.words.key(id, cx.atoms) == Key::Action,
                    _ => false,
                };
                let node = if is_event {
                    self.new_event(pairs, cx)
                } else {
                    let mask = self.keys_of(pairs, cx);
                    self.decide(pairs, mask, cx)
                };
                self.set_node(dict, node);
            }
            Node::Items(i) => {
                let mut all = match self.items.get_mut(i as usize) {
                    Some(items) => std::mem::take(items),
                    None => Vec::new(),
                };
                all.extend_from_slice(pairs);
                let mask = self.keys_of(&all, cx);
                match self.decide(&all, mask, cx) {
                    // Still undecided: keep its old place.
                    Node::Items(_) => {
                        self.items.pop();
                        if let Some(items) = self.items.get_mut(i as usize) {
                            *items = all;
                        }
                    }
                    decided => self.set_node(dict, decided),
                }
            }
            Node::Event(i) => self.set_event(i, pairs, cx),
            Node::Block(i) => self.set_block(i, pairs, cx),
            Node::Segment(i) => self.set_segment(i, pairs, cx),
            Node::Root(i) => self.set_root(i, pairs, cx),
            Node::Annotation(i) => self.set_annotation(i, pairs, cx),
            Node::History(i) => self.set_history(i, pairs, cx),
            // A frame's other keys (fx_node_op, …) come after it is known.
            Node::Frame(_) | Node::Values(_) | Node::Stack(_) | Node::Trace(_) | Node::Pool(_) => {}
        }
    }

    #[inline]
    fn append(&mut self, list: u32, items: &[Value], cx: &Context<'_>) {
        let Some(&first) = items.first() else { return };
        match self.node(list) {
            Node::Empty => {
                let first = match first.kind() {
                    Kind::Dict(number) => self.node(number),
                    _ => Node::Empty,
                };
                match first {
                    Node::Event(_) => {
                        self.traces.push(Vec::new());
                        let trace = self.traces.len() as u32 - 1;
                        self.set_node(list, Node::Trace(trace));
                        self.append_events(trace, items, cx);
                    }
                    Node::Frame(_) => {
                        if !self.append_frames(list, StackId::EMPTY, items, cx) {
                            self.warn_once(
                                cx.offset,
                                "a stack holds something that is no frame; it was left out",
                            );
                        }
                    }
                    _ => {
                        if !matches!(first, Node::Items(_))
                            || !self.append_frames(list, StackId::EMPTY, items, cx)
                        {
                            self.append_values(list, items);
                        }
                    }
                }
            }
            Node::Stack(before) => {
                self.append_frames(list, before, items, cx);
            }
            Node::Trace(trace) => self.append_events(trace, items, cx),
            Node::Values(_) => self.append_values(list, items),
            _ => {}
        }
    }
}
