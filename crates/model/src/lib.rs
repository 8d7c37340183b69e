//! What a recording of a GPU allocator *is*: columns of events, the segments and blocks that were there
//! when a snapshot was taken, and the interned stacks that both point into.
//!
//! Everything here is a plain value. A [`Recording`] does not change once it is built, knows nothing of
//! files, formats or detectors, and is not `Serialize`: what the user sees is decided further out.
//!
//! Words are the allocator's own: see the glossary in `ARCHITECTURE.md`.

mod annotation;
mod divisions;
mod environment;
mod event;
mod join;
mod origin;
mod recording;
pub mod script;
mod segment;
mod settings;
mod snapshot;
mod statistics;
mod symbols;
mod units;

pub use annotation::{Annotation, Stage};
pub use divisions::{Divisions, N_DIVISIONS};
pub use environment::Environment;
pub use event::{Action, Event, Events};
pub use join::{Relation, join, overlap, relation};
pub use origin::Origin;
pub use recording::{DeviceRecording, Recording, State};
pub use segment::{Block, BlockState, PoolKind, Segment};
pub use settings::Settings;
pub use snapshot::{Device, Features, HostMemory, Snapshot};
pub use statistics::{Sample, Statistics};
pub use symbols::{Frame, FrameId, PoolId, StackId, StreamId, StringId, Symbols};
pub use units::{Bytes, EventIdx, TimeUs};
