//! The dicts of a trace: events, the frames of their stacks, and marks in time.

use vramscope_model::{Action, Annotation, Bytes, Event, FrameId, PoolId, StackId, Stage, StreamId, TimeUs};
use vramscope_pickle::{Context, Kind, Value};

use super::values::whole;
use super::{Builder, Node};
use crate::error::excerpt;
use crate::keys::Key;

impl Builder<'_> {
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
                Key::Addr | Key::DeviceFree => event.addr = self.address(value, cx),
                Key::Size => event.size = self.bytes(value, cx),
                Key::Stream => event.stream = self.stream_of(value, cx),
                Key::TimeUs => {
                    event.time = self.time(value, cx);
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
                        && !self.words.is_blank(text, cx.atoms)
                    {
                        let text = self.words.symbol(text, cx.atoms, self.symbols);
                        self.events.set_compile_context(i, text);
                    }
                }
                Key::UserMetadata => {
                    self.features.user_metadata = true;
                    if let Kind::Str(text) = value.kind()
                        && !self.words.is_blank(text, cx.atoms)
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
                Key::Line => line = line_number(pair[1], cx),
                _ => {}
            }
        }
        self.symbols.frame(file, name, line)
    }

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
            Key::Device => {
                let device = whole(value, cx).and_then(|v| u32::try_from(v).ok());
                annotation.device = device.unwrap_or_else(|| {
                    this.warn_once(cx.offset, "the device of a mark is no device's number; it is taken as 0");
                    0
                });
            }
            Key::TimeUs => annotation.time = this.time(value, cx),
            _ => {}
        });
        if let Some(place) = self.annotations.get_mut(i as usize) {
            *place = annotation;
        }
    }
}

/// The number of a line; 0 stands for one that is not known.
#[inline]
fn line_number(value: Value, cx: &Context<'_>) -> u32 {
    match value.kind() {
        Kind::Int(v) => u32::try_from(v).unwrap_or(0),
        _ => whole(value, cx).and_then(|v| u32::try_from(v).ok()).unwrap_or(0),
    }
}
