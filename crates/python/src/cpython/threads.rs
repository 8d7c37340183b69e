//! What the threads hold: the variables of running frames and the temporaries of their evaluation stacks, the exceptions that they handle,
//! and their contexts. It is read where it lies, since looking at `f_locals` would keep deleted variables alive.

use std::ffi::c_void;

use pyo3::ffi;
use pyo3::prelude::*;

use super::graph::UNCOUNTED;
use super::layout::Variables;
use super::layout::{Depth, Frames, Generator, Thread};
use super::memory::{Address, byte, int, symbol, tuple, type_of, word};

/// Frames of the interpreter's own, which only link others; generators own theirs.
const OWNED_BY_GENERATOR: u8 = 1;
const OWNED_BY_INTERPRETER: u8 = 3;

/// One running frame.
#[derive(Clone, Debug)]
pub(super) struct Running {
    /// Where the frame is: a frame object before 3.11.
    pub(super) address: Address,
    /// The generator that runs in it.
    pub(super) generator: Option<Address>,
    pub(super) globals: Address,
    /// What it holds, as the graph wants references: variables, the function. Before 3.11 frames are objects, and show that themselves.
    pub(super) references: Vec<usize>,
    /// What lies on its evaluation stack, if it is known how many those are, and no generator shows them.
    pub(super) temporaries: Vec<usize>,
    /// Whether a generator shows its variables itself.
    pub(super) shows_variables: bool,
    /// Where temporaries may be, if it is not known how many there are: what is read there may be long gone.
    pub(super) maybe: Vec<Address>,
}

/// All threads, the one that asks first.
pub(super) fn threads(_py: Python<'_>) -> Vec<Address> {
    // SAFETY: the GIL is held, so there is a thread state and an interpreter.
    let (own, interpreter) = unsafe { (ffi::PyThreadState_Get() as Address, ffi::PyInterpreterState_Get()) };
    let mut all = vec![own];
    if let (Some(head), Some(next)) =
        (symbol(c"PyInterpreterState_ThreadHead"), symbol(c"PyThreadState_Next"))
    {
        type Step = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
        // SAFETY: the functions have these signatures in all releases; thread states do not go while the GIL is held here.
        unsafe {
            let (head, next) = (
                std::mem::transmute::<*mut c_void, Step>(head),
                std::mem::transmute::<*mut c_void, Step>(next),
            );
            let mut thread = head(interpreter.cast());
            while !thread.is_null() {
                if thread as Address != own {
                    all.push(thread as Address);
                }
                thread = next(thread);
            }
        }
    }
    all
}

/// The top frame of a thread; 0 if nothing runs in it.
///
/// # Safety
/// The layout must be that of the running interpreter, and `thread` a thread state.
pub(super) unsafe fn top(layout: &Frames, thread: Address) -> Address {
    // SAFETY: the caller says so.
    unsafe {
        let top = word(thread + layout.top);
        match layout.through {
            Some(_) if top == 0 => 0,
            Some(offset) => word(top + offset),
            None => top,
        }
    }
}

/// The running frames of a thread, the innermost first.
///
/// # Safety
/// As of [`top`].
pub(super) unsafe fn running(layout: &Frames, thread: Address) -> Vec<Running> {
    let mut all = Vec::new();
    // SAFETY: as the caller says.
    let mut at = unsafe { top(layout, thread) };
    while at != 0 {
        // SAFETY: the frames of a thread are linked until a null pointer.
        unsafe {
            if layout.owner.is_none_or(|owner| byte(at + owner) < OWNED_BY_INTERPRETER) {
                all.extend(frame(layout, at));
            }
            at = word(at + layout.previous);
        }
    }
    all
}

/// Takes off what the low bits of a slot say: the object (0 if there is none), and whether the slot's reference is counted.
fn untag(layout: &Frames, slot: usize) -> (Address, bool) {
    match slot & 3 {
        0 => (slot, true),
        1 if layout.tagged => (slot & !3, false),
        _ => (0, true),
    }
}

/// The code object of a frame.
///
/// # Safety
/// `at` must be a frame, by that layout.
pub(super) unsafe fn code(layout: &Frames, at: Address) -> Option<Address> {
    // SAFETY: the caller says so. Frames have a code object, or None while they are made.
    unsafe {
        let (code, _) = untag(layout, word(at + layout.code));
        (code != 0 && type_of(code) == super::memory::code_type()).then_some(code)
    }
}

/// The names of a frame's variables, in the order of its slots.
///
/// # Safety
/// `code` must be a code object.
pub(super) unsafe fn variables(layout: &Frames, code: Address) -> Vec<Address> {
    // SAFETY: these are tuples of names.
    unsafe {
        match layout.code_fields.variables {
            Variables::One(field) => tuple(word(code + field)),
            Variables::Three(fields) => fields.iter().flat_map(|field| tuple(word(code + field))).collect(),
        }
    }
}

/// What the slots of a frame's variables refer to; 0 for those that have no value.
///
/// # Safety
/// `at` must be a frame, by that layout.
pub(super) unsafe fn slots(layout: &Frames, at: Address, n: usize) -> impl Iterator<Item = (Address, bool)> {
    // SAFETY: a frame has a slot for each of its variables.
    (0..n).map(move |i| untag(layout, unsafe { word(at + layout.slots + 8 * i) }))
}

/// How many slots are in use, variables included; nothing while nobody has written it down.
unsafe fn depth(layout: &Frames, at: Address, n: usize, stack_size: usize) -> Option<usize> {
    // SAFETY: the caller has a frame of that layout.
    let depth = unsafe {
        match layout.depth {
            Depth::Pointer(field) => word(at + field).checked_sub(at + layout.slots)? / 8,
            Depth::AboveVariables(field) => n + usize::try_from(int(at + field)).ok()?,
            Depth::Slots(field) => usize::try_from(int(at + field)).ok()?,
        }
    };
    (n..=n + stack_size).contains(&depth).then_some(depth)
}

unsafe fn frame(layout: &Frames, at: Address) -> Option<Running> {
    // SAFETY: the caller has a frame of that layout.
    unsafe {
        let code = code(layout, at)?;
        let n = variables(layout, code).len();
        let stack_size = usize::try_from(int(code + layout.code_fields.stack_size)).unwrap_or(0);
        let depth = depth(layout, at, n, stack_size);
        let generator = generator(layout, at);
        // A frame object shows its variables itself, but not how deep it is while it runs.
        let shows_variables = layout.of_object.is_none() || depth.is_some();
        let (mut references, mut temporaries) = (Vec::new(), Vec::new());
        if layout.of_object.is_some() {
            let strong = |field: Option<usize>| field.map_or((0, true), |f| untag(layout, word(at + f)));
            if generator.is_none() {
                for (object, counted) in
                    [strong(layout.object), strong(layout.function), strong(Some(layout.locals))]
                {
                    if object != 0 {
                        references.push(object | if counted { 0 } else { UNCOUNTED });
                    }
                }
            }
            for (object, counted) in slots(layout, at, n) {
                if object != 0 {
                    references.push(object | if counted { 0 } else { UNCOUNTED });
                }
            }
            if generator.is_none() {
                let stack = slots(layout, at, depth.unwrap_or(n)).skip(n);
                temporaries =
                    stack.filter(|&(object, counted)| object != 0 && counted).map(|(o, _)| o).collect();
            }
        }
        let maybe = if depth.is_some() {
            Vec::new()
        } else {
            // What is borrowed there is held by a variable.
            slots(layout, at, n + stack_size)
                .skip(n)
                .filter(|&(o, counted)| o != 0 && counted)
                .map(|(o, _)| o)
                .collect()
        };
        let globals = word(at + layout.globals);
        Some(Running { address: at, generator, globals, references, temporaries, shows_variables, maybe })
    }
}

unsafe fn generator(layout: &Frames, at: Address) -> Option<Address> {
    // SAFETY: the caller has a frame of that layout.
    unsafe {
        match layout.generator {
            Generator::Around(distance) => {
                (byte(at + layout.owner?) == OWNED_BY_GENERATOR).then(|| at - distance)
            }
            Generator::Fields { of_frame, .. } => Some(word(at + of_frame)).filter(|&g| g != 0),
        }
    }
}

/// What a thread state refers to. Only what proves to be an object may be used as one.
pub(super) struct Held {
    pub(super) exception: Vec<Address>,
    pub(super) context: Address,
    pub(super) dict: Address,
}

/// Reads what a thread state refers to.
///
/// # Safety
/// `thread` must be a thread state.
pub(super) unsafe fn held(layout: &Thread, thread: Address) -> Held {
    // SAFETY: thread states are larger than that in the releases of which the layout is known.
    unsafe {
        Held {
            exception: layout.exception.iter().map(|field| word(thread + field)).collect(),
            context: word(thread + layout.context),
            dict: word(thread + layout.dict),
        }
    }
}
