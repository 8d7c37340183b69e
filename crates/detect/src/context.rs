//! What every detector may look at.

use std::cell::OnceCell;
use std::sync::Arc;

use vramscope_model::{Bytes, DeviceRecording, EventIdx, Recording, State, Symbols};
use vramscope_replay::allocator::config::{Config, Rules};
use vramscope_replay::{Lifetimes, Peak, Steps, Window, peak};

use crate::groups::Groups;
use crate::names::grouped;
use crate::over_capacity::{self, Fit};
use crate::rerun::{Rerun, own_settings};
use crate::rounds::Rounds;
use crate::tried::TriedSettings;

/// One device of one recording, with what was worked out about it.
pub struct Context<'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// The device in it.
    pub device: &'a DeviceRecording,
    /// Texts, frames and stacks.
    pub symbols: &'a Symbols,
    /// When blocks were born and died.
    pub lifetimes: &'a Lifetimes,
    /// The program's rounds.
    pub steps: &'a Steps,
    /// The part of the trace that is looked at.
    pub window: Window,
    /// The device's memory, if the user told.
    pub capacity: Option<Bytes>,
    pub(crate) rounds: Rounds,
    pub(crate) groups: Groups,
    peak: OnceCell<Option<Peak>>,
    // What follows takes long, so it is worked out only for who asks.
    rerun: OnceCell<Option<Rerun>>,
    tried: OnceCell<Option<Arc<TriedSettings>>>,
    fit: OnceCell<Fit>,
}

impl<'a> Context<'a> {
    /// Puts together what detectors share.
    pub fn new(
        recording: &'a Recording,
        device: &'a DeviceRecording,
        symbols: &'a Symbols,
        lifetimes: &'a Lifetimes,
        steps: &'a Steps,
        window: Window,
        capacity: Option<Bytes>,
    ) -> Self {
        let rounds = Rounds::of(steps, window);
        let groups = Groups::of(device, lifetimes, symbols, window);
        Self {
            recording,
            device,
            symbols,
            lifetimes,
            steps,
            window,
            capacity,
            rounds,
            groups,
            peak: OnceCell::new(),
            rerun: OnceCell::new(),
            tried: OnceCell::new(),
            fit: OnceCell::new(),
        }
    }

    /// Whether all of the trace is looked at.
    pub(crate) fn is_whole(&self) -> bool {
        self.window == self.lifetimes.whole()
    }

    /// The peak of the window.
    pub(crate) fn peak(&self) -> Option<Peak> {
        *self.peak.get_or_init(|| peak(self.device, self.lifetimes, self.window))
    }

    /// The peak of the whole trace; none where it holds no event.
    pub(crate) fn whole_peak(&self) -> Option<Peak> {
        if self.is_whole() { self.peak() } else { peak(self.device, self.lifetimes, self.lifetimes.whole()) }
    }

    /// The most bytes that were reserved in the whole recording.
    pub fn recorded_peak(&self) -> Bytes {
        let at_end = || self.device.last_state().map_or(Bytes::ZERO, State::reserved);
        self.whole_peak().map_or_else(at_end, |p| p.max_reserved)
    }

    /// Whether the recorded run would fit the device that the user told of.
    pub fn fit(&self) -> Option<&Fit> {
        let capacity = self.capacity?;
        Some(self.fit.get_or_init(|| over_capacity::fit(self, capacity)))
    }

    /// The allocator's settings when it was recorded.
    pub(crate) fn own_config(&self) -> Config {
        let rules = Rules::of(&self.recording.features, self.recording.settings.as_ref());
        let rules = rules.first().copied().unwrap_or_else(Rules::newest);
        own_settings(self.recording, self.device, &rules).config
    }

    /// The whole recording, to be run under other settings; none where it does not hold enough.
    pub(crate) fn rerun(&self) -> Option<&Rerun> {
        self.rerun.get_or_init(|| Rerun::of(self.recording, self.device, self.lifetimes).ok()).as_ref()
    }

    /// What other settings would have done for the whole recording, with as much memory as it tells.
    pub(crate) fn tried_settings(&self) -> Option<&Arc<TriedSettings>> {
        self.tried
            .get_or_init(|| {
                let rerun = self.rerun()?;
                let room = rerun.room(self.device, self.lifetimes, None, None);
                TriedSettings::of(rerun, room).map(Arc::new)
            })
            .as_ref()
    }

    /// A moment in words: "in step 12 (event 3,456)". Steps are numbered in all of the trace only.
    pub(crate) fn when(&self, event: EventIdx) -> String {
        let number = grouped(event.0.into());
        if self.steps.count() > 0 && self.is_whole() {
            format!("in step {} (event {number})", grouped(self.steps.step_of(event) as u64 + 1))
        } else {
            format!("at event {number}")
        }
    }
}
