//! Memory for large columns, in pages so large that look-ups do not wait for the processor to find them.

use std::ffi::{c_int, c_void};

/// A large page, where there are such.
const LARGE: usize = 2 << 20;

/// Asks for large pages for all that a column may take without growing. It need not be granted.
fn advise<T>(column: &[T], capacity: usize) {
    let start = column.as_ptr() as usize;
    let end = start + capacity * size_of::<T>();
    let (start, end) = (start.next_multiple_of(LARGE), end / LARGE * LARGE);
    if start >= end {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        const LARGE_PAGES: c_int = 14;
        unsafe extern "C" {
            fn madvise(start: *mut c_void, length: usize, advice: c_int) -> c_int;
        }
        // SAFETY: the range lies within the column's memory, and the advice does not change what is in it.
        unsafe { madvise(start as *mut c_void, end - start, LARGE_PAGES) };
    }
}

/// An empty column that can take so many. What is not used costs nothing.
pub(super) fn column<T>(capacity: usize) -> Vec<T> {
    let mut column = Vec::new();
    if column.try_reserve_exact(capacity).is_ok() {
        advise(&column, column.capacity());
    }
    column
}

/// Makes room for more.
#[inline]
pub(super) fn make_room<T>(column: &mut Vec<T>, more: usize) {
    if column.capacity() - column.len() < more {
        column.reserve(more.max(column.len()));
        advise(column, column.capacity());
    }
}

/// Zeros.
pub(super) fn zeros(n: usize) -> Vec<u32> {
    let zeros = vec![0; n];
    advise(&zeros, n);
    zeros
}
