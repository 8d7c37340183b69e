//! What the lists of the outermost dict lead to. What else a file holds, another snapshot say, is none of it.

use std::collections::BTreeMap;
use std::ops::Range;

use vramscope_model::{Annotation, Device, Events};
use vramscope_pickle::{Kind, Value};

use super::{Builder, Node, SegmentDraft};

/// How many devices are kept. PyTorch is built for 120 at the most, and what is done for each is not free.
const MAX_DEVICES: usize = 1024;

impl Builder<'_> {
    /// What became of the container that a value is.
    pub(super) fn node_of(&self, value: Value) -> Node {
        match value.kind() {
            Kind::Dict(n) | Kind::List(n) | Kind::Tuple(n) => self.node(n),
            _ => Node::Empty,
        }
    }

    /// The items of the list that a key of the outermost dict leads to. `None` where there is no such list, or where the
    /// file ended before it was known.
    fn take_items(&mut self, list: Option<Value>) -> Option<Vec<Value>> {
        match self.node_of(list?) {
            Node::Values(i) => self.values.get_mut(i as usize).map(std::mem::take),
            Node::Trace(_) => list.map(|trace| vec![trace]),
            _ => None,
        }
    }

    /// The trace of each device: its place in the outer list is its number. An event counts for one device.
    pub(super) fn take_traces(&mut self, traces: Option<Value>, is_cut: bool) -> BTreeMap<u32, Device> {
        let events = std::mem::take(&mut self.events);
        let n_events = events.len() as u32;
        let device = |mut events: Events| {
            events.shrink_to_fit();
            Device { events, ..Device::default() }
        };
        let mut devices = BTreeMap::new();
        let Some(lists) = self.take_items(traces) else {
            // Events whose outer list was never reached, in a file that ended early, are the first device's. Host events
            // are counted elsewhere.
            if is_cut && !events.is_empty() && !self.features.host {
                devices.insert(0, device(events));
            }
            return devices;
        };
        let mut whole = Some(events);
        let mut taken = Vec::new();
        let mut is_shared = false;
        for (ordinal, &list) in lists.iter().enumerate() {
            let Node::Trace(i) = self.node_of(list) else { continue };
            // A trace that several devices refer to is the first one's.
            let Some(trace) = self.traces.get_mut(i as usize) else { continue };
            let ranges = std::mem::take(&mut trace.ranges);
            if !ranges.is_empty() && devices.len() >= MAX_DEVICES {
                self.warn_of_devices();
                break;
            }
            let mine = match (ranges.as_slice(), &whole) {
                ([], _) => continue,
                (_, None) => {
                    is_shared = true;
                    continue;
                }
                // The usual case of one device that did everything: no copy.
                ([only], Some(_)) if only.start == 0 && only.end >= n_events => {
                    whole.take().unwrap_or_default()
                }
                (ranges, Some(events)) => {
                    taken.resize(n_events as usize, false);
                    let mut mine = Events::default();
                    for range in ranges {
                        let range = range.start as usize..range.end as usize;
                        let runs = runs_of_new(range.clone(), &mut taken);
                        is_shared |= runs.iter().map(ExactSizeIterator::len).sum::<usize>() < range.len();
                        for run in runs {
                            mine.extend(&events.slice(run));
                        }
                    }
                    mine
                }
            };
            devices.insert(ordinal as u32, device(mine));
        }
        if is_shared {
            self.warn(
                "the traces of two devices refer to the same events; these count for the first of them",
            );
        }
        devices
    }

    /// Puts the segments of the outermost dict to their devices; of a file that ended before that dict's list was known,
    /// all that there are.
    pub(super) fn take_segments(
        &mut self,
        list: Option<Value>,
        is_cut: bool,
        devices: &mut BTreeMap<u32, Device>,
    ) {
        let mut drafts: Vec<Option<SegmentDraft>> =
            std::mem::take(&mut self.segments).into_iter().map(Some).collect();
        let numbers = self.rows(list, is_cut, drafts.len(), |node| match node {
            Node::Segment(i) => Some(i),
            _ => None,
        });
        for number in numbers {
            let Some(draft) = drafts.get_mut(number).and_then(Option::take) else { continue };
            let Some(ordinal) = draft.device else {
                self.warn("the device of a segment is no device's number; such segments were left out");
                continue;
            };
            if devices.len() >= MAX_DEVICES && !devices.contains_key(&ordinal) {
                self.warn_of_devices();
                continue;
            }
            let mut segment = draft.segment;
            segment.blocks = draft.blocks.map(|blocks| self.take_blocks(blocks)).unwrap_or_default();
            devices.entry(ordinal).or_default().segments.push(segment);
        }
    }

    pub(super) fn take_annotations(&mut self, list: Option<Value>, is_cut: bool) -> Vec<Annotation> {
        let mut drafts: Vec<Option<Annotation>> =
            std::mem::take(&mut self.annotations).into_iter().map(Some).collect();
        let numbers = self.rows(list, is_cut, drafts.len(), |node| match node {
            Node::Annotation(i) => Some(i),
            _ => None,
        });
        numbers.into_iter().filter_map(|number| drafts.get_mut(number)?.take()).collect()
    }

    /// The numbers of a list's rows in a table of `n`, or of all of them if the file ended before the list was known.
    fn rows(
        &mut self,
        list: Option<Value>,
        is_cut: bool,
        n: usize,
        row: impl Fn(Node) -> Option<u32>,
    ) -> Vec<usize> {
        match self.take_items(list) {
            Some(items) => items.iter().filter_map(|&v| row(self.node_of(v))).map(|i| i as usize).collect(),
            None if is_cut => (0..n).collect(),
            None => Vec::new(),
        }
    }

    fn warn_of_devices(&mut self) {
        self.warn(&format!(
            "the file names more devices than a machine has; those beyond the first {MAX_DEVICES} were left out"
        ));
    }
}

/// The parts of a range that were not taken before; they are then.
fn runs_of_new(range: Range<usize>, taken: &mut [bool]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for i in range {
        let Some(place) = taken.get_mut(i) else { break };
        if std::mem::replace(place, true) {
            continue;
        }
        match runs.last_mut() {
            Some(last) if last.end == i => last.end += 1,
            _ => runs.push(i..i + 1),
        }
    }
    runs
}
