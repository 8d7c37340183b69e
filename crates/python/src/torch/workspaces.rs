//! The workspaces that torch keeps for cuBLAS: one for each thread and stream that multiplied matrices, in two maps of its own.
//!
//! torch exports functions that return the maps by reference, and has since 1.13. They are called for the address only; the maps, which other threads may
//! change meanwhile, are read as memory. What is read is a claim: it must be the address of a block to count.

use crate::own_memory::Memory;

/// Workspaces of cuBLAS, and of cuBLASLt where it has its own, by the names under which the C++ compiler exports the functions.
const MAPS: [&std::ffi::CStr; 2] = [
    c"_ZN2at4cuda33cublas_handle_stream_to_workspaceEv",
    c"_ZN2at4cuda35cublaslt_handle_stream_to_workspaceEv",
];
/// More than any program has threads and streams.
const MOST: usize = 1 << 16;

/// Where a `std::map` of libstdc++ keeps its root: after the comparison and the root's colour comes the parent of the header.
const ROOT: usize = 16;
/// Where a node of it keeps the smaller and the larger ones, after its colour and parent.
const SIDES: [usize; 2] = [16, 24];
/// Where a node keeps its value: after itself and a key of two pointers. The value begins with a `DataPtr`, and that with the address.
const ADDRESS: usize = 32 + 16;

/// The addresses of all workspaces, in no order; none where torch has no CUDA.
pub(crate) fn addresses() -> Vec<usize> {
    addresses_in(MAPS.iter().filter_map(|name| map(name)))
}

/// The addresses that are the values of some maps.
pub(super) fn addresses_in(maps: impl Iterator<Item = usize>) -> Vec<usize> {
    let Some(mut memory) = Memory::open() else { return Vec::new() };
    maps.flat_map(|map| values(&mut memory, map)).collect()
}

/// The address of a map.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "calls of the system's loader, and of a function of torch")]
fn map(name: &std::ffi::CStr) -> Option<usize> {
    // SAFETY: with NOLOAD nothing is loaded, so no code runs; the name ends in a zero byte.
    let library = unsafe { libc::dlopen(c"libtorch_cuda.so".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if library.is_null() {
        return None;
    }
    // SAFETY: the handle is good until it is closed, and the name ends in a zero byte.
    let function = unsafe { libc::dlsym(library, name.as_ptr()) };
    // SAFETY: the handle is from `dlopen` and closed once; the library stays, as torch uses it.
    unsafe { libc::dlclose(library) };
    if function.is_null() {
        return None;
    }
    // SAFETY: by the name it is `at::cuda::cublas_handle_stream_to_workspace()` or its twin, which takes nothing and returns a reference to a static,
    // in all releases. It does nothing else than to make that static if it is the first to ask.
    let function: extern "C" fn() -> *const u8 = unsafe { std::mem::transmute(function) };
    Some(function() as usize).filter(|&map| map != 0)
}

#[cfg(not(target_os = "linux"))]
fn map(_name: &std::ffi::CStr) -> Option<usize> {
    None
}

/// The first word of each value of a map.
fn values(memory: &mut Memory, map: usize) -> Vec<usize> {
    let mut values = Vec::new();
    let mut open: Vec<usize> = map.checked_add(ROOT).and_then(|at| memory.pointer(at)).into_iter().collect();
    let mut seen = 0;
    while let Some(node) = open.pop() {
        seen += 1;
        if seen > MOST {
            break;
        }
        let word = |memory: &mut Memory, offset: usize| memory.word(node.checked_add(offset)?);
        values.extend(word(memory, ADDRESS).and_then(|value| usize::try_from(value).ok()));
        open.extend(SIDES.iter().filter_map(|&side| memory.pointer(node.checked_add(side)?)));
    }
    values
}
