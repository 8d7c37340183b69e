//! Which parts of the layout are true of the running interpreter: a few objects whose contents are known are looked at. Nothing is followed
//! before it has been compared with what must be there.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use super::attributes;
use super::collected;
use super::exit::{self, Callbacks};
use super::layout::{self, Collector, Depth, Frames, Generator, Kept, Thread, Values};
use super::memory::{Address, Traverse, flags_of, int, type_field, type_flag, word};
use super::threads;

/// What may be relied on.
#[derive(Clone, Debug, Default)]
pub(super) struct Trusted {
    pub(super) frames: Option<Frames>,
    pub(super) thread: Option<Thread>,
    pub(super) collector: Option<Collector>,
    /// Nothing before 3.11 either.
    pub(super) values: Option<Values>,
    pub(super) immortals: bool,
    /// Nothing before 3.10, where the module has them.
    pub(super) exit: Option<Callbacks>,
    /// Instances do not show their dict to the collector while their values are kept at their end, as in 3.13.0.
    pub(super) dicts_are_hidden: bool,
    /// What is not as expected.
    pub(super) warnings: Vec<String>,
}

const OBJECTS: &str = "
def outer(look, frame_of):
    third = ['third']
    def inner(first):
        second = ['second']
        return first, look(frame_of(0), frame_of(1), inner, first, second, third)[0]
    return inner(['first'])

def numbers(look):
    fourth = ['fourth']
    yield look(fourth)

class Probe:
    def __init__(self):
        self.one = ['one']
        self.two = ['two']

class Meta(type):
    pass
";

/// What may be relied on, found out once in a process.
pub(super) fn trusted(py: Python<'_>) -> PyResult<&'static Trusted> {
    static TRUSTED: OnceLock<Trusted> = OnceLock::new();
    if let Some(trusted) = TRUSTED.get() {
        return Ok(trusted);
    }
    let found = find_out(py)?;
    Ok(TRUSTED.get_or_init(|| found))
}

/// What may be relied on if nothing were known of this release.
pub(super) fn distrusted(py: Python<'_>) -> PyResult<Trusted> {
    let trusted = trusted(py)?;
    Ok(Trusted {
        immortals: trusted.immortals,
        dicts_are_hidden: trusted.dicts_are_hidden,
        warnings: vec!["the layout of this release of CPython is not known".to_owned()],
        ..Trusted::default()
    })
}

fn find_out(py: Python<'_>) -> PyResult<Trusted> {
    let version = py.version_info();
    let release = format!("{}.{}", version.major, version.minor);
    refuse(py, &release)?;
    let names = PyDict::new(py);
    py.run(&std::ffi::CString::new(OBJECTS)?, Some(&names), None)?;
    let class = |name: &str| names.get_item(name).map(|c| c.map_or(0, |c| c.as_ptr() as Address));
    types_are_as_expected(class("Probe")?, class("Meta")?).map_err(|what| {
        PyRuntimeError::new_err(format!("{what} of CPython {release} is not where it is expected\nhint: this build of Python cannot be walked"))
    })?;
    let mut trusted = Trusted { immortals: (version.major, version.minor) >= (3, 12), ..Trusted::default() };
    if let Some(layout) = layout::of_release(version.minor) {
        trusted.thread = Some(layout.thread);
        trusted.collector = collected::lists(py, layout.collector).map(|_| layout.collector);
        trusted.frames = frames_are_as_expected(py, &names, layout.frames)?.then_some(layout.frames);
        if let Some(values) = layout.values {
            trusted.values = values_are_as_expected(&names, values)?.then_some(values);
            trusted.dicts_are_hidden = trusted.values.is_some() && dicts_are_hidden(&names)?;
            if trusted.values.is_none() {
                trusted.warnings.push(format!("attributes of instances are not where CPython {release} should have them: some are shown as .?"));
            }
        }
    }
    trusted.exit = exit::find(py);
    if trusted.frames.is_none() {
        trusted.warnings.push(format!(
            "running frames are not where CPython {release} should have them: {}",
            if version.minor >= 13 {
                "variables are read by f_locals"
            } else {
                "variables of running functions are not known"
            }
        ));
    }
    names.clear(); // its functions refer to it
    Ok(trusted)
}

/// Builds that keep reference counts in other ways, or objects elsewhere.
fn refuse(py: Python<'_>, release: &str) -> PyResult<()> {
    let flags: String = py.import("sys")?.getattr("abiflags")?.extract()?;
    let built_as = if flags.contains('t') {
        "free-threaded"
    } else if flags.contains('d') {
        "debug"
    } else if cfg!(not(target_pointer_width = "64")) {
        "32-bit"
    } else {
        return Ok(());
    };
    Err(PyRuntimeError::new_err(format!(
        "who holds memory cannot be found in {built_as} builds of CPython {release}\nhint: run the program with the ordinary build"
    )))
}

/// Compares the fields of types with what the stable interface says of them.
fn types_are_as_expected(probe: Address, meta: Address) -> Result<(), &'static str> {
    // SAFETY: these are types made by a class statement.
    unsafe {
        let slot = |class: Address, slot| ffi::PyType_GetSlot(class as *mut _, slot) as Address;
        if flags_of(probe) != ffi::PyType_GetFlags(probe as *mut _) as usize {
            return Err("tp_flags");
        }
        if word(probe + type_field::TRAVERSE) != slot(probe, ffi::Py_tp_traverse)
            || slot(probe, ffi::Py_tp_traverse) == 0
        {
            return Err("tp_traverse");
        }
        if word(meta + type_field::IS_GC) != slot(meta, ffi::Py_tp_is_gc) || slot(meta, ffi::Py_tp_is_gc) == 0
        {
            return Err("tp_is_gc");
        }
        if flags_of(meta) & type_flag::TYPE == 0 {
            return Err("a bit of tp_flags");
        }
    }
    Ok(())
}

/// Whether a running function's frame is found from the thread state, and has in it what it must have.
fn frames_are_as_expected(py: Python<'_>, names: &Bound<'_, PyDict>, layout: Frames) -> PyResult<bool> {
    let answers = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&answers);
    let look = PyCFunction::new_closure(
        py,
        None,
        None,
        move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
            let given: Vec<Address> = arguments.iter_borrowed().map(|a| a.as_ptr() as Address).collect();
            // SAFETY: it is called from the functions above, whose frames these are.
            let answer = unsafe { looks_right(arguments.py(), &layout, &given) };
            noted.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
            (0,)
        },
    )?;
    let frame_of = py.import("sys")?.getattr("_getframe")?;
    if let Some(outer) = names.get_item("outer")? {
        outer.call1((&look, frame_of))?;
    }
    let kept = Arc::clone(&answers);
    let in_generator = PyCFunction::new_closure(
        py,
        None,
        None,
        move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
            kept.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(generator_looks_right(arguments, &layout));
        },
    )?;
    // A frame must not be followed before it is known that it is one.
    let so_far = answers.lock().unwrap_or_else(PoisonError::into_inner).as_slice() == [true];
    if so_far && let Some(numbers) = names.get_item("numbers")? {
        for _ in numbers.call1((in_generator,))?.try_iter()? {}
    }
    let answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(answers.as_slice() == [true, true])
}

/// `given` are the frame objects of the two innermost functions, the innermost function, and its variables.
unsafe fn looks_right(py: Python<'_>, layout: &Frames, given: &[Address]) -> bool {
    let &[inner, outer, function, first, second, third] = given else { return false };
    let Some(&thread) = threads::threads(py).first() else { return false };
    // SAFETY: frame objects and thread states are larger than that. `top` goes through one pointer of the thread state at most, which is
    // checked for being one; what it gives is only compared.
    unsafe {
        let frame_of = |object: Address| layout.of_object.map_or(object, |field| word(object + field));
        let (inner_frame, outer_frame) = (frame_of(inner), frame_of(outer));
        let pointer = word(thread + layout.top);
        if pointer == 0
            || !pointer.is_multiple_of(8)
            || (layout.through.is_some() && !near_stack_or_thread(pointer, thread))
        {
            return false;
        }
        if threads::top(layout, thread) != inner_frame || inner_frame % 8 != 0 || inner_frame == 0 {
            return false;
        }
        // From here on it is known to be the frame. Its first fields lie within it in any release.
        if word(inner_frame + layout.previous) != outer_frame {
            return false;
        }
        let code = ffi::PyObject_GetAttrString(function as *mut _, c"__code__".as_ptr());
        if code.is_null() {
            ffi::PyErr_Clear();
            return false;
        }
        ffi::Py_DecRef(code); // the function keeps it
        let code = code as Address;
        if word(inner_frame + layout.code) & !3 != code || word(inner_frame + layout.slots) & !3 != first {
            return false;
        }
        let variables = threads::variables(layout, code);
        let names: Vec<Option<String>> = variables.iter().map(|&v| super::memory::text(v)).collect();
        let expected = ["first", "second", "frame_of", "inner", "look", "third"];
        if names.iter().map(|n| n.as_deref().unwrap_or("")).ne(expected) {
            return false;
        }
        let slots: Vec<Address> = threads::slots(layout, inner_frame, 6).map(|(object, _)| object).collect();
        let cell_holds = |cell: Address, object| {
            super::memory::type_of(cell) == super::memory::cell_type() && word(cell + 16) == object
        };
        let stack_size = int(code + layout.code_fields.stack_size);
        let globals = ffi::PyObject_GetAttrString(function as *mut _, c"__globals__".as_ptr());
        ffi::Py_DecRef(globals);
        slots[..2] == [first, second]
            && slots.iter().all(|&slot| slot != 0)
            && cell_holds(slots[5], third)
            && (6..100).contains(&stack_size)
            && word(inner_frame + layout.globals) == globals as Address
            && layout.object.is_none_or(|field| word(inner_frame + field) == inner)
            && layout.function.is_none_or(|field| word(inner_frame + field) & !3 == function)
            && depth_is_possible(layout, inner_frame)
            && super::memory::text(word(code + layout.code_fields.name)).as_deref() == Some("inner")
    }
}

/// While a function of C is called, the depth may or may not be written down.
unsafe fn depth_is_possible(layout: &Frames, frame: Address) -> bool {
    // SAFETY: it is a frame.
    unsafe {
        match layout.depth {
            Depth::Pointer(field) => {
                let top = word(frame + field);
                top == 0 || (top > frame && top < frame + 4096)
            }
            Depth::AboveVariables(field) | Depth::Slots(field) => (-1..100).contains(&int(frame + field)),
        }
    }
}

/// Whether a pointer of the thread state leads to its own memory, or to the stack of the running thread.
fn near_stack_or_thread(pointer: Address, thread: Address) -> bool {
    let here = 0_u8;
    let stack = &raw const here as Address;
    pointer.abs_diff(stack) < 8 << 20 || pointer.abs_diff(thread) < 1024
}

fn generator_looks_right(arguments: &Bound<'_, PyTuple>, layout: &Frames) -> bool {
    let Some(&thread) = threads::threads(arguments.py()).first() else { return false };
    let Ok(fourth) = arguments.get_borrowed_item(0) else { return false };
    // SAFETY: the layout of frames has been found to be true.
    unsafe {
        let frames = threads::running(layout, thread);
        let Some(frame) = frames.first() else { return false };
        let Some(generator) = frame.generator else { return false };
        let around = match layout.generator {
            Generator::Around(distance) => generator + distance == frame.address,
            Generator::Fields { of_generator, .. } => word(generator + of_generator) == frame.address,
        };
        around
            && super::memory::full_type_name(super::memory::type_of(generator)) == "generator"
            && threads::slots(layout, frame.address, 2).any(|(o, _)| o == fourth.as_ptr() as Address)
    }
}

/// Whether the attributes of an instance that has no dict are found, with their names.
fn values_are_as_expected(names: &Bound<'_, PyDict>, layout: Values) -> PyResult<bool> {
    let Some(class) = names.get_item("Probe")? else { return Ok(false) };
    let (plain, with_dict) = (class.call0()?, class.call0()?);
    let dict = with_dict.getattr("__dict__")?.cast_into::<PyDict>()?;
    let (plain, class) = (plain.as_ptr() as Address, class.as_ptr() as Address);
    // SAFETY: instances, dicts and types are at least that large. The keys of the type are believed only if a dict has the same, and the
    // values only if what is found there, without following it, are the keys and values that they must be.
    unsafe {
        let keys = word(class + layout.shared_keys);
        let flags = flags_of(class);
        let inline = !matches!(layout.kept, Kept::AtEnd { .. }) || flags & type_flag::INLINE_VALUES != 0;
        if flags & type_flag::MANAGED_DICT == 0
            || !inline
            || keys == 0
            || word(dict.as_ptr() as Address + 32) != keys
        {
            return Ok(false);
        }
        let known: Vec<Address> =
            super::memory::items(dict.as_ptr() as Address).map(|(key, _)| key).collect();
        let found = attributes::inline_values(&layout, plain);
        if found.len() != 2 || found.iter().map(|f| f.0).ne(known) {
            return Ok(false);
        }
        let is_one = |value: Address, text: &str| {
            value.is_multiple_of(8) && value != 0 && {
                let lists = super::memory::type_of(value) == &raw const ffi::PyList_Type as Address;
                lists
                    && super::memory::text(ffi::PyList_GetItem(value as *mut _, 0) as Address).as_deref()
                        == Some(text)
            }
        };
        Ok(is_one(found[0].1, "one") && is_one(found[1].1, "two"))
    }
}

/// Whether an instance keeps its dict to itself.
fn dicts_are_hidden(names: &Bound<'_, PyDict>) -> PyResult<bool> {
    unsafe extern "C" fn note(object: *mut ffi::PyObject, list: *mut c_void) -> c_int {
        // SAFETY: this is the list that is given below.
        unsafe { (*list.cast::<Vec<Address>>()).push(object as Address) };
        0
    }
    let Some(class) = names.get_item("Probe")? else { return Ok(false) };
    let instance = class.call0()?;
    let dict = instance.getattr("__dict__")?;
    let mut shown: Vec<Address> = Vec::new();
    // SAFETY: the offset of `tp_traverse` has been compared; it is called with an instance, and `note` does nothing but append.
    unsafe {
        let traverse = word(class.as_ptr() as Address + type_field::TRAVERSE);
        if let Some(traverse) = std::mem::transmute::<usize, Option<Traverse>>(traverse) {
            traverse(instance.as_ptr(), note, (&raw mut shown).cast());
        }
    }
    Ok(!shown.contains(&(dict.as_ptr() as Address)))
}
