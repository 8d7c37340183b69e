//! A pickle machine that never executes anything.
//!
//! It reads pickle protocols 0 to 5 as a stream of bytes, keeps only the machine's own stack and memo,
//! and hands containers to a [`Sink`] as they are filled. No value tree is built: what becomes of a
//! dict or list is the sink's business, and it gets the items while they lie on the machine's stack.
//!
//! Globals, calls and persistent ids are recognised and stepped over; their results are
//! [`Value::OPAQUE`]. That makes reading an untrusted file safe by construction: there is no code path
//! from a byte of the file to a function call.
//!
//! The machine knows nothing of files, snapshots or memory; it refuses to know.
//!
//! ```
//! use vramscope_pickle::{Context, Kind, Machine, Sink, Value};
//!
//! /// Adds up every integer appended to any list.
//! #[derive(Default)]
//! struct Total(i128);
//!
//! impl Sink for Total {
//!     fn dict(&mut self) -> u32 { 0 }
//!     fn list(&mut self) -> u32 { 0 }
//!     fn tuple(&mut self, _: &[Value], _: &Context<'_>) -> u32 { 0 }
//!     fn set_items(&mut self, _: u32, _: &[Value], _: &Context<'_>) {}
//!     fn append(&mut self, _: u32, items: &[Value], cx: &Context<'_>) {
//!         self.0 += items.iter().filter_map(|v| v.int(cx.atoms)).sum::<i128>();
//!     }
//! }
//!
//! let mut machine = Machine::new();
//! let mut total = Total::default();
//! let fed = machine.feed(b"\x80\x04]\x94(K\x01K\x02K\x03e.", &mut total)?;
//! assert!(fed.done);
//! assert_eq!(total.0, 6);
//! assert!(matches!(machine.root().map(|v| v.kind()), Some(Kind::List(_))));
//! # Ok::<(), vramscope_pickle::Error>(())
//! ```

mod atoms;
mod cut;
mod error;
mod machine;
mod memo;
mod opcode;
mod reader;
mod sink;
mod text;
mod value;

pub use atoms::{Atoms, StrId};
pub use cut::Cut;
pub use error::{Error, ErrorKind};
pub use machine::Machine;
pub use sink::{BYTES_PER_VALUE, Context, Fed, Limits, Sink};
pub use value::{Kind, Value};
