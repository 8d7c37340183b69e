//! What failed in a recording, and what came of that.

use vramscope_detect::recommendation::Trial;
use vramscope_detect::{Refusal, Room, RoomSource};
use vramscope_model::{Action, DeviceRecording, EventIdx};

/// How a recording ends, beside how its replay does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ending {
    /// A request failed when recorded, and the replay serves it within the limits that the recording gives away.
    pub(super) served: bool,
    /// Where memory runs out under the recording's own settings the recording has little left to tell.
    pub(super) is_last: bool,
    /// A request that failed when recorded, if the program went on to ask for more.
    pub(super) survived: Option<EventIdx>,
    /// Memory runs out at that request or an earlier one that failed when recorded, too.
    pub(super) goes_on: bool,
    /// What could not be had when recorded, where the user tells of at least as much.
    pub(super) told_beyond: Option<u64>,
}

/// Where less than this share of the requests is left, a recording as good as ends.
const LAST_SHARE: f64 = 0.1;

impl Ending {
    /// Of a recording of which `own` is what comes of its own settings within `room`. `refusal` is what it tells itself.
    pub(super) fn of(device: &DeviceRecording, room: Room, refusal: Option<Refusal>, own: &Trial) -> Self {
        let actions = device.events.actions();
        let asked = |of: &[Action]| of.iter().filter(|&&action| action == Action::Alloc).count();
        let asked_after =
            |event: EventIdx| asked(actions.get(event.index().saturating_add(1)..).unwrap_or(&[]));
        let failed = actions.iter().rposition(|&action| action == Action::Oom);
        let failed = failed.map(|at| EventIdx(u32::try_from(at).unwrap_or(u32::MAX)));
        let ran_out = own.outcome.oom.map(|oom| oom.event);
        let is_recorded = matches!(room.source, RoomSource::Recorded(Refusal { event: Some(_), .. }));
        let below = refusal.filter(|refusal| refusal.event.is_some()).map(|refusal| refusal.below);
        Self {
            served: is_recorded && ran_out.is_none(),
            is_last: ran_out.is_some_and(|event| {
                let was_recorded = actions.get(event.index()) == Some(&Action::Oom);
                was_recorded || asked_after(event) as f64 <= LAST_SHARE * asked(actions) as f64
            }),
            goes_on: ran_out.is_some_and(|event| {
                actions.get(event.index()) == Some(&Action::Oom) && asked_after(event) > 0
            }),
            survived: failed.filter(|&event| asked_after(event) > 0),
            told_beyond: match room.source {
                RoomSource::Told(_) => below.filter(|&below| own.limit.is_some_and(|limit| limit >= below)),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use vramscope_model::{Symbols, script};
    use vramscope_replay::allocator::{OutOfMemory, Outcome, Spread};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn check(text: &str, source: RoomSource, ran_out: Option<u32>, want: Ending) {
        let mut symbols = Symbols::default();
        let recording = script::recording(&mut symbols, text).unwrap();
        let oom = ran_out.map(|event| OutOfMemory {
            event: EventIdx(event),
            size: MIB,
            reserved: 0,
            allocated: 0,
            largest_free: 0,
            free: 0,
        });
        let outcome = Outcome { oom, ..Outcome::default() };
        let own = Trial {
            conf: String::new(),
            spread: Spread::of(&outcome),
            outcome,
            unlimited: None,
            limit: Some(100 * MIB),
            anew: None,
            anew_within: None,
        };
        let refusal = Some(refusal());
        let ending = Ending::of(&recording.devices[0], Room { source, fraction: None }, refusal, &own);
        assert_eq!(ending, want, "{text}");
    }

    fn refusal() -> Refusal {
        Refusal {
            event: Some(EventIdx(2)),
            by_fraction: false,
            at_least: 20 * MIB,
            below: 50 * MIB,
            most: 20 * MIB,
        }
    }

    #[test]
    fn how_a_recording_ends_is_told_by_what_failed() {
        let recorded = RoomSource::Recorded(refusal());
        let ends = "segment 20MiB\nalloc a 20MiB\noom 30MiB";
        let goes_on = "segment 20MiB\nalloc a 20MiB\noom 30MiB\nfree a\nalloc b 10MiB";
        let none = Ending::default();
        check(ends, recorded, None, Ending { served: true, ..none });
        check(ends, recorded, Some(2), Ending { is_last: true, ..none });
        let told = RoomSource::Told(100 * MIB);
        check(ends, told, None, Ending { told_beyond: Some(50 * MIB), ..none });
        check(
            goes_on,
            recorded,
            Some(2),
            Ending { is_last: true, survived: Some(EventIdx(2)), goes_on: true, ..none },
        );
    }
}
