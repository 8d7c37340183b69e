//! How answers look: view models in, text out.
//!
//! Each pair of a view and a format has a file of its own: [`text`] for terminals, [`json`] for programs,
//! [`markdown`] for issues and chats, and of `check` also what other tools read: [`sarif`], [`junit`], [`github`]. Nothing here reads files, prints or looks at the environment: what a terminal can
//! do, how wide it is and what the source code says come in as data.

#![allow(
    clippy::format_push_string,
    reason = "`write!` to a String cannot fail, but must be checked as if it could"
)]

mod bytes;
mod chain;
mod clock;
mod excerpt;
pub mod github;
pub mod json;
pub mod junit;
pub mod markdown;
mod page;
mod place;
pub mod sarif;
mod settings;
mod sparkline;
mod style;
mod table;
pub mod text;
mod trials;
pub mod unified;
mod words;

pub use excerpt::{Excerpt, Excerpts};
pub use style::{Palette, Role};
