//! What the repository writes about itself: reference documents made from the code that they describe.
//!
//! `cargo run -p vramscope-dev -- generate` writes them; a test of this crate says when one is stale. The checks of the
//! repository itself (dependencies, sizes, names, links) are tests only, in `tests/repository.rs`.

#![allow(
    clippy::format_push_string,
    reason = "`write!` to a String cannot fail, but must be checked as if it could"
)]

pub mod answers;
pub mod generate;
pub mod predictions;
