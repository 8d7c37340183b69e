//! Snapshots of one process, put in line.
//!
//! A later snapshot usually holds the whole trace of an earlier one. When the ring buffer wrapped in between,
//! its beginning overlaps the earlier one's end, and the two are put together there. When they do not overlap at all,
//! events are missing: then only the later trace is used, and the earlier snapshot stays as a state without a place.

use crate::event::Events;
use crate::recording::{DeviceRecording, Recording, State};
use crate::snapshot::{Device, Snapshot};
use crate::units::EventIdx;

/// Whether two snapshots are of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Their traces share events.
    SharedEvents,
    /// They share no events but segments at the same addresses.
    SharedSegments,
    /// They share neither.
    Unrelated,
    /// Their traces cover the same time but record different events.
    Contradictory,
}

impl Relation {
    /// Whether it is one process, as far as the files tell.
    pub fn is_same_process(self) -> bool {
        matches!(self, Self::SharedEvents | Self::SharedSegments)
    }
}

/// How two snapshots are related; the order does not matter.
pub fn relation(a: &Snapshot, b: &Snapshot) -> Relation {
    let mut contradictory = false;
    for da in &a.devices {
        let Some(db) = b.device(da.ordinal) else { continue };
        if da.events.is_empty() || db.events.is_empty() {
            continue;
        }
        if overlap(&da.events, &db.events).is_some() || overlap(&db.events, &da.events).is_some() {
            return Relation::SharedEvents;
        }
        if let (Some(sa), Some(sb)) = (da.events.time_span(), db.events.time_span()) {
            contradictory |= sa.0 <= sb.1 && sb.0 <= sa.1;
        }
    }
    if contradictory {
        return Relation::Contradictory;
    }
    let shares_segment = a.devices.iter().any(|da| {
        b.device(da.ordinal).is_some_and(|db| {
            // Both lists are sorted by address.
            da.segments.iter().any(|s| {
                db.segments
                    .binary_search_by_key(&s.addr, |t| t.addr)
                    .is_ok_and(|i| db.segments[i].size == s.size || s.expandable)
            })
        })
    });
    if shares_segment { Relation::SharedSegments } else { Relation::Unrelated }
}

/// How many events must agree for two traces to be seen as one: fewer could agree by chance.
const EVIDENCE: usize = 16;

/// The number of events of `later` up to and with the last one of `earlier`, if `later` holds it.
///
/// What follows in `later` is all that happened after `earlier` ended.
pub fn overlap(earlier: &Events, later: &Events) -> Option<usize> {
    let last = earlier.len().checked_sub(1)?;
    // A trace that only grew has the event in the same place; try that first.
    let same_place = std::iter::once(last).filter(|&j| j < later.len());
    same_place
        .chain(0..later.len())
        .find(|&j| {
            let n = EVIDENCE.min(last + 1).min(j + 1);
            (0..n).all(|back| earlier.same(last - back, later, j - back))
        })
        .map(|j| j + 1)
}

/// Puts snapshots of one process together. They need not be sorted.
///
/// `snapshots` must not be empty for the result to hold anything.
pub fn join(mut snapshots: Vec<Snapshot>, rank: Option<u32>) -> Recording {
    // Those without times keep the order in which they were given (the sort is stable, and without a time they
    // compare equal to all).
    if snapshots.iter().all(|s| s.time_span().is_some()) {
        snapshots.sort_by_key(|s| s.time_span().map(|(_, last)| last));
    }
    let mut ordinals: Vec<u32> = snapshots.iter().flat_map(|s| s.devices.iter().map(|d| d.ordinal)).collect();
    ordinals.sort_unstable();
    ordinals.dedup();

    let settings = snapshots.iter_mut().rev().find_map(|s| s.settings.take());
    let host = snapshots.iter().rev().find_map(|s| s.host);
    let features = snapshots.last().map(|s| s.features).unwrap_or_default();
    let truncated = snapshots.last().is_some_and(|s| s.truncated);

    let mut annotations = Vec::new();
    for snapshot in &mut snapshots {
        // Marks carry times, so what an earlier snapshot has beyond the later one's is what the ring lost.
        let newer = std::mem::take(&mut snapshot.annotations);
        match newer.first() {
            Some(first) => annotations.retain(|a: &crate::Annotation| a.time < first.time),
            None => continue,
        }
        annotations.extend(newer);
    }

    let mut has_gap = false;
    let devices = ordinals
        .into_iter()
        .map(|ordinal| {
            let parts = snapshots.iter_mut().enumerate().filter_map(|(i, s)| {
                s.devices.iter_mut().find(|d| d.ordinal == ordinal).map(|d| (i, std::mem::take(d)))
            });
            let (device, gap) = join_device(ordinal, parts);
            has_gap |= gap;
            device
        })
        .collect();
    Recording { rank, devices, annotations, settings, host, features, truncated, has_gap }
}

fn join_device(ordinal: u32, parts: impl Iterator<Item = (usize, Device)>) -> (DeviceRecording, bool) {
    let mut joined = Events::default();
    let mut states: Vec<State> = Vec::new();
    let mut has_gap = false;
    for (snapshot, part) in parts {
        if joined.is_empty() {
            // Nothing to join to; states without any trace stay where they are, at its beginning.
            joined = part.events;
        } else if part.events.is_empty() {
            // A snapshot without a trace after one with a trace: recording was stopped, its moment is unknown.
            states.push(State { snapshot, after: None, segments: part.segments });
            continue;
        } else {
            match overlap(&joined, &part.events) {
                Some(shared) if shared >= joined.len() => {
                    // The later trace holds all of the earlier one, and perhaps older events too.
                    let shift = (shared - joined.len()) as u32;
                    for state in &mut states {
                        state.after = state.after.map(|a| EventIdx(a.0 + shift));
                    }
                    joined = part.events;
                }
                Some(shared) => joined.extend(&part.events.slice(shared..part.events.len())),
                None => {
                    // The later one may be the shorter end of the same moment, with nothing new in it.
                    if overlap(&part.events, &joined).is_none() {
                        has_gap = true;
                        for state in &mut states {
                            state.after = None;
                        }
                        joined = part.events;
                    }
                }
            }
        }
        let after = Some(EventIdx(joined.len() as u32));
        states.push(State { snapshot, after, segments: part.segments });
    }
    if joined.is_empty() {
        for state in &mut states {
            state.after = None;
        }
    }
    (DeviceRecording { ordinal, events: joined, states }, has_gap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Bytes, Event, PoolId, StackId, StreamId, TimeUs};

    fn trace(times: std::ops::Range<i64>) -> Snapshot {
        let mut events = Events::default();
        for t in times {
            events.push(Event {
                action: Action::Alloc,
                addr: t as u64 * 512,
                size: Bytes(512),
                time: TimeUs(t),
                stream: StreamId(0),
                pool: PoolId::DEFAULT,
                stack: StackId::EMPTY,
            });
        }
        Snapshot { devices: vec![Device { ordinal: 0, events, segments: vec![] }], ..Snapshot::default() }
    }

    fn check(parts: &[std::ops::Range<i64>], want: std::ops::Range<i64>, places: &[Option<u32>], gap: bool) {
        let recording = join(parts.iter().cloned().map(trace).collect(), None);
        let device = &recording.devices[0];
        let times: Vec<i64> = device.events.iter().map(|e| e.time.0).collect();
        assert_eq!(times, want.collect::<Vec<_>>());
        let after: Vec<_> = device.states.iter().map(|s| s.after.map(|a| a.0)).collect();
        assert_eq!(after, places);
        assert_eq!(recording.has_gap, gap);
    }

    #[test]
    fn a_trace_that_grew_takes_the_place_of_the_shorter_one() {
        check(&[0..50, 0..100], 0..100, &[Some(50), Some(100)], false);
    }

    #[test]
    fn snapshots_are_put_in_time_order() {
        check(&[0..100, 0..50], 0..100, &[Some(50), Some(100)], false);
    }

    #[test]
    fn a_wrapped_ring_is_put_together_where_it_overlaps() {
        check(&[0..50, 30..80, 60..120], 0..120, &[Some(50), Some(80), Some(120)], false);
    }

    #[test]
    fn a_gap_leaves_only_the_newest_trace() {
        check(&[0..50, 60..90], 60..90, &[None, Some(30)], true);
    }

    #[test]
    fn relations() {
        assert_eq!(relation(&trace(0..50), &trace(30..80)), Relation::SharedEvents);
        assert_eq!(relation(&trace(30..80), &trace(0..50)), Relation::SharedEvents);
        assert_eq!(relation(&trace(0..50), &trace(60..80)), Relation::Unrelated);
        let mut other = trace(0..50);
        let events = &mut other.devices[0].events;
        for i in 0..events.len() {
            let e = events.get(i);
            events.set(i, Event { addr: e.addr + 4096, ..e });
        }
        assert_eq!(relation(&trace(0..50), &other), Relation::Contradictory);
    }
}
