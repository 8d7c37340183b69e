//! Regions that the program marked, as ranges of the trace.

use rustc_hash::FxHashMap;
use vramscope_model::{Annotation, DeviceRecording, EventIdx, Stage, StringId};

/// One run of a marked region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseRun {
    /// The region's name.
    pub name: StringId,
    /// The first event in it.
    pub from: EventIdx,
    /// The first event behind it.
    pub to: EventIdx,
}

/// Pairs the START and END marks of a device. Marks of the same name nest; a START without an END reaches to the end of
/// the trace, an END without a START is passed over.
pub fn phase_runs(device: &DeviceRecording, annotations: &[Annotation]) -> Vec<PhaseRun> {
    let mut open: FxHashMap<StringId, Vec<EventIdx>> = FxHashMap::default();
    let mut runs = Vec::new();
    for annotation in annotations.iter().filter(|a| a.device == device.ordinal) {
        let at = device.events.at_or_after(annotation.time);
        match annotation.stage {
            Stage::Start => open.entry(annotation.name).or_default().push(at),
            Stage::End => {
                if let Some(from) = open.get_mut(&annotation.name).and_then(Vec::pop) {
                    runs.push(PhaseRun { name: annotation.name, from, to: at });
                }
            }
            Stage::Other => {}
        }
    }
    let end = EventIdx(device.events.len() as u32);
    let unclosed =
        open.into_iter().flat_map(|(name, starts)| starts.into_iter().map(move |from| (name, from)));
    runs.extend(unclosed.map(|(name, from)| PhaseRun { name, from, to: end }));
    runs.sort_by_key(|r| (r.from, std::cmp::Reverse(r.to), r.name));
    runs
}
