//! A recording run again: under its own settings of the allocator, and under others, within what memory there is.

use vramscope_model::{Action, DeviceRecording, EventIdx, Recording};
use vramscope_replay::allocator::config::{Config, Rules};
use vramscope_replay::allocator::{Limits, Simulation, Spread, Unplayable};
use vramscope_replay::{Lifetimes, levels_at, peak};

use crate::recommendation::{Doubt, Trial};
use crate::room::{Room, RoomSource, largest_request};
use crate::settings::{Candidate, Demand, sweep};

/// A recording that can be run under any settings.
#[derive(Clone, Debug)]
pub struct Rerun {
    /// What is run.
    pub simulation: Simulation,
    /// The settings that it was recorded under.
    pub own: Candidate,
    /// The most bytes that were reserved when it was recorded.
    pub recorded_peak: u64,
    /// What was reserved when the recording began.
    reserved_at_start: u64,
    largest_request: u64,
    /// Whether blocks were there before the recording began: they are requested anew under other settings.
    has_older_blocks: bool,
}

impl Rerun {
    /// Replays a device's recording under its own settings.
    ///
    /// # Errors
    /// Where the recording does not hold enough to replay.
    pub fn of(
        recording: &Recording,
        device: &DeviceRecording,
        lifetimes: &Lifetimes,
    ) -> Result<Self, Unplayable> {
        let settings = recording.settings.as_ref();
        let may_be: Vec<(Config, Rules)> = Rules::of(&recording.features, settings)
            .into_iter()
            .map(|rules| (own_settings(recording, device, &rules).config, rules))
            .collect();
        let simulation = Simulation::of(device, lifetimes, settings, &may_be)?;
        let own = own_settings(recording, device, &simulation.rules());
        let at_end = device.last_state().map_or(0, |state| state.reserved().0);
        Ok(Self {
            simulation,
            own,
            recorded_peak: peak(device, lifetimes, lifetimes.whole()).map_or(at_end, |p| p.max_reserved.0),
            reserved_at_start: levels_at(device, lifetimes, &[EventIdx(0)])
                .first()
                .map_or(0, |level| level.reserved.0),
            largest_request: largest_request(lifetimes),
            has_older_blocks: lifetimes.n_before() > 0,
        })
    }

    /// Whether the replay equals the recording.
    pub fn is_exact(&self) -> bool {
        self.simulation.reproduction().is_exact()
    }

    /// Whether nothing in it was taken as recorded, either: memory of private pools (of graphs, say) could not go back, or need
    /// not, under other conditions.
    pub fn is_certain(&self) -> bool {
        self.is_exact() && self.simulation.reproduction().private_peak == 0
    }

    /// How far the replay is from the recording.
    pub fn doubt(&self) -> Doubt {
        let found = self.simulation.reproduction();
        let bytes = self.recorded_peak.abs_diff(found.outcome.peak_reserved);
        Doubt { bytes, recorded: found.recorded, reproduced: found.reproduced, ..Doubt::default() }
    }

    /// Whether the replay is near enough to the recording to say something about other settings.
    pub fn is_reliable(&self) -> bool {
        self.doubt().is_bearable(self.simulation.reproduction().outcome.peak_reserved)
    }

    /// How much memory there is: `capacity` bytes, or as far as the recording tells; and the share of it that the process may
    /// have, if the user told.
    pub fn room(
        &self,
        device: &DeviceRecording,
        lifetimes: &Lifetimes,
        capacity: Option<u64>,
        fraction: Option<f64>,
    ) -> Room {
        let refused = self.simulation.reproduction().refused;
        let mut room = Room::of(device, lifetimes, &self.own.config, refused, capacity, fraction);
        let limits = room.limits(&self.own.config, self.simulation.rules());
        if room.is_guess() && self.simulation.run(&self.own.config, &limits).oom.is_some() {
            // Nothing failed in the recording.
            room.source = RoomSource::Unknown;
        }
        room
    }

    /// The settings that are worth trying beside the recording's own, simplest first.
    pub fn candidates(&self, room: Room) -> Vec<Candidate> {
        let rules = self.simulation.rules();
        let is_limited = room.limits(&self.own.config, rules).reserved.is_some();
        let demand = Demand { largest_request: self.largest_request, is_limited };
        sweep(&self.own.conf, &self.own.config, &rules, demand)
    }

    /// By how many bytes expandable segments lower the peak, nothing else being changed or limited; 0 if they are in use.
    pub fn saved_by_expandable(&self) -> u64 {
        let own = &self.own.config;
        if own.expandable_segments {
            return 0;
        }
        let other = Config { expandable_segments: true, ..own.clone() };
        let peak = self.simulation.run(&other, &Limits::default()).peak_reserved;
        self.recorded_peak.saturating_sub(peak)
    }

    /// Runs the recording under its own settings; if memory runs out, also without limits.
    pub fn own_trial(&self, room: Room) -> Trial {
        let mut trial = self.trial(&self.own, room);
        self.lift_limits(&mut trial, &self.own);
        trial.anew =
            self.has_older_blocks.then(|| self.simulation.run_anew(&self.own.config, &Limits::default()));
        trial.anew_within = (self.has_older_blocks && trial.limit.is_some())
            .then(|| self.simulation.run_anew(&self.own.config, &self.limits(&self.own, room)));
        trial
    }

    /// Runs the recording under a setting within the limits. Nothing is known yet of what else its peak may be.
    pub fn trial(&self, candidate: &Candidate, room: Room) -> Trial {
        let limits = self.limits(candidate, room);
        let limit = limits.capacity.into_iter().chain(limits.reserved).min();
        let outcome = if self.begins_beyond(limit) {
            self.simulation.run_anew(&candidate.config, &limits)
        } else {
            self.simulation.run(&candidate.config, &limits)
        };
        Trial {
            conf: candidate.conf.clone(),
            spread: Spread::of(&outcome),
            unlimited: None,
            limit,
            anew: None,
            anew_within: None,
            outcome,
        }
    }

    /// Finds out how far the peak of a trial may shift by what a recording does not tell.
    pub fn find_spread(&self, trial: &mut Trial, candidate: &Candidate, room: Room) {
        let limits = self.limits(candidate, room);
        trial.spread = self.simulation.spread(&candidate.config, &limits, &trial.outcome);
    }

    /// Runs a trial without limits if memory ran out within them.
    pub fn lift_limits(&self, trial: &mut Trial, candidate: &Candidate) {
        if trial.outcome.oom.is_none() || trial.limit.is_none() {
            return;
        }
        let whole = self.simulation.run(&candidate.config, &Limits::default());
        // Under the recording's own settings requests that failed then fail again, whatever is limited.
        let with_all = self.simulation.run_anew(&candidate.config, &Limits::default());
        trial.unlimited = Some(if with_all.rescued.is_empty() { whole } else { with_all });
    }

    /// Whether more was reserved when the recording began than a limit allows. Then it cannot begin as recorded.
    pub fn begins_beyond(&self, limit: Option<u64>) -> bool {
        limit.is_some_and(|limit| self.reserved_at_start > limit)
    }

    fn limits(&self, candidate: &Candidate, room: Room) -> Limits {
        room.limits(&candidate.config, self.simulation.rules())
    }
}

/// The settings of a recording: as it states them where that says it all, else the shortest text for what was in force.
pub(crate) fn own_settings(recording: &Recording, device: &DeviceRecording, rules: &Rules) -> Candidate {
    let settings = recording.settings.as_ref();
    let (mut config, warnings) = Config::of_recording(settings, rules);
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
    let says_all = Config::parse(stated, rules).is_ok_and(|(parsed, _)| parsed == config);
    Candidate { conf: if says_all { stated.to_owned() } else { config.text() }, config, warnings }
}
