//! References from frames and from generators, which own theirs.

use vramscope_heap::Reference;

use super::{Address, Walk, text, type_of, word};
use crate::cpython::layout::Generator;
use crate::cpython::{Frame, FrameAt, threads};

/// What is called a temporary: what lies on the evaluation stack.
const TEMPORARY: &str = "<temporary>";

/// A frame object's own fields take less.
const LARGEST_HEADER: usize = 256;

/// The frame that a node is, or that it owns.
#[derive(Clone, Copy)]
pub(super) enum FrameOf<'a> {
    /// It runs.
    Running(&'a Frame),
    /// It waits, or is done; where it is.
    Resting(Address),
    /// It is done, and lives on in a traceback; where it is. Its variables are attributes of what keeps it.
    Ended(Address),
}

impl Walk<'_> {
    /// The frame that a node is, or that it owns.
    pub(super) fn frame_of(&self, node: u32) -> Option<FrameOf<'_>> {
        if let Some(frame) = self.frames.get(&node) {
            return Some(FrameOf::Running(frame));
        }
        let layout = self.trusted.frames.as_ref()?;
        let object = self.address(node)?;
        // SAFETY: the node is an object that is alive.
        let class = unsafe { type_of(object) };
        let frame = if class == self.special.frame {
            // SAFETY: it is a frame object, and the layout has been found to be true.
            let at = layout.of_object.map_or(object, |field| unsafe { word(object + field) });
            // What has ended was moved into the object; what waits lies in its generator. (Before 3.11 all lie in the object.)
            if layout.of_object.is_some() && at.wrapping_sub(object) < LARGEST_HEADER {
                return Some(FrameOf::Ended(at));
            }
            at
        } else if self.special.generators.contains(&class)
            && let Generator::Around(distance) = layout.generator
        {
            object + distance
        } else {
            0
        };
        (frame != 0).then_some(FrameOf::Resting(frame))
    }

    /// The function that runs in a frame.
    pub(super) fn function_of(&self, frame: FrameOf<'_>) -> String {
        match (frame, &self.trusted.frames) {
            (FrameOf::Running(frame), _) => frame.function.clone(),
            // SAFETY: it is a frame; its code has a name.
            (FrameOf::Resting(at) | FrameOf::Ended(at), Some(layout)) => unsafe {
                let code = threads::code(layout, at);
                code.and_then(|code| text(word(code + layout.code_fields.name))).unwrap_or_default()
            },
            (FrameOf::Resting(_) | FrameOf::Ended(_), None) => String::new(),
        }
    }

    /// Whether a frame's variables are in this dict: that of a class or of a module that is being made.
    pub(super) fn has_locals(&self, frame: FrameOf<'_>, dict: Address) -> bool {
        let (FrameOf::Resting(at)
        | FrameOf::Ended(at)
        | FrameOf::Running(&Frame { at: FrameAt::Memory(at), .. })) = frame
        else {
            return false;
        };
        // SAFETY: it is a frame of that layout.
        self.trusted.frames.as_ref().is_some_and(|layout| unsafe { word(at + layout.locals) } == dict)
    }

    /// A local variable.
    pub(super) fn local(&self, frame: FrameOf<'_>, name: String) -> Reference {
        // The first variable of a comprehension has a name that nobody gave it.
        let name = if name.starts_with('.') { TEMPORARY.to_owned() } else { name };
        if matches!(frame, FrameOf::Ended(_)) {
            return Reference::Attribute(name);
        }
        Reference::Local { function: self.function_of(frame), name }
    }

    /// The names of all variables of a frame that have a value.
    pub(super) fn variables(&self, frame: FrameOf<'_>, to: u32) -> Vec<String> {
        let value = self.address(to);
        let at = match frame {
            FrameOf::Resting(at) | FrameOf::Ended(at) => at,
            FrameOf::Running(Frame { at: FrameAt::Memory(at), .. }) => *at,
            FrameOf::Running(Frame { at: FrameAt::Stack, .. }) => return Vec::new(),
            FrameOf::Running(Frame { at: FrameAt::Listed(variables), .. }) => {
                let found = variables.iter().filter(|(_, v)| Some(*v) == value);
                return found.map(|(name, _)| name.clone()).collect();
            }
        };
        let (Some(layout), Some(value)) = (&self.trusted.frames, value) else { return Vec::new() };
        // SAFETY: it is a frame of that layout, and all that it refers to is alive.
        unsafe {
            let Some(code) = threads::code(layout, at) else { return Vec::new() };
            let names = threads::variables(layout, code);
            let slots = threads::slots(layout, at, names.len()).zip(&names);
            slots.filter(|((object, _), _)| *object == value).filter_map(|(_, &name)| text(name)).collect()
        }
    }

    /// References from a frame.
    pub(super) fn in_frame(&self, frame: FrameOf<'_>, to: u32) -> Reference {
        if let Some(name) = self.variables(frame, to).into_iter().next() {
            return self.local(frame, name);
        }
        let at = match frame {
            FrameOf::Resting(at) | FrameOf::Ended(at) => at,
            FrameOf::Running(Frame { at: FrameAt::Memory(at), .. }) => *at,
            FrameOf::Running(Frame { at: FrameAt::Stack, .. }) => {
                return self.local(frame, TEMPORARY.to_owned());
            }
            FrameOf::Running(Frame { at: FrameAt::Listed(_), .. }) => return Reference::Unknown,
        };
        let (Some(layout), Some(value)) = (&self.trusted.frames, self.address(to)) else {
            return Reference::Hidden;
        };
        // SAFETY: it is a frame of that layout, and all that it refers to is alive.
        unsafe {
            if threads::code(layout, at).is_none() {
                return Reference::Unknown;
            }
            let is = |field: Option<usize>| field.is_some_and(|f| word(at + f) & !3 == value);
            let parts = [Some(layout.locals), layout.object, layout.function];
            if parts.into_iter().any(is) || type_of(value) == self.special.frame {
                return Reference::Hidden;
            }
        }
        self.local(frame, TEMPORARY.to_owned())
    }
}
