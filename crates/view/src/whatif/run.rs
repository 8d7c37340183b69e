//! Chooses what to replay, and replays it under each setting.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use vramscope_detect::recommendation::Trial;
use vramscope_detect::settings::{Candidate, Demand, sweep};
use vramscope_detect::{Room, RoomSource, largest_request};
use vramscope_model::{Action, DeviceRecording, Recording, Symbols};
use vramscope_replay::allocator::config::{Config, Rules};
use vramscope_replay::allocator::{Limits, Simulation};
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
    let settings = recording.settings.as_ref();
    let may_be: Vec<(Config, Rules)> = Rules::of(&recording.features, settings)
        .into_iter()
        .map(|rules| (own_settings(recording, device, rules).config, rules))
        .collect();
    let simulation = Simulation::of(device, lifetimes, settings, &may_be).map_err(|why| NoAnswer {
        message: format!("device {} cannot be replayed: {why}", device.ordinal),
        hint: why.hint().to_owned(),
    })?;
    let own = own_settings(recording, device, simulation.rules());
    let refused = simulation.reproduction().refused;
    let mut room =
        Room::of(device, lifetimes, &own.config, refused, options.capacity, options.memory_fraction);
    if room.is_guess() && run(&simulation, room, &own).outcome.oom.is_some() {
        // Nothing failed in the recording.
        room.source = RoomSource::Unknown;
    }
    let refusal =
        match options.capacity.map(|_| Room::of(device, lifetimes, &own.config, refused, None, None)) {
            Some(Room { source: RoomSource::Recorded(refusal), .. }) => Some(refusal),
            _ => None,
        };
    let rules = simulation.rules();
    let candidates = candidates(&Asked { lifetimes, own: &own, rules, room }, options)?;
    let anew = (lifetimes.n_before() > 0).then(|| simulation.run_anew(&own.config, &Limits::default()));
    let limits = room.limits(&own.config, rules);
    let anew_within = (lifetimes.n_before() > 0 && limits != Limits::default())
        .then(|| simulation.run_anew(&own.config, &limits));
    let candidates: Vec<Candidate> = std::iter::once(own).chain(candidates).collect();

    let done = AtomicUsize::new(0);
    let mut trials: Vec<Trial> = candidates
        .par_iter()
        .map(|candidate| {
            let trial = run(&simulation, room, candidate);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            on_progress(Progress { done, total: candidates.len() });
            trial
        })
        .collect();
    if let Some(own) = trials.first_mut() {
        own.anew = anew;
        own.anew_within = anew_within;
    }

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
        rules,
        room,
        refusal,
        reproduction: simulation.reproduction(),
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
fn run(simulation: &Simulation, room: Room, candidate: &Candidate) -> Trial {
    let limits = room.limits(&candidate.config, simulation.rules());
    let outcome = simulation.run(&candidate.config, &limits);
    let limit = limits.capacity.into_iter().chain(limits.reserved).min();
    let spread = simulation.spread(&candidate.config, &limits, &outcome);
    let unlimited = (outcome.oom.is_some() && limit.is_some()).then(|| {
        let whole = simulation.run(&candidate.config, &Limits::default());
        // Under the recording's own settings requests that failed then fail again, whatever is limited.
        let with_all = simulation.run_anew(&candidate.config, &Limits::default());
        if with_all.rescued.is_empty() { whole } else { with_all }
    });
    Trial { conf: candidate.conf.clone(), outcome, spread, unlimited, limit, anew: None, anew_within: None }
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

/// The settings of the recording: as it states them where that says it all, else the shortest text for what was in force.
fn own_settings(recording: &Recording, device: &DeviceRecording, rules: Rules) -> Candidate {
    let settings = recording.settings.as_ref();
    let (mut config, warnings) = Config::of_recording(settings, &rules);
    let mut warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    // Only expandable segments are mapped.
    if settings.is_none() && device.events.count(Action::SegmentMap) > 0 {
        config.expandable_segments = true;
        warnings = vec![
            "the file does not state the allocator's settings (torch 2.3 and later do); as memory was mapped, \
             `expandable_segments:True` is taken"
                .to_owned(),
        ];
    }
    let stated = settings.map_or("", |s| s.conf.trim());
    let says_all = Config::parse(stated, &rules).is_ok_and(|(parsed, _)| parsed == config);
    Candidate { conf: if says_all { stated.to_owned() } else { config.text() }, config, warnings }
}

/// What decides which settings are tried.
struct Asked<'a> {
    lifetimes: &'a Lifetimes,
    own: &'a Candidate,
    rules: Rules,
    room: Room,
}

/// The settings that the user named, then those of the sweep that are not among them.
fn candidates(asked: &Asked<'_>, options: &Options) -> Result<Vec<Candidate>, NoAnswer> {
    let mut all = Vec::new();
    for conf in &options.confs {
        let (config, warnings) = Config::parse(conf, &asked.rules)
            .map_err(|error| NoAnswer { message: format!("`--conf {conf}`: {error}"), hint: error.hint() })?;
        let warnings = warnings.iter().map(ToString::to_string).collect();
        all.push(Candidate { conf: conf.trim().to_owned(), config, warnings });
    }
    if options.sweep {
        let is_limited = asked.room.limits(&asked.own.config, asked.rules).reserved.is_some();
        let demand = Demand { largest_request: largest_request(asked.lifetimes), is_limited };
        for candidate in sweep(&asked.own.conf, &asked.own.config, &asked.rules, demand) {
            if all.iter().all(|other| other.config != candidate.config) {
                all.push(candidate);
            }
        }
    }
    Ok(all)
}
