//! What is registered with `atexit`. Up to 3.9 the module shows it to the collector; since then the interpreter has it, in C.
//!
//! Where the interpreter has it is found once, by a callback that is known to be there: `logging.shutdown`, which `import logging` registers. The
//! interpreter's state is read as memory for that, since most of what lies in it is not known.

use pyo3::ffi;
use pyo3::prelude::*;

use super::memory::{Address, SIZE, TYPE, int, word};
use crate::own_memory::Memory;

/// Where the interpreter keeps what is registered, from the beginning of its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Callbacks {
    /// An array of pointers to a function, its arguments and its keyword arguments, and how many (3.10 to 3.13).
    Array(usize),
    /// A list of tuples of these three (since 3.14).
    List(usize),
}

/// Interpreters' states are smaller.
const MOST_BYTES: usize = 1 << 20;
/// More is not believed.
const MOST_CALLBACKS: usize = 1 << 20;
/// Where lists keep their items.
const ITEMS_OF_LIST: usize = 24;
/// Where tuples begin: since 3.14 a hash comes first.
const ITEMS_OF_TUPLE: [usize; 2] = [24, 32];

/// Finds it; `None` where the module has them, nothing is registered that is known, or this is another layout.
pub(super) fn find(py: Python<'_>) -> Option<Callbacks> {
    if py.version_info().minor < 10 {
        return None;
    }
    let modules = py.import("sys").and_then(|sys| sys.getattr("modules")).ok()?;
    let known = modules.get_item("logging").and_then(|logging| logging.getattr("shutdown")).ok()?;
    let n: usize =
        py.import("atexit").and_then(|atexit| atexit.call_method0("_ncallbacks")?.extract()).ok()?;
    let look =
        Look { known: known.as_ptr() as u64, n: u64::try_from(n).ok().filter(|_| n < MOST_CALLBACKS)? };
    let interpreter = interpreter(py);
    let mut memory = Memory::open()?;
    for offset in (0..MOST_BYTES).step_by(8) {
        // Where the state ends is not known; past its last page nothing can be read.
        memory.word(interpreter + offset)?;
        if look.is_array(&mut memory, interpreter + offset) {
            return Some(Callbacks::Array(offset));
        }
        if look.is_list(&mut memory, interpreter + offset) {
            return Some(Callbacks::List(offset));
        }
    }
    None
}

/// What must be found.
struct Look {
    known: u64,
    n: u64,
}

impl Look {
    /// Whether a pointer to an array is kept here, followed by how many are in it and for how many there is room, and the known one is among them.
    fn is_array(&self, memory: &mut Memory, at: usize) -> bool {
        let Some(counts) = memory.word(at + 8) else { return false };
        let (n, room) = (counts & u64::from(u32::MAX), counts >> 32);
        if n != self.n || n == 0 || room < n || room > 2 * MOST_CALLBACKS as u64 {
            return false;
        }
        let Some(array) = memory.pointer(at) else { return false };
        (0..n as usize).any(|i| {
            let callback = memory.pointer(array + 8 * i);
            callback.is_some_and(|callback| memory.word(callback) == Some(self.known))
        })
    }

    /// Whether a pointer to a list is kept here, and a tuple in it begins with the known one.
    fn is_list(&self, memory: &mut Memory, at: usize) -> bool {
        let Some(list) = memory.pointer(at) else { return false };
        let list_type = &raw const ffi::PyList_Type as u64;
        if memory.word(list + TYPE) != Some(list_type) || memory.word(list + SIZE) != Some(self.n) {
            return false;
        }
        let Some(items) = memory.pointer(list + ITEMS_OF_LIST) else { return false };
        (0..self.n as usize).any(|i| {
            let tuple = memory.pointer(items + 8 * i);
            tuple.is_some_and(|tuple| {
                ITEMS_OF_TUPLE.iter().any(|first| memory.word(tuple + first) == Some(self.known))
            })
        })
    }
}

/// The state of the interpreter that runs.
fn interpreter(_py: Python<'_>) -> Address {
    // SAFETY: the GIL is held.
    unsafe { ffi::PyInterpreterState_Get() as Address }
}

/// Functions, arguments and keyword arguments that are registered; where they are in a list, the list.
///
/// # Safety
/// `callbacks` must have been found in this process.
pub(super) unsafe fn registered(py: Python<'_>, callbacks: Callbacks) -> Vec<Address> {
    let interpreter = interpreter(py);
    // SAFETY: the caller says that it is there; no Python code runs that could change it.
    unsafe {
        match callbacks {
            Callbacks::List(_) => list(py, callbacks).into_iter().collect(),
            Callbacks::Array(offset) => {
                let array = word(interpreter + offset);
                let n = usize::try_from(int(interpreter + offset + 8)).unwrap_or(0);
                (0..n)
                    .map(|i| word(array + 8 * i))
                    // What was unregistered leaves a hole.
                    .filter(|&callback| callback != 0)
                    .flat_map(|callback| [0, 8, 16].map(|field| word(callback + field)))
                    .filter(|&object| object != 0)
                    .collect()
            }
        }
    }
}

/// The list of what is registered, where it is one.
///
/// # Safety
/// As for [`registered`].
pub(super) unsafe fn list(py: Python<'_>, callbacks: Callbacks) -> Option<Address> {
    match callbacks {
        Callbacks::Array(_) => None,
        // SAFETY: the caller says that it is there.
        Callbacks::List(offset) => Some(unsafe { word(interpreter(py) + offset) }),
    }
}
