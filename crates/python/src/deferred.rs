//! Errors that are raised a moment later, where the program is.
//!
//! Python runs the handlers of signals at the next step of whatever Python code the main thread is in. Where that is a function of ours which the
//! interpreter calls, between the program's own steps, what a handler raises (a timeout, `KeyboardInterrupt`) would be lost: Python prints it and
//! goes on.

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyBaseException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

/// Errors that wait for the main thread.
static WAITING: Mutex<Vec<Py<PyBaseException>>> = Mutex::new(Vec::new());
/// Errors that wait for the end of a fork: others' functions are called in it, too, whose errors Python only prints.
static HELD: Mutex<Vec<Py<PyBaseException>>> = Mutex::new(Vec::new());

/// A function that does what `function` does and never raises: what `is_program` says is the program's own is raised in its main thread a moment
/// later, the rest is dropped. Around a fork, `"before"` keeps it until the function for `"after"` has been called, and that for `"child"` forgets it.
#[pyfunction]
#[pyo3(signature = (function, is_program, fork=None))]
pub(crate) fn deferring(
    py: Python<'_>,
    function: Py<PyAny>,
    is_program: Py<PyAny>,
    fork: Option<String>,
) -> PyResult<Bound<'_, PyCFunction>> {
    PyCFunction::new_closure(
        py,
        None,
        None,
        move |arguments: &Bound<'_, PyTuple>, named: Option<&Bound<'_, PyDict>>| {
            let py = arguments.py();
            let error = function.bind(py).call(arguments, named).err().and_then(|error| {
                // Not before it is a value has it the traceback that the question is about.
                let error = error.into_value(py);
                // The question is put in Python, too, and another handler may run meanwhile: then that is the answer.
                match is_program.bind(py).call1((&error,)).and_then(|answer| answer.is_truthy()) {
                    Ok(true) => Some(error),
                    Ok(false) => None,
                    Err(other) => Some(other.into_value(py)),
                }
            });
            match fork.as_deref() {
                Some("before") => held().extend(error),
                Some("child") => held().clear(),
                _ => {
                    let held = std::mem::take(&mut *held());
                    held.into_iter().chain(error).for_each(|error| raise_later(py, error));
                }
            }
        },
    )
}

#[expect(unsafe_code, reason = "a function of the interpreter")]
fn raise_later(py: Python<'_>, error: Py<PyBaseException>) {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner).push(error);
    // SAFETY: `raise` is a function that stays, and takes no argument.
    let is_full = unsafe { ffi::Py_AddPendingCall(Some(raise), std::ptr::null_mut()) } != 0;
    if is_full && let Some(error) = next() {
        PyErr::from_value(error.into_bound(py).into_any()).write_unraisable(py, None);
    }
}

fn held() -> MutexGuard<'static, Vec<Py<PyBaseException>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn next() -> Option<Py<PyBaseException>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

/// Called by the interpreter in its main thread, between two steps of the program.
extern "C" fn raise(_: *mut c_void) -> c_int {
    Python::attach(|py| match next() {
        Some(error) => {
            PyErr::from_value(error.into_bound(py).into_any()).restore(py);
            -1
        }
        None => 0,
    })
}
