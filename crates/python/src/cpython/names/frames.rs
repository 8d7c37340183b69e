//! References from frames and from generators, which own theirs.

use vramscope_heap::Reference;

use super::{Address, Walk, full_type_name, memory, text, type_of, word};
use crate::cpython::layout::Generator;
use crate::cpython::threads;

/// What is called a temporary: what lies on the evaluation stack.
const TEMPORARY: &str = "<temporary>";

/// A frame, by what is known of it.
#[derive(Clone, Copy)]
pub(super) enum FrameAt {
    /// Where it is.
    Memory(Address),
    /// Its variables were read by `f_locals`.
    Listed(u32),
}

impl Walk<'_> {
    /// The frame that a node is, or that it owns.
    pub(super) fn frame_of(&self, node: u32) -> Option<FrameAt> {
        if let Some(frame) = self.frames.get(&node) {
            return Some(if frame.address == 0 {
                FrameAt::Listed(node)
            } else {
                FrameAt::Memory(frame.address)
            });
        }
        let layout = self.trusted.frames.as_ref()?;
        let object = self.address(node)?;
        // SAFETY: the node is an object that is alive, and the layout has been found to be true.
        unsafe {
            match full_type_name(type_of(object)).as_str() {
                "frame" => Some(layout.of_object.map_or(object, |field| word(object + field)))
                    .filter(|&f| f != 0)
                    .map(FrameAt::Memory),
                "generator" | "coroutine" | "async_generator" => match layout.generator {
                    Generator::Around(distance) => Some(FrameAt::Memory(object + distance)),
                    Generator::Fields { .. } => None,
                },
                _ => None,
            }
        }
    }

    /// The function that runs in a frame.
    pub(super) fn function_of(&self, frame: FrameAt) -> String {
        let known = |node: u32| self.frames.get(&node).map(|frame| frame.function.clone());
        match frame {
            FrameAt::Listed(node) => known(node).unwrap_or_default(),
            FrameAt::Memory(at) => {
                let Some(layout) = &self.trusted.frames else { return String::new() };
                // SAFETY: it is a frame; its code has a name.
                unsafe {
                    threads::code(layout, at)
                        .and_then(|code| text(word(code + layout.code_fields.name)))
                        .unwrap_or_default()
                }
            }
        }
    }

    /// A local variable.
    pub(super) fn local(&self, frame: FrameAt, name: String) -> Reference {
        // The first variable of a comprehension has a name that nobody gave it.
        let name = if name.starts_with('.') { TEMPORARY.to_owned() } else { name };
        Reference::Local { function: self.function_of(frame), name }
    }

    /// References from a frame.
    pub(super) fn from_frame(&self, from: u32, frame: FrameAt, to: u32) -> Reference {
        let value = self.address(to);
        let at = match frame {
            FrameAt::Listed(node) => {
                let variables = self.frames.get(&node).map_or(&[][..], |frame| &frame.variables);
                let found = variables.iter().find(|(_, v)| Some(*v) == value);
                return found.map_or(Reference::Unknown, |(name, _)| self.local(frame, name.clone()));
            }
            FrameAt::Memory(at) => at,
        };
        let (Some(layout), Some(value)) = (&self.trusted.frames, value) else { return Reference::Hidden };
        // SAFETY: it is a frame of that layout, and all that it refers to is alive.
        unsafe {
            let Some(code) = threads::code(layout, at) else { return Reference::Unknown };
            let names = threads::variables(layout, code);
            let found = threads::slots(layout, at, names.len()).position(|(object, _)| object == value);
            if let Some(name) = found.and_then(|at| text(names[at])) {
                return self.local(frame, name);
            }
            // A generator has references of its own, to the exception that it handles for one.
            let is = |field: Option<usize>| field.is_some_and(|f| word(at + f) & !3 == value);
            let parts = [Some(layout.locals), layout.object, layout.function];
            if parts.into_iter().any(is) || full_type_name(type_of(value)) == "frame" {
                return Reference::Hidden;
            }
            if self.address(from).is_some_and(|own| {
                memory::flags_of(type_of(value)) & memory::type_flag::EXCEPTION != 0 && own != at
            }) {
                return self.local(frame, "<exception>".to_owned());
            }
        }
        self.local(frame, TEMPORARY.to_owned())
    }
}
