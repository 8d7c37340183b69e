//! Builds a [`Snapshot`](vramscope_model::Snapshot) from containers as they are filled, whatever format they come from.
//!
//! A dict tells what it is by its keys. As soon as they suffice it becomes a row of some column (an event, a block, a
//! frame …) and only the row's number is kept; a dict that has not shown yet what it is (protocol 0 fills dicts key by
//! key) keeps its items until it has. Lists of frames become stacks, lists of events become ranges. So the memory
//! needed is that of the columns and 8 bytes for each container, never a tree of values.
//!
//! A file may be made to do harm: no key, list or reference in it may cost more than its own bytes allow. So nothing
//! that a reference leads to is copied at each use.

mod assemble;
mod lists;
mod node;
mod state;
mod trace;
mod values;

use std::ops::Range;

use vramscope_model::{Annotation, Events, Features, FrameId, StackId, Symbols};
use vramscope_pickle::{Context, Kind, Sink, Value};

use crate::error::Warning;
use crate::keys::{Key, Words};
use node::{Node, Nodes};
use state::{BlockDraft, HistoryDraft, RootDraft, SegmentDraft};

/// A dict that has not shown what it is.
#[derive(Default)]
struct Undecided {
    pairs: Vec<Value>,
    keys: u64,
}

/// A list of events.
#[derive(Default)]
struct Trace {
    ranges: Vec<Range<u32>>,
    len: usize,
}

/// A stack that comes frame by frame, until it is first used.
struct GrowingStack {
    frames: Vec<FrameId>,
    used_as: Option<StackId>,
}

/// How many containers one file may hold; there are about two for each event. Looked at once for each piece that is read, so
/// some room is left below what a node can hold.
pub(crate) const MAX_CONTAINERS: usize = node::MOST - (1 << 24);
/// How many containers a file may hold whatever its size.
const FREE_CONTAINERS: u64 = 1 << 20;
/// How many snapshots may lie in one file. Only the first is read.
const MAX_ROOTS: usize = 1024;
/// How many distinct warnings are kept.
const MAX_WARNINGS: usize = 50;

/// See the module's documentation.
pub(crate) struct Builder<'a> {
    symbols: &'a mut Symbols,
    words: Words,
    nodes: Nodes,
    max_containers: usize,
    undecided: Vec<Undecided>,
    values: Vec<Vec<Value>>,
    growing: Vec<GrowingStack>,
    events: Events,
    traces: Vec<Trace>,
    blocks: Vec<BlockDraft>,
    histories: Vec<HistoryDraft>,
    segments: Vec<SegmentDraft>,
    annotations: Vec<Annotation>,
    roots: Vec<RootDraft>,
    features: Features,
    warnings: Vec<Warning>,
    scratch: Vec<FrameId>,
}

impl<'a> Builder<'a> {
    /// A builder that takes so many containers, [`MAX_CONTAINERS`] for files of unknown origin.
    pub(crate) fn new(symbols: &'a mut Symbols, max_containers: usize) -> Self {
        Self {
            symbols,
            words: Words::default(),
            nodes: Nodes::default(),
            max_containers,
            undecided: Vec::new(),
            values: Vec::new(),
            growing: Vec::new(),
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
        self.nodes.get(number)
    }

    #[inline]
    fn set_node(&mut self, number: u32, node: Node) {
        self.nodes.set(number, node);
    }

    #[inline]
    fn new_node(&mut self, node: Node) -> u32 {
        self.nodes.push(node)
    }

    /// Says something once, with the first place where it was seen.
    fn warn_once(&mut self, offset: u64, text: &str) {
        if self.warnings.len() < MAX_WARNINGS && !self.warnings.iter().any(|w| w.text == text) {
            self.warnings.push(Warning::at(offset, text));
            if self.warnings.len() == MAX_WARNINGS {
                self.warnings.push(Warning::at(offset, "there is more to warn of than is listed here"));
            }
        }
    }

    /// Says something once that has no one place.
    fn warn(&mut self, text: &str) {
        if !self.warnings.iter().any(|w| w.text == text) {
            self.warnings.push(Warning::new(text));
        }
    }

    /// The union of the keys of some items. Segments and traces count where they are lists: other tools write numbers
    /// under such names.
    #[inline]
    fn keys_of(&mut self, pairs: &[Value], cx: &Context<'_>) -> u64 {
        let mut mask = 0;
        for pair in pairs.chunks_exact(2) {
            if let Kind::Str(id) = pair[0].kind() {
                let key = self.words.key(id, cx.atoms);
                let must_be_list = matches!(key, Key::Segments | Key::DeviceTraces);
                if !must_be_list || matches!(pair[1].kind(), Kind::List(_) | Kind::Tuple(_)) {
                    mask |= key.bit();
                }
            }
        }
        mask
    }

    /// Turns a dict into what its keys show it to be, once they do.
    fn decide(&mut self, pairs: &[Value], mask: u64, cx: &Context<'_>) -> Option<Node> {
        let has = |key: Key| mask & key.bit() != 0;
        if has(Key::Action) {
            Some(self.new_event(pairs, cx))
        } else if has(Key::Filename) && has(Key::Line) && has(Key::Name) {
            Some(Node::Frame(self.frame_of(pairs, cx)))
        } else if has(Key::State) && has(Key::Size) {
            Some(self.new_block(pairs, cx))
        } else if has(Key::TotalSize) {
            Some(self.new_segment(pairs, cx))
        } else if has(Key::Segments) || has(Key::DeviceTraces) {
            Some(self.new_root(pairs, cx))
        } else if has(Key::Stage) || (has(Key::Name) && has(Key::TimeUs)) {
            Some(self.new_annotation(pairs, cx))
        } else if has(Key::RealSize) {
            Some(self.new_history(pairs, cx))
        } else {
            None
        }
    }

    /// Adds to what is known of a dict that has not shown what it is.
    #[cold]
    fn learn(&mut self, dict: u32, i: u32, pairs: &[Value], cx: &Context<'_>) {
        let keys = self.keys_of(pairs, cx);
        let Some(place) = self.undecided.get_mut(i as usize) else { return };
        place.pairs.extend_from_slice(pairs);
        place.keys |= keys;
        let all = std::mem::take(place);
        match self.decide(&all.pairs, all.keys, cx) {
            Some(node) => self.set_node(dict, node),
            None => {
                if let Some(place) = self.undecided.get_mut(i as usize) {
                    *place = all;
                }
            }
        }
    }

    /// The frame that a value stands for, if it is one.
    fn frame_in(&mut self, value: Value, cx: &Context<'_>) -> Option<FrameId> {
        let Kind::Dict(number) = value.kind() else { return None };
        match self.node(number) {
            Node::Frame(frame) => Some(frame),
            Node::Items(i) => {
                // A frame that lacks a key: what it has is still worth showing.
                let known = self.undecided.get_mut(i as usize)?;
                if known.keys & (Key::Filename.bit() | Key::Line.bit()) == 0 {
                    return None;
                }
                let pairs = std::mem::take(&mut known.pairs);
                let frame = self.frame_of(&pairs, cx);
                self.set_node(number, Node::Frame(frame));
                Some(frame)
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
        let Some(trace) = self.traces.get_mut(trace as usize) else { return };
        let (mut stray, mut again) = (false, false);
        for item in items {
            let Kind::Dict(number) = item.kind() else {
                stray = true;
                continue;
            };
            let Node::Event(event) = nodes.get(number) else {
                stray = true;
                continue;
            };
            match trace.ranges.last_mut() {
                Some(last) if last.end == event => last.end = event + 1,
                // Events are numbered as they come, so that one with a lower number was there before: were it taken again,
                // two bytes of a file could each cost a row.
                Some(last) if event < last.end => {
                    again = true;
                    continue;
                }
                _ => trace.ranges.push(event..event + 1),
            }
            trace.len += 1;
        }
        if stray {
            self.warn_once(cx.offset, "a trace holds something that is no event; it was left out");
        }
        if again {
            self.warn_once(
                cx.offset,
                "a trace refers to an event that was there before; such references were left out",
            );
        }
    }

    /// Makes a list a stack of these frames. Returns whether all items were frames.
    fn begin_stack(&mut self, list: u32, items: &[Value], cx: &Context<'_>) -> bool {
        let mut frames = std::mem::take(&mut self.scratch);
        frames.clear();
        let all = self.collect_frames(&mut frames, items, cx);
        if all || !frames.is_empty() {
            let stack = self.symbols.stack(&frames);
            self.set_node(list, Node::Stack(stack));
        }
        self.scratch = frames;
        all
    }

    /// Adds frames to a stack that began in an earlier batch.
    #[cold]
    fn extend_stack(&mut self, i: u32, items: &[Value], cx: &Context<'_>) {
        let Some(stack) = self.growing.get_mut(i as usize) else { return };
        if stack.used_as.is_some() {
            self.warn_once(cx.offset, "a stack grows after it was used; the frames added were left out");
            return;
        }
        let mut frames = std::mem::take(&mut stack.frames);
        self.collect_frames(&mut frames, items, cx);
        if let Some(stack) = self.growing.get_mut(i as usize) {
            stack.frames = frames;
        }
    }

    /// Adds those items that are frames. Returns whether all are.
    #[inline]
    fn collect_frames(&mut self, frames: &mut Vec<FrameId>, items: &[Value], cx: &Context<'_>) -> bool {
        let mut all = true;
        for &item in items {
            // Nearly all frames were decided long ago; look there first.
            let known = match item.kind() {
                Kind::Dict(number) => match self.nodes.get(number) {
                    Node::Frame(frame) => Some(frame),
                    _ => self.frame_in(item, cx),
                },
                _ => None,
            };
            match known {
                Some(frame) => frames.push(frame),
                None => all = false,
            }
        }
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
                    let keys = self.keys_of(pairs, cx);
                    self.decide(pairs, keys, cx).unwrap_or_else(|| {
                        self.undecided.push(Undecided { pairs: pairs.to_vec(), keys });
                        Node::Items(self.undecided.len() as u32 - 1)
                    })
                };
                self.set_node(dict, node);
            }
            Node::Items(i) => self.learn(dict, i, pairs, cx),
            Node::Event(i) => self.set_event(i, pairs, cx),
            Node::Block(i) => self.set_block(i, pairs, cx),
            Node::Segment(i) => self.set_segment(i, pairs, cx),
            Node::Root(i) => self.set_root(i, pairs, cx),
            Node::Annotation(i) => self.set_annotation(i, pairs, cx),
            Node::History(i) => self.set_history(i, pairs, cx),
            // A frame's other keys (fx_node_op, …) come after it is known.
            Node::Frame(_)
            | Node::Values(_)
            | Node::Stack(_)
            | Node::Growing(_)
            | Node::Trace(_)
            | Node::Pool(_) => {}
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
                        self.traces.push(Trace::default());
                        let trace = self.traces.len() as u32 - 1;
                        self.set_node(list, Node::Trace(trace));
                        self.append_events(trace, items, cx);
                    }
                    Node::Frame(_) => {
                        if !self.begin_stack(list, items, cx) {
                            self.warn_once(
                                cx.offset,
                                "a stack holds something that is no frame; it was left out",
                            );
                        }
                    }
                    _ => {
                        if !matches!(first, Node::Items(_)) || !self.begin_stack(list, items, cx) {
                            self.append_values(list, items);
                        }
                    }
                }
            }
            Node::Stack(before) => {
                let frames = self.symbols.frames(before).to_vec();
                self.growing.push(GrowingStack { frames, used_as: None });
                let i = self.growing.len() as u32 - 1;
                self.set_node(list, Node::Growing(i));
                self.extend_stack(i, items, cx);
            }
            Node::Growing(i) => self.extend_stack(i, items, cx),
            Node::Trace(trace) => self.append_events(trace, items, cx),
            Node::Values(_) => self.append_values(list, items),
            _ => {}
        }
    }

    #[inline]
    fn is_full(&self, offset: u64) -> bool {
        // What a file may hold of each thing grows with its size, so that a small one cannot fill the memory. The least that
        // a writer spends is 40 bytes for a record, 150 for a segment, 100 for a dict or list of another kind.
        let most = |bytes_each: u64| (FREE_CONTAINERS + offset / bytes_each) as usize;
        let bulky = [self.undecided.len(), self.values.len(), self.growing.len(), self.segments.len()];
        self.nodes.len() > self.max_containers.min(most(8))
            || bulky.iter().any(|&n| n > most(64))
            || self.roots.len() > MAX_ROOTS
    }
}
