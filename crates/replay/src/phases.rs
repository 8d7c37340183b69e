//! Regions that the program marked, as ranges of the trace.

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
    let mut open: Vec<(StringId, EventIdx)> = Vec::new();
    let mut runs = Vec::new();
    for annotation in annotations.iter().filter(|a| a.device == device.ordinal) {
        let at = device.events.at_or_after(annotation.time);
        match annotation.stage {
            Stage::Start => open.push((annotation.name, at)),
            Stage::End => {
                if let Some(i) = open.iter().rposition(|(name, _)| *name == annotation.name) {
                    let (name, from) = open.remove(i);
                    runs.push(PhaseRun { name, from, to: at });
                }
            }
            Stage::Other => {}
        }
    }
    let end = EventIdx(device.events.len() as u32);
    runs.extend(open.into_iter().map(|(name, from)| PhaseRun { name, from, to: end }));
    runs.sort_by_key(|r| (r.from, std::cmp::Reverse(r.to)));
    runs
}
