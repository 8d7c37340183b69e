//! What the answer rests on, in sentences: how well the recording is reproduced, and how much memory there is.

use vramscope_detect::{Refusal, Room, RoomSource};
use vramscope_model::EventIdx;

use super::words::{counted, when};
use super::{Limits, SelfCheck};
use crate::quantity::{bytes, grouped, mebibytes};

/// How far the replay can be believed.
pub(super) fn self_check(check: &SelfCheck) -> String {
    let events = |n: u64| counted(n, "segment event");
    if check.exact {
        let growth = if check.recorded == 0 {
            "no segment event was recorded".to_owned()
        } else {
            format!("{} of {}", grouped(check.reproduced), events(check.recorded))
        };
        return format!(
            "the replay reproduces the recording exactly: {growth}, all {} at the recorded address",
            counted(check.allocations, "block")
        );
    }
    let mut told = vec![format!("{} of {}", grouped(check.reproduced), events(check.recorded))];
    if check.surplus > 0 {
        told.push(format!("{} of its own", grouped(check.surplus)));
    }
    let blocks = counted(check.allocations, "block");
    told.push(format!("{} of {blocks} at the recorded address", grouped(check.in_place)));
    if check.same_blocks < check.blocks {
        let blocks = counted(check.blocks, "block");
        told.push(format!("{} of the {blocks} at the end", grouped(check.same_blocks)));
    }
    let parts = check.first_divergence.as_ref().map_or_else(String::new, |at| {
        let when = when(at.event, at.step);
        format!("; they part {when}: recorded is {}, replayed {}", at.recorded, at.replayed)
    });
    format!("the replay does not reproduce the recording exactly: {}{parts}", told.join(", "))
}

/// What memory is limited to, and how that is known. `fractions` are those that limit nothing for want of a capacity, each
/// with the bytes of the smallest device for which that is right.
pub(super) fn limits(
    limits: &Limits,
    room: &Room,
    fractions: &[(f64, u64)],
    step_of: impl Fn(EventIdx) -> Option<u64>,
) -> String {
    let mut told = vec![source(limits, room, step_of)];
    told.extend(fractions.iter().map(|&(fraction, least)| {
        if fraction <= 0.0 {
            return format!("With the memory fraction of {fraction} no request is served on any device; it is left out here");
        }
        format!(
            "The figures hold for devices of {} or more, where the memory fraction of {fraction} is no limit; for smaller ones give \
             `--capacity`",
            at_least(least)
        )
    }));
    told.join(". ")
}

/// Bytes rounded up to what is shown, for a bound that must hold.
fn at_least(least: u64) -> String {
    const GIB: u64 = 1 << 30;
    let tenths = (u128::from(least) * 10).div_ceil(u128::from(GIB));
    format!("{}.{} GiB", grouped((tenths / 10) as u64), tenths % 10)
}

fn source(limits: &Limits, room: &Room, step_of: impl Fn(EventIdx) -> Option<u64>) -> String {
    match room.source {
        RoomSource::Unknown => {
            "no limit is known: no request failed in the recording, and no `--capacity` was given".to_owned()
        }
        RoomSource::Told(capacity) => match limits.reserved_limit {
            Some(limit) => {
                format!(
                    "the device has {} for this process, which may reserve {}",
                    bytes(capacity),
                    bytes(limit)
                )
            }
            None => format!("the device has {} for this process", bytes(capacity)),
        },
        RoomSource::Recorded(Refusal { event, by_fraction, at_least, below, .. }) => {
            let who = match event.map(|event| when(event.0.into(), step_of(event))) {
                Some(when) if by_fraction => {
                    format!(
                        "a memory fraction was set: {when} a request failed though the device had memory left"
                    )
                }
                Some(when) => format!("{when} the driver refused a request"),
                None => "all unused memory was given back before more was obtained".to_owned(),
            };
            format!(
                "{who}. {} could be reserved, {} could not; the lower figure is taken",
                mebibytes(at_least),
                mebibytes(below)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replays_that_part_from_the_recording_say_where() {
        let exact = SelfCheck {
            exact: true,
            recorded: 1234,
            reproduced: 1234,
            allocations: 5000,
            in_place: 5000,
            ..SelfCheck::default()
        };
        assert_eq!(
            self_check(&exact),
            "the replay reproduces the recording exactly: 1,234 of 1,234 segment events, all 5,000 blocks at the recorded address"
        );
        let parted = SelfCheck {
            exact: false,
            reproduced: 1200,
            surplus: 3,
            in_place: 4000,
            blocks: 10,
            same_blocks: 9,
            first_divergence: Some(crate::whatif::Divergence {
                event: 4567,
                step: Some(12),
                recorded: "20.0 MiB obtained".to_owned(),
                replayed: "nothing".to_owned(),
            }),
            ..exact
        };
        assert_eq!(
            self_check(&parted),
            "the replay does not reproduce the recording exactly: 1,200 of 1,234 segment events, 3 of its own, 4,000 of 5,000 \
             blocks at the recorded address, 9 of the 10 blocks at the end; they part in step 12 (event 4,567): recorded is \
             20.0 MiB obtained, replayed nothing"
        );
    }

    #[test]
    fn of_a_fraction_of_nothing_no_device_has_enough() {
        let room = Room { source: RoomSource::Unknown, fraction: None };
        let said = limits(&Limits::none(), &room, &[(0.0, u64::MAX)], |_| None);
        assert!(
            said.ends_with(
                ". With the memory fraction of 0 no request is served on any device; it is left out here"
            ),
            "{said}"
        );
    }

    #[test]
    fn bounds_are_rounded_up() {
        assert_eq!(at_least(0), "0.0 GiB");
        assert_eq!(at_least(1), "0.1 GiB");
        assert_eq!(at_least(1 << 30), "1.0 GiB");
        assert_eq!(at_least((1 << 30) + 1), "1.1 GiB");
        assert_eq!(at_least(u64::MAX), "17,179,869,184.0 GiB");
    }
}
