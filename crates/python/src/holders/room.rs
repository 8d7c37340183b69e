//! Whether there is room to look: Rust ends the process where memory cannot be had, and the system where a stack is too small.

/// Bytes that a look may need, whatever the process.
const LEAST_BYTES: u64 = 64 << 20;
/// The unit of what the system tells.
const PAGE_BYTES: u64 = 4096;
/// Bytes of the stack that a look may use.
const STACK_BYTES: usize = 128 << 10;

/// # Errors
/// Says what there is too little of.
pub(super) fn check() -> Result<(), String> {
    if let Some((left, needed)) = memory()
        && left < needed
    {
        return Err(format!(
            "too little memory is left to look: {} MiB up to the limit of this process (`ulimit -v`), and {} may be needed",
            left >> 20,
            needed >> 20
        ));
    }
    match stack() {
        Some(left) if left < STACK_BYTES => {
            Err(format!("this thread's stack is too small to look: {} KiB are left", left >> 10))
        }
        _ => Ok(()),
    }
}

/// Bytes up to the process's limit of address space, if it has one, and those that a look may need.
#[expect(unsafe_code, reason = "calls of the system")]
fn memory() -> Option<(u64, u64)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes one value of that type.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    if asked != 0 || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    let sizes = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = sizes.split_ascii_whitespace().map(|pages| pages.parse::<u64>().ok());
    let (whole, resident) = (pages.next()??, pages.next()??);
    // A look needs about as many bytes as the heap that is looked at, and that is not larger than the process.
    let needed = LEAST_BYTES.max(resident.saturating_mul(PAGE_BYTES));
    Some((limit.rlim_cur.saturating_sub(whole.saturating_mul(PAGE_BYTES)), needed))
}

/// Bytes between here and the end of this thread's stack.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "calls of the system")]
fn stack() -> Option<usize> {
    let here = 0_u8;
    // SAFETY: the attributes are written by the first call and given back by the last one; in between they are only read.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return None;
        }
        let (mut lowest, mut bytes) = (std::ptr::null_mut(), 0);
        let told = libc::pthread_attr_getstack(&raw const attributes, &raw mut lowest, &raw mut bytes);
        libc::pthread_attr_destroy(&raw mut attributes);
        (told == 0).then(|| (&raw const here as usize).saturating_sub(lowest as usize))
    }
}

#[cfg(not(target_os = "linux"))]
fn stack() -> Option<usize> {
    None
}
