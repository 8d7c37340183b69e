//! The part of a trace that the user asked for.

use vramscope_model::{DeviceRecording, EventIdx, TimeUs};
use vramscope_replay::{Steps, Window};

use crate::analysis::{Moment, Options};

/// The window of a device's trace; the whole of it where nothing was asked for.
pub(super) fn window(device: &DeviceRecording, steps: &Steps, options: &Options) -> Window {
    let n = device.events.len() as u32;
    let from = options.since.map_or(EventIdx(0), |m| place(device, steps, m, 1));
    let to = options.until.map_or(EventIdx(n), |m| place(device, steps, m, 0));
    Window { from: from.min(to), to }
}

/// `before` is how many bounds before its own number a step is taken at: one for its beginning, none for its end.
fn place(device: &DeviceRecording, steps: &Steps, moment: Moment, before: u64) -> EventIdx {
    let n = device.events.len() as u32;
    let clamp = |i: u64| EventIdx(u32::try_from(i).unwrap_or(n).min(n));
    match moment {
        Moment::Step(step) => {
            let bound = usize::try_from(step.saturating_sub(before)).unwrap_or(usize::MAX);
            steps.bounds().get(bound).copied().unwrap_or(EventIdx(n))
        }
        Moment::Event(event) => clamp(event),
        Moment::Fraction(share) => clamp((f64::from(n) * share.clamp(0.0, 1.0)).round() as u64),
        Moment::AfterStart(us) => match device.events.time_span() {
            Some((first, _)) => device.events.at_or_after(TimeUs(first.0.saturating_add(us))),
            None => EventIdx(n),
        },
        Moment::Time(us) => device.events.at_or_after(TimeUs(us)),
    }
}
