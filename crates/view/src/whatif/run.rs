//! Replays a recording under each setting and puts the answer together.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use vramscope_detect::recommendation::{Doubt, Judgement, Trial, recommend};
use vramscope_detect::settings::{Candidate, Demand, sweep};
use vramscope_detect::{Refusal, Room, RoomSource, largest_request};
use vramscope_model::{Action, DeviceRecording, EventIdx, Recording, Symbols};
use vramscope_replay::allocator::config::{Config, Rules};
use vramscope_replay::allocator::{Limits, Outcome, Reproduction, Simulation};
use vramscope_replay::{Lifetimes, Steps, peak};

use super::{
    self as view, Divergence, LimitSource, NoAnswer, Options, OtherDevice, OutOfMemory, Progress, SelfCheck,
    Setting, WhatIf, caveats, words,
};
use crate::analysis::Input;
use crate::place;

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
    let rules = simulation.rules();
    let candidates = candidates(&Asked { lifetimes, own: &own, rules, room }, options)?;
    let anew = (lifetimes.n_before() > 0).then(|| run_anew(&simulation, &own.config));
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
    let unlimited = (outcome.oom.is_some() && limit.is_some()).then(|| {
        let whole = simulation.run(&candidate.config, &Limits::default());
        // Under the recording's own settings requests that failed then fail again, whatever is limited.
        let with_all = run_anew(simulation, &candidate.config);
        if with_all.rescued.is_empty() { whole } else { with_all }
    });
    Trial { conf: candidate.conf.clone(), outcome, unlimited, limit, anew: None }
}

/// Runs the recording without limits, and without what was cached when it began: under its own settings, too.
fn run_anew(simulation: &Simulation, config: &Config) -> Outcome {
    // Only the recording's own settings begin as recorded. Without limits this one changes nothing.
    let other = Config { throw_on_cudamalloc_oom: !config.throw_on_cudamalloc_oom, ..config.clone() };
    simulation.run(&other, &Limits::default())
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

/// All that was found out, before it is put into words.
pub(super) struct Found<'a> {
    pub(super) files: Vec<String>,
    pub(super) torch: String,
    pub(super) symbols: &'a Symbols,
    pub(super) recording: &'a Recording,
    pub(super) device: &'a DeviceRecording,
    pub(super) others: Vec<OtherDevice>,
    pub(super) recorded_peak: u64,
    pub(super) largest_request: u64,
    /// Blocks from before the recording.
    pub(super) blocks_before: u64,
    pub(super) rules: Rules,
    pub(super) room: Room,
    pub(super) reproduction: &'a Reproduction,
    pub(super) candidates: Vec<Candidate>,
    /// One for each candidate; the first is of the recording's own settings.
    pub(super) trials: Vec<Trial>,
    /// How many settings the user named.
    pub(super) asked: usize,
    /// Whether others were tried, too.
    pub(super) swept: bool,
}

impl Found<'_> {
    fn answer(self) -> Option<WhatIf> {
        let &Reproduction { recorded, reproduced, ref outcome, .. } = self.reproduction;
        let bytes = self.recorded_peak.abs_diff(outcome.peak_reserved);
        let doubt = Doubt { bytes, recorded, reproduced };
        let judgement = recommend(&self.trials, doubt)?;
        let whole =
            vramscope_replay::Window { from: EventIdx(0), to: EventIdx(self.device.events.len() as u32) };
        let steps = Steps::of(self.device, &self.recording.annotations, self.symbols, whole);
        let step_of = |event: EventIdx| (steps.count() > 0).then(|| steps.step_of(event) as u64 + 1);
        let settings: Vec<Setting> = self
            .trials
            .iter()
            .zip(&self.candidates)
            .enumerate()
            .map(|(i, (trial, candidate))| Setting {
                is_own: i == 0,
                warnings: candidate.warnings.clone(),
                ..self.setting(trial, step_of)
            })
            .collect();
        let self_check = self.self_check(step_of);
        let limits = self.limits(step_of);
        let told =
            words::tell(&judgement, &settings, &limits, &self_check, (!self.swept).then_some(self.asked));
        let caveats = caveats::of(&self, &self_check, &limits, &settings);
        let Judgement { choice, .. } = judgement;
        Some(WhatIf {
            files: self.files,
            torch: self.torch,
            device: self.device.ordinal,
            rank: self.recording.rank,
            others: self.others,
            events: self.device.events.len() as u64,
            self_check,
            limits,
            settings,
            swept: self.swept,
            recommended: choice,
            reason_kind: told.kind,
            headline: told.headline,
            reason: told.reason,
            trade_offs: told.trade_offs,
            caveats,
        })
    }

    fn setting(&self, trial: &Trial, step_of: impl Fn(EventIdx) -> Option<u64>) -> Setting {
        let Outcome { peak_reserved, peak_event, peak_allocated, .. } = trial.outcome;
        let held = peak_allocated.min(peak_reserved);
        Setting {
            conf: trial.conf.clone(),
            is_own: false,
            peak_reserved,
            peak_event: peak_event.0.into(),
            peak_step: step_of(peak_event),
            allocated_at_peak: trial.outcome.allocated_at_peak,
            final_reserved: trial.outcome.final_reserved,
            peak_allocated,
            peak_fragmentation: if peak_reserved == 0 {
                0.0
            } else {
                1.0 - held as f64 / peak_reserved as f64
            },
            segments_peak: trial.outcome.peak_segments,
            segment_allocs: trial.outcome.segment_allocs,
            segment_frees: trial.outcome.segment_frees,
            maps: trial.outcome.maps,
            unmaps: trial.outcome.unmaps,
            retries: trial.outcome.retries,
            collections: trial.outcome.collections,
            oom: trial.outcome.oom.as_ref().map(|oom| {
                let stack = self.device.events.stacks().get(oom.event.index()).copied();
                let stack = stack.unwrap_or(vramscope_model::StackId::ABSENT);
                OutOfMemory {
                    event: oom.event.0.into(),
                    step: step_of(oom.event),
                    site: self.symbols.site(stack).map(|site| place::location(self.symbols, site)),
                    label: place::label(self.symbols, stack),
                    size: oom.size,
                    reserved: oom.reserved,
                    allocated: oom.allocated,
                    largest_free: oom.largest_free,
                    free: oom.free,
                }
            }),
            needed_without_limit: trial.unlimited.as_ref().map(|outcome| outcome.peak_reserved),
            rescued: trial.outcome.rescued.iter().map(|event| event.0.into()).collect(),
            warnings: Vec::new(),
        }
    }

    fn self_check(&self, step_of: impl Fn(EventIdx) -> Option<u64>) -> SelfCheck {
        let r = self.reproduction;
        let mut check = SelfCheck {
            exact: r.is_exact(),
            recorded: r.recorded,
            reproduced: r.reproduced,
            surplus: r.surplus,
            allocations: r.allocations,
            in_place: r.in_place,
            blocks: r.blocks,
            same_blocks: r.same_blocks,
            first_divergence: r.first_divergence.as_ref().map(|at| Divergence {
                event: at.event.0.into(),
                step: step_of(at.event),
                recorded: at.recorded.clone(),
                replayed: at.replayed.clone(),
            }),
            recorded_peak: self.recorded_peak,
            replayed_peak: r.outcome.peak_reserved,
            empty_cache_calls: r.flushes.len() as u64,
            cached_at_start: r.cached_at_start,
            private_peak: r.private_peak,
            summary: String::new(),
        };
        check.summary = words::self_check(&check);
        check
    }

    fn limits(&self, step_of: impl Fn(EventIdx) -> Option<u64>) -> view::Limits {
        let Some(own) = self.candidates.first().map(|c| &c.config) else { return view::Limits::none() };
        let limits = self.room.limits(own, self.rules);
        let fractions = caveats::fractions(self);
        let (source, below) = match self.room.source {
            RoomSource::Unknown => (LimitSource::Unknown, None),
            RoomSource::Told(_) => (LimitSource::Told, None),
            RoomSource::Recorded(Refusal { below, .. }) => (LimitSource::Recorded, Some(below)),
        };
        let mut view = view::Limits {
            capacity: limits.capacity,
            reserved_limit: limits.reserved,
            memory_fraction: self.room.fraction(own),
            below,
            fraction_binds_below: fractions.iter().map(|&(_, bytes)| bytes).max(),
            source,
            words: String::new(),
        };
        view.words = words::limits(&view, &self.room, &fractions, step_of);
        view
    }
}

impl view::Limits {
    fn none() -> Self {
        Self {
            capacity: None,
            reserved_limit: None,
            memory_fraction: None,
            below: None,
            fraction_binds_below: None,
            source: LimitSource::Unknown,
            words: String::new(),
        }
    }
}
