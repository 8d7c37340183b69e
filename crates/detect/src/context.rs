//! What every detector may look at.

use std::cell::OnceCell;

use vramscope_model::{Bytes, DeviceRecording, Recording, Symbols};
use vramscope_replay::{Lifetimes, Peak, Steps, Window, peak};

use crate::groups::Groups;
use crate::rounds::Rounds;

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
        }
    }

    /// The peak of the window.
    pub(crate) fn peak(&self) -> Option<Peak> {
        *self.peak.get_or_init(|| peak(self.device, self.lifetimes, self.window))
    }
}
