//! The `vramscope` command.

use std::process::ExitCode;

// Syntax trees are many small blocks, made and given back by several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    vramscope::run(std::env::args_os()).into()
}
