//! `cargo run -p vramscope-dev -- generate`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use vramscope_dev::generate;

/// Tools for those who work on vramscope.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write the reference documents in `docs/`
    Generate {
        /// Only say which are stale, and end with 1 if any is
        #[arg(long)]
        check: bool,
    },
}

#[expect(clippy::print_stdout, reason = "a tool for developers, with nothing else to print by")]
fn main() -> anyhow::Result<ExitCode> {
    let Command::Generate { check } = Args::parse().command;
    let stale = generate::stale()?;
    for document in &stale {
        if check {
            println!("{}", document.difference());
        } else {
            document.write()?;
            println!("wrote {}", document.path);
        }
    }
    Ok(if check && !stale.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
