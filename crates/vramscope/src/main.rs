//! The `vramscope` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    vramscope::run(std::env::args_os()).into()
}
