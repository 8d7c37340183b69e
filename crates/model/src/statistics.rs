//! What the allocator's counters said at the end of each step, where the recorder wrote them down.

use crate::units::{Bytes, TimeUs};

/// The counters of one device at the end of one step. What a row does not tell is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The step, as the recorder counts them.
    pub step: u64,
    /// When the step ended.
    pub time: Option<TimeUs>,
    /// The device; none for a process that uses none.
    pub device: Option<u32>,
    /// Bytes in blocks that the program holds.
    pub allocated: Option<Bytes>,
    /// Bytes obtained from the driver.
    pub reserved: Option<Bytes>,
    /// The most bytes allocated during the step.
    pub peak_allocated: Option<Bytes>,
    /// The most bytes reserved during the step.
    pub peak_reserved: Option<Bytes>,
}

/// The counters of one process over its run, in the order in which they were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    samples: Vec<Sample>,
    /// How steps were told, each way once, in words such as `optimizer`.
    sources: Vec<String>,
}

/// More ways of telling steps are not kept.
const MOST_SOURCES: usize = 8;

impl Statistics {
    /// Adds what was read at the end of a step, and how that was told.
    pub fn push(&mut self, sample: Sample, source: &str) {
        self.samples.push(sample);
        if !source.is_empty()
            && self.sources.len() < MOST_SOURCES
            && !self.sources.iter().any(|known| known == source)
        {
            self.sources.push(source.to_owned());
        }
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Every sample.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// How steps were told.
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

    /// Each step and when it ended, in time order. A step that is told of several devices ends with the last of them.
    pub fn step_ends(&self) -> Vec<(u64, TimeUs)> {
        let mut ends: Vec<(u64, TimeUs)> =
            self.samples.iter().filter_map(|sample| Some((sample.step, sample.time?))).collect();
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
        for (step, time, device) in [(1, 10, 0), (1, 11, 1), (2, 20, 0), (2, 21, 1)] {
            let (time, device) = (Some(TimeUs(time)), Some(device));
            statistics.push(Sample { step, time, device, ..Sample::default() }, "optimizer");
        }
        statistics.push(Sample { step: 3, ..Sample::default() }, "step()");
        assert_eq!(statistics.step_ends(), [(1, TimeUs(11)), (2, TimeUs(21))]);
        assert_eq!(statistics.devices(), [0, 1]);
        assert_eq!(statistics.sources(), ["optimizer", "step()"]);
    }
}
