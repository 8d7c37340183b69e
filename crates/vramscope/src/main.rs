//! The `vramscope` command.

use std::ffi::OsString;
use std::process::ExitCode;

// Syntax trees are many small blocks, made and given back by several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if vramscope::reads_recordings(&arguments) {
        do_without_huge_pages();
    }
    vramscope::run(arguments).into()
}

/// Turns off the huge pages that the allocator asks for. Syntax trees fill them; the columns of a recording, which grow, leave much
/// of them empty and wait for the kernel to clear it. Processes that this one starts inherit that: it must start none.
fn do_without_huge_pages() {
    #[cfg(target_os = "linux")]
    {
        // Where the kernel refuses, only some speed is lost.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
    }
}
