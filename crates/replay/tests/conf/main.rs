//! The settings' text: what the framework makes of it, and what is said when something is wrong with it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests read files and fail loudly"
)]

mod properties;
mod recorded;
mod texts;
mod torch;
