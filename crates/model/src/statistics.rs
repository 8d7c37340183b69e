//! What the allocator's counters said at the ends of steps, where the recorder wrote them down.

use crate::units::{Bytes, TimeUs};

/// The counters of one device at one moment, mostly the end of a step. What a row does not tell is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The step that ended, as the recorder counts them; none for a reading by the clock.
    pub step: Option<u64>,
    /// When it was read.
    pub time: Option<TimeUs>,
    /// How the moment was chosen, as a place in [`Statistics::sources`].
    pub source: Option<u8>,
    /// The device; none for a process that uses none.
    pub device: Option<u32>,
    /// Bytes in blocks that the program holds.
    pub allocated: Option<Bytes>,
    /// Bytes obtained from the driver.
    pub reserved: Option<Bytes>,
    /// The most bytes allocated at any moment so far.
    pub peak_allocated: Option<Bytes>,
    /// The most bytes reserved at any moment so far.
    pub peak_reserved: Option<Bytes>,
    /// Bytes of the process in the machine's main memory.
    pub rss: Option<Bytes>,
}

/// The counters of one process over its run, in the order in which they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    samples: Vec<Sample>,
    /// How moments were chosen, each way once, in words such as `optimizer`.
    sources: Vec<String>,
}

/// More ways are not kept.
const MOST_SOURCES: usize = 8;

impl Statistics {
    /// Adds what was read, and how the moment was chosen.
    pub fn push(&mut self, mut sample: Sample, source: &str) {
        if !source.is_empty() {
            let known = self.sources.iter().position(|known| known == source);
            let place = known.or_else(|| {
                let is_room = self.sources.len() < MOST_SOURCES;
                is_room.then(|| {
                    self.sources.push(source.to_owned());
                    self.sources.len() - 1
                })
            });
            sample.source = place.and_then(|place| u8::try_from(place).ok());
        }
        self.samples.push(sample);
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Every sample.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// How moments were chosen, in words such as `optimizer`.
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// The devices, each once, ascending.
    pub fn devices(&self) -> Vec<u32> {
        let mut devices: Vec<u32> = self.samples.iter().filter_map(|sample| sample.device).collect();
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    /// Each step that was read and when it ended, in time order: those of the last way of telling steps, as each way counts
    /// them anew. A step that is told of several devices ends with the last of them. Not every step need be among them: what
    /// is faster than the recorder reads is passed over.
    pub fn step_ends(&self) -> Vec<(u64, TimeUs)> {
        let source =
            self.samples.iter().rfind(|sample| sample.step.is_some()).and_then(|sample| sample.source);
        let counted = self.samples.iter().filter(|sample| sample.source == source);
        let mut ends: Vec<(u64, TimeUs)> =
            counted.filter_map(|sample| Some((sample.step?, sample.time?))).collect();
        ends.sort_unstable();
        ends.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            kept.1 = if is_same { later.1 } else { kept.1 };
            is_same
        });
        ends.sort_by_key(|&(_, time)| time);
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_once_whatever_the_number_of_devices() {
        let mut statistics = Statistics::default();
        let mut push = |step, time, device, source| {
            let (time, device) = (Some(TimeUs(time)), Some(device));
            statistics.push(Sample { step, time, device, ..Sample::default() }, source);
        };
        push(Some(7), 5, 0, "loader");
        for (step, time, device) in [(1, 10, 0), (1, 11, 1), (2, 20, 0), (2, 21, 1)] {
            push(Some(step), time, device, "optimizer");
        }
        push(None, 30, 0, "clock");
        assert_eq!(statistics.step_ends(), [(1, TimeUs(11)), (2, TimeUs(21))]);
        assert_eq!(statistics.devices(), [0, 1]);
        assert_eq!(statistics.sources(), ["loader", "optimizer", "clock"]);
    }
}
