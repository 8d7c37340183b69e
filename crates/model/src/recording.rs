//! Snapshots of one process, put together.

use crate::annotation::Annotation;
use crate::event::Events;
use crate::segment::{Block, BlockState, Segment};
use crate::settings::Settings;
use crate::snapshot::{Features, HostMemory};
use crate::units::{Bytes, EventIdx};

/// The state of a device at one moment of its trace.
#[derive(Clone, Debug)]
pub struct State {
    /// Which of the recording's snapshots shows it.
    pub snapshot: usize,
    /// How many events of the joined trace came before it; none when the snapshot's trace could not be placed in
    /// the joined one.
    pub after: Option<EventIdx>,
    /// The segments by address.
    pub segments: Vec<Segment>,
}

impl State {
    /// Bytes of the blocks in a state of their own.
    pub fn bytes_in(&self, state: BlockState) -> Bytes {
        self.segments.iter().map(|s| s.bytes_in(state)).sum()
    }

    /// Bytes of all segments.
    pub fn reserved(&self) -> Bytes {
        self.segments.iter().map(|s| s.size).sum()
    }

    /// The block that starts at an address.
    pub fn block_at(&self, addr: u64) -> Option<&Block> {
        let i = self.segments.partition_point(|s| s.addr <= addr).checked_sub(1)?;
        let segment = self.segments.get(i)?;
        let j = segment.blocks.binary_search_by_key(&addr, |b| b.addr).ok()?;
        segment.blocks.get(j)
    }

    /// Every block with its segment.
    pub fn blocks(&self) -> impl Iterator<Item = (&Segment, &Block)> {
        self.segments.iter().flat_map(|s| s.blocks.iter().map(move |b| (s, b)))
    }
}

/// One device of a recording.
#[derive(Clone, Debug)]
pub struct DeviceRecording {
    /// The device's number in its process.
    pub ordinal: u32,
    /// The joined trace, oldest first.
    pub events: Events,
    /// The states that the snapshots show, oldest first. The last one is the end of the recording.
    pub states: Vec<State>,
}

impl DeviceRecording {
    /// The state at the end of the recording.
    pub fn last_state(&self) -> Option<&State> {
        self.states.last()
    }

    /// Whether the trace leads up to the last state, so that both speak of the same moment.
    pub fn trace_reaches_state(&self) -> bool {
        self.last_state().is_some_and(|s| s.after.is_some_and(|a| a.index() == self.events.len()))
    }
}

/// Snapshots of one process, in time order, as one.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The rank of the process in a distributed job, if its files tell.
    pub rank: Option<u32>,
    /// The devices by ordinal.
    pub devices: Vec<DeviceRecording>,
    /// Marks in time, in order.
    pub annotations: Vec<Annotation>,
    /// The allocator's settings in the last snapshot that states them.
    pub settings: Option<Settings>,
    /// Pinned host memory in the last snapshot.
    pub host: Option<HostMemory>,
    /// What the last snapshot holds.
    pub features: Features,
    /// Whether the last snapshot's file ended before its data did.
    pub truncated: bool,
    /// Whether events are missing between two snapshots, so that only the newest part is used as a trace.
    pub has_gap: bool,
}
