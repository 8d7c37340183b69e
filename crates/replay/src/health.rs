//! Whether one snapshot agrees with itself, and what it lacks: figures only, no judgement in words.
//!
//! A snapshot tells the same story twice, as a trace and as segments. The two are taken one after the other under
//! separate locks, so in a process of several threads they may differ by the few events in between; anything more
//! means that one of them is not what it seems.

mod agreement;
mod marks;
mod stacks;
mod trace;

use vramscope_model::{BlockState, Device, Snapshot};

pub use agreement::{Agreement, Difference};
pub use marks::MarkHealth;
pub use stacks::StackUse;
pub use trace::{TimeHealth, TraceHealth};

/// Everything that can be checked on one device of one snapshot.
#[derive(Clone, Debug)]
pub struct DeviceHealth {
    /// The device's number.
    pub ordinal: u32,
    /// What kind of history there is.
    pub history: History,
    /// The segments by themselves.
    pub segments: SegmentHealth,
    /// The trace by itself.
    pub trace: TraceHealth,
    /// The one against the other; none where one of them is missing.
    pub agreement: Option<Agreement>,
    /// Whether the trace lost its beginning.
    pub wrap: Wrap,
}

/// What kind of history a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// A trace.
    Trace,
    /// Blocks know where they were allocated, but at most one event was kept: recorded with `enabled="state"`, or
    /// the trace was cleared.
    StacksOnly,
    /// Neither a trace nor stacks.
    Off,
}

/// Whether a ring buffer overwrote the oldest events. Files do not say it; these are its traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrap {
    /// Nothing points to it.
    NoSign,
    /// The number of events is a round one, or the same on several devices, and the trace begins in the middle of
    /// things.
    Suspected,
    /// Blocks carry stacks, so they were allocated while recording, but the trace no longer holds their allocation.
    Evident,
}

/// The segments by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentHealth {
    /// How many there are.
    pub count: u64,
    /// Those whose blocks leave a gap, overlap, or end elsewhere.
    pub untiled: u64,
    /// The address of the first of them.
    pub first_untiled: Option<u64>,
    /// Those whose stated allocated bytes are not the sum of their allocated blocks.
    pub allocated_differs: u64,
    /// Those whose stated active bytes are not the sum of their allocated and pending blocks.
    pub active_differs: u64,
    /// Whether the sums are stated at all; where every one is zero they were left out.
    pub states_sums: bool,
}

/// Checks every device of a snapshot.
pub fn check(snapshot: &Snapshot) -> Vec<DeviceHealth> {
    let mut all: Vec<DeviceHealth> = snapshot.devices.iter().map(check_device).collect();
    // Each device has a ring of its own, all of one length: two that hold equally much are likely full.
    let lengths: Vec<u64> = all.iter().map(|d| d.trace.events).collect();
    for device in &mut all {
        let events = device.trace.events;
        let alike = events >= MIN_RING && lengths.iter().filter(|&&n| n == events).count() > 1;
        if alike && device.wrap == Wrap::NoSign && device.trace.frees_of_unknown > 0 {
            device.wrap = Wrap::Suspected;
        }
        if snapshot.truncated {
            // What is missing may be the newest events.
            device.wrap = Wrap::NoSign;
        }
    }
    all
}

fn check_device(device: &Device) -> DeviceHealth {
    let (trace, slots) = trace::replay(&device.events);
    let blocks_with_stacks = device
        .segments
        .iter()
        .flat_map(|s| &s.blocks)
        .any(|b| b.state != BlockState::Inactive && b.stack.has_frames());
    let history = match device.events.len() {
        0 | 1 if blocks_with_stacks => History::StacksOnly,
        0 => History::Off,
        _ => History::Trace,
    };
    let comparable = history == History::Trace && !device.segments.is_empty();
    let agreement = comparable.then(|| agreement::compare(device, &slots));
    let wrap = wrap(device, &trace, agreement.as_ref());
    let segments = check_segments(device);
    DeviceHealth { ordinal: device.ordinal, history, segments, trace, agreement, wrap }
}

/// Checks the marks in time of a snapshot.
pub fn check_marks(snapshot: &Snapshot) -> MarkHealth {
    marks::check(&snapshot.annotations)
}

fn check_segments(device: &Device) -> SegmentHealth {
    let mut health = SegmentHealth { count: device.segments.len() as u64, ..SegmentHealth::default() };
    for segment in &device.segments {
        if !segment.is_tiled() {
            health.untiled += 1;
            health.first_untiled.get_or_insert(segment.addr);
        }
        let allocated = segment.bytes_in(BlockState::Allocated);
        let active = allocated + segment.bytes_in(BlockState::PendingFree);
        health.allocated_differs += u64::from(segment.stated_allocated != allocated);
        health.active_differs += u64::from(segment.stated_active != active);
        health.states_sums |= segment.stated_active.0 > 0 || segment.stated_allocated.0 > 0 || active.0 == 0;
    }
    health
}

fn wrap(device: &Device, trace: &TraceHealth, agreement: Option<&Agreement>) -> Wrap {
    if agreement.is_some_and(|a| a.older_with_stack.blocks > 0) {
        Wrap::Evident
    } else if trace.frees_of_unknown > 0 && is_round(device.events.len()) {
        Wrap::Suspected
    } else {
        Wrap::NoSign
    }
}

/// Nobody records fewer events than this on purpose, and small numbers are often equal or round by chance.
const MIN_RING: u64 = 1000;

/// Sizes that people give ring buffers: a power of two, or three zeros at the end.
fn is_round(events: usize) -> bool {
    events as u64 >= MIN_RING && (events.is_power_of_two() || events.is_multiple_of(1000))
}

#[cfg(test)]
mod tests {
    use vramscope_model::{Bytes, Symbols, script};

    use super::*;

    fn device(text: &str) -> Device {
        script::snapshot(&mut Symbols::default(), text).unwrap().devices.remove(0)
    }

    #[test]
    fn a_whole_story_has_nothing_wrong() {
        let health = check_device(&device(
            "segment 20MiB
             alloc a 513 @t.py:1:f
             alloc b 1MiB @t.py:2:f
             alloc c 2KiB @t.py:3:f
             free a
             request b",
        ));
        let agreement = health.agreement.unwrap();
        assert_eq!(health.history, History::Trace);
        assert_eq!(health.wrap, Wrap::NoSign);
        assert_eq!(health.segments.untiled + health.segments.allocated_differs, 0);
        assert_eq!(agreement.blocks_that_differ(), 0);
        assert_eq!(agreement.same.blocks, 1);
    }

    #[test]
    fn blocks_from_before_the_recording_are_no_sign_of_a_wrapped_ring() {
        let mut device = device("old w 4MiB\nold x 4MiB\nalloc a 1KiB @t.py:1:f\nfree x");
        let health = check_device(&device);
        assert_eq!(health.wrap, Wrap::NoSign);
        assert_eq!(health.agreement.unwrap().older, Difference { blocks: 1, bytes: Bytes(4 << 20) });
        assert_eq!(health.trace.frees_of_unknown, 1);
        // The same block with a stack was allocated while recording.
        let stack = device.events.get(0).stack;
        device.segments[0].blocks[0].stack = stack;
        assert_eq!(check_device(&device).wrap, Wrap::Evident);
    }

    #[test]
    fn a_round_number_of_events_is_suspect_only_with_frees_of_unknown_blocks() {
        let round = |first: &str, n: usize| {
            let blocks: Vec<String> = (0..n).map(|i| format!("alloc b{i} 512")).collect();
            check_device(&device(&format!("old x 512\nalloc y 512\n{first}\n{}", blocks.join("\n")))).wrap
        };
        assert_eq!(round("free x", 997), Wrap::Suspected);
        assert_eq!(round("free y", 997), Wrap::NoSign);
        assert_eq!(round("free x", 998), Wrap::NoSign);
    }

    #[test]
    fn two_devices_with_equally_many_events_are_suspect() {
        let text =
            |n: usize| (0..n).fold("old x 512\nfree x".to_owned(), |t, i| t + &format!("\nalloc b{i} 512"));
        let check_pair = |a: usize, b: usize, want: Wrap| {
            let devices = vec![device(&text(a)), Device { ordinal: 1, ..device(&text(b)) }];
            let snapshot = Snapshot { devices, ..Snapshot::default() };
            assert_eq!(check(&snapshot)[0].wrap, want, "{a} {b}");
        };
        check_pair(1005, 1005, Wrap::Suspected);
        check_pair(1005, 1006, Wrap::NoSign);
        check_pair(5, 5, Wrap::NoSign);
    }

    #[test]
    fn what_a_segment_states_is_compared_with_its_blocks() {
        let mut device = device("alloc a 512\nalloc b 512\nrequest b");
        device.segments[0].stated_allocated = Bytes(1);
        device.segments[0].blocks[1].addr += 512;
        let health = check_device(&device).segments;
        assert_eq!((health.untiled, health.allocated_differs, health.active_differs), (1, 1, 0));
        assert_eq!(health.first_untiled, Some(device.segments[0].addr));
    }

    #[test]
    fn kinds_of_history() {
        let check = |text: &str, want: History| assert_eq!(check_device(&device(text)).history, want);
        check("old w 4MiB", History::Off);
        check("old w 4MiB @t.py:3:f", History::StacksOnly);
        check("old w 4MiB @t.py:3:f\nalloc a 512", History::StacksOnly);
        check("old w 4MiB\nalloc a 512\nfree a", History::Trace);
    }
}
