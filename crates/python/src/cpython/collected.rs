//! All objects that the collector knows, oldest generation first.

use std::ffi::{c_int, c_void};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::layout::Collector;
use super::memory::{Address, GC_HEADER, symbol, word};

/// Calls `each` with every object that the collector knows.
///
/// The collector's lists are followed where they were recognised, since neither of the other ways shows frozen objects (and
/// `gc.get_objects()` takes a reference to each).
pub(super) fn each_collected(
    py: Python<'_>,
    collector: Option<Collector>,
    mut each: impl FnMut(Address),
) -> PyResult<()> {
    if let Some(lists) = collector.and_then(|c| lists(py, c)) {
        // An object may be met twice if a list turns out to be broken: adding it again does nothing.
        if lists.iter().all(|&head| follow(head, &mut each).is_ok()) {
            return Ok(());
        }
    }
    if let Some(visit_objects) = symbol(c"PyUnstable_GC_VisitObjects") {
        visited(visit_objects, &mut each);
        return Ok(());
    }
    let objects = py.import("gc")?.call_method0("get_objects")?.cast_into::<PyList>()?;
    let list = objects.as_ptr();
    // SAFETY: it is a list, the index lies within, and the reference is borrowed.
    let addresses: Vec<Address> =
        (0..objects.len()).map(|i| unsafe { ffi::PyList_GetItem(list, i as isize) as Address }).collect();
    // Gone before reference counts are read. All of its objects are alive by themselves: the collector knew them before it was made.
    drop(objects);
    addresses.into_iter().for_each(each);
    Ok(())
}

/// The heads of the lists: frozen, old, middle, young. Nothing if they are not where they are said to be.
pub(super) fn lists(_py: Python<'_>, collector: Collector) -> Option<[Address; 4]> {
    // SAFETY: the GIL is held, so there is an interpreter.
    let young = unsafe { ffi::PyInterpreterState_Get() } as Address + collector.generations;
    // SAFETY: it lies within the interpreter's state, which is larger in every release.
    let recognised = unsafe { word(young + collector.recognised_by) } == young;
    let lists = [young + collector.permanent, young + 48, young + 24, young];
    let linked = |&head: &Address| {
        // SAFETY: as above; the neighbours of a head are heads of lists or of objects.
        unsafe {
            let (next, previous) = (word(head), word(head + 8));
            let aligned = next % 8 == 0 && previous % 8 == 0 && next != 0 && previous != 0;
            aligned && word(next + 8) & !3 == head && word(previous) & !1 == head
        }
    };
    (recognised && lists.iter().all(linked)).then_some(lists)
}

struct Broken;

/// Follows one list from its head until it comes back.
fn follow(head: Address, each: &mut impl FnMut(Address)) -> Result<(), Broken> {
    let mut previous = head;
    // SAFETY: a list of the collector is a ring of headers, each of which lies before an object that is alive.
    unsafe {
        let mut at = word(head) & !1;
        while at != head {
            if at == 0 || word(at + 8) & !3 != previous {
                return Err(Broken);
            }
            each(at + GC_HEADER);
            previous = at;
            at = word(at) & !1;
        }
    }
    Ok(())
}

/// As the interpreter offers it since 3.12. It starts with the youngest: the generations are told apart by the links between neighbours.
fn visited(visit_objects: *mut c_void, each: &mut impl FnMut(Address)) {
    type Callback = unsafe extern "C" fn(*mut ffi::PyObject, *mut c_void) -> c_int;
    unsafe extern "C" fn note(object: *mut ffi::PyObject, all: *mut c_void) -> c_int {
        // SAFETY: this is the list that is given below.
        unsafe { (*all.cast::<Vec<Address>>()).push(object as Address) };
        1 // go on
    }
    let mut all: Vec<Address> = Vec::new();
    // SAFETY: the function has this signature wherever it exists; the callback only appends to the list.
    unsafe {
        let visit_objects: unsafe extern "C" fn(Callback, *mut c_void) = std::mem::transmute(visit_objects);
        visit_objects(note, (&raw mut all).cast());
    }
    let mut end = all.len();
    for start in (0..all.len()).rev() {
        // SAFETY: each of them has a header of the collector before it.
        let begins = start == 0 || unsafe { word(all[start - 1] - GC_HEADER) } & !1 != all[start] - GC_HEADER;
        if begins {
            all[start..end].iter().for_each(|&object| each(object));
            end = start;
        }
    }
}
