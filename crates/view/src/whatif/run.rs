//! Chooses what to replay, and replays it under each setting.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use vramscope_detect::recommendation::Trial;
use vramscope_detect::rerun::Rerun;
use vramscope_detect::settings::Candidate;
use vramscope_detect::{Room, RoomSource, largest_request};
use vramscope_model::{Action, DeviceRecording, Recording, Symbols};
use vramscope_replay::allocator::Config;
use vramscope_replay::{Lifetimes, peak};

use super::found::Found;
use super::{NoAnswer, Options, OtherDevice, Progress, WhatIf};
use crate::analysis::Input;

/// Replays what a program asked of the allocator under other settings.
///
/// Of several devices it takes the one where most was reserved. `symbols` must be the tables that the files were read
/// with. `on_progress` is called from several threads.
///
/// # Errors
/// When the recording does not hold enough to replay, or a setting is not one that its release of torch accepts.
pub fn whatif(
    recordings: &[(Recording, Vec<Input>)],
    symbols: &Symbols,
    options: &Options,
    on_progress: &(dyn Fn(Progress) + Sync),
) -> Result<WhatIf, NoAnswer> {
    let (chosen, others) = choose(recordings, options.device)?;
    let Chosen { recording, device, ref lifetimes, recorded_peak, .. } = chosen;
    let rerun = Rerun::of(recording, device, lifetimes).map_err(|why| NoAnswer {
        message: format!("device {} cannot be replayed: {why}", device.ordinal),
        hint: why.hint().to_owned(),
    })?;
    let room = rerun.room(device, lifetimes, options.capacity, options.memory_fraction);
    // What the recording shows, where the user tells something else.
    let shown = options.capacity.map(|_| {
        let refused = rerun.simulation.reproduction().refused;
        Room::of(device, lifetimes, &rerun.own.config, refused, None, None).source
    });
    let refusal = match shown {
        Some(RoomSource::Recorded(refusal)) => Some(refusal),
        _ => None,
    };
    let others_to_try = candidates(&rerun, room, options)?;
    let candidates: Vec<Candidate> = std::iter::once(rerun.own.clone()).chain(others_to_try).collect();

    let done = AtomicUsize::new(0);
    let trials: Vec<Trial> = candidates
        .par_iter()
        .enumerate()
        .map(|(i, candidate)| {
            let trial = if i == 0 { rerun.own_trial(room) } else { run(&rerun, room, candidate) };
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            on_progress(Progress { done, total: candidates.len() });
            trial
        })
        .collect();

    let found = Found {
        files: chosen.inputs.iter().map(|input| input.path.clone()).collect(),
        torch: recording.features.era().to_owned(),
        symbols,
        recording,
        device,
        others,
        recorded_peak,
        largest_request: largest_request(lifetimes),
        blocks_before: lifetimes.n_before() as u64,
        rules: rerun.simulation.rules(),
        room,
        refusal,
        reproduction: rerun.simulation.reproduction(),
        candidates,
        trials,
        asked: options.confs.len(),
        swept: options.sweep,
    };
    found.answer().ok_or_else(|| NoAnswer {
        message: "nothing was replayed".to_owned(),
        hint: "give a setting with `--conf`, or `--sweep`".to_owned(),
    })
}

/// Runs the recording under a setting; if memory runs out, also without limits.
fn run(rerun: &Rerun, room: Room, candidate: &Candidate) -> Trial {
    let mut trial = rerun.trial(candidate, room);
    rerun.find_spread(&mut trial, candidate, room);
    rerun.lift_limits(&mut trial, candidate);
    trial
}

/// The device that is replayed.
struct Chosen<'a> {
    recording: &'a Recording,
    inputs: &'a [Input],
    device: &'a DeviceRecording,
    lifetimes: Lifetimes,
    recorded_peak: u64,
}

/// The device where most was reserved, and the others.
fn choose(
    recordings: &[(Recording, Vec<Input>)],
    wanted: Option<u32>,
) -> Result<(Chosen<'_>, Vec<OtherDevice>), NoAnswer> {
    let mut found: Vec<Chosen<'_>> = Vec::new();
    let mut others = Vec::new();
    for (recording, inputs) in recordings {
        for device in &recording.devices {
            let idle = device.states.iter().all(|s| s.segments.is_empty())
                && device.events.actions().iter().all(|&a| a == Action::Snapshot);
            if idle {
                continue;
            }
            let lifetimes = Lifetimes::of(device, recording.settings.as_ref());
            let at_end = device.last_state().map_or(0, |state| state.reserved().0);
            let recorded_peak =
                peak(device, &lifetimes, lifetimes.whole()).map_or(at_end, |p| p.max_reserved.0);
            let chosen = Chosen { recording, inputs, device, lifetimes, recorded_peak };
            if wanted.is_none_or(|w| w == device.ordinal) {
                found.push(chosen);
            } else {
                others.push(chosen.as_other());
            }
        }
    }
    // The first of equals.
    let best = (0..found.len()).rev().max_by_key(|&i| found.get(i).map(|c| c.recorded_peak));
    let Some(best) = best else {
        return Err(NoAnswer {
            message: match wanted {
                Some(device) => format!("no device {device} in these files did or holds anything"),
                None => "no device in these files did or holds anything".to_owned(),
            },
            hint: "see what a file holds with `vramscope inspect`".to_owned(),
        });
    };
    let chosen = found.remove(best);
    others.extend(found.iter().map(Chosen::as_other));
    others.sort_by_key(|other| (other.rank, other.device));
    Ok((chosen, others))
}

impl Chosen<'_> {
    fn as_other(&self) -> OtherDevice {
        OtherDevice {
            device: self.device.ordinal,
            rank: self.recording.rank,
            peak_reserved: self.recorded_peak,
        }
    }
}

/// The settings that the user named, then those of the sweep that are not among them.
fn candidates(rerun: &Rerun, room: Room, options: &Options) -> Result<Vec<Candidate>, NoAnswer> {
    let rules = rerun.simulation.rules();
    let mut all: Vec<Candidate> = Vec::new();
    for conf in &options.confs {
        let (config, warnings) = Config::parse(conf, &rules)
            .map_err(|error| NoAnswer { message: format!("`--conf {conf}`: {error}"), hint: error.hint() })?;
        let warnings = warnings.iter().map(ToString::to_string).collect();
        all.push(Candidate { conf: conf.trim().to_owned(), config, warnings });
    }
    if options.sweep {
        for candidate in rerun.candidates(room) {
            if all.iter().all(|other| other.config != candidate.config) {
                all.push(candidate);
            }
        }
    }
    Ok(all)
}
