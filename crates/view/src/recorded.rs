//! What `vramscope run` wrote down beside snapshots, and what is said of it.

use vramscope_model::{Annotation, Bytes, Recording, Sample, Settings, Stage, Statistics, Symbols};
use vramscope_replay::RECORDED_STEP;

pub use vramscope_model::Environment;

use crate::analysis::Input;
use crate::holders::HoldersFile;

/// What is known of one process.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its snapshots, put together; without any devices where there are none.
    pub recording: Recording,
    /// The files of the snapshots, in time order.
    pub inputs: Vec<Input>,
    /// What the recorder wrote down beside them.
    pub files: Option<RecorderFiles>,
}

/// What the recorder wrote down of one process.
#[derive(Clone, Debug, Default)]
pub struct RecorderFiles {
    /// The directory, as given.
    pub path: String,
    /// The rank of the process, if known.
    pub rank: Option<u32>,
    /// The program and the machine.
    pub environment: Option<Environment>,
    /// The allocator's counters at the end of each step.
    pub statistics: Statistics,
    /// Who held the memory, in time order.
    pub holders: Vec<HoldersFile>,
    /// What is wrong with the files, each with its path.
    pub warnings: Vec<String>,
}

/// The same, in what is said.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// The directory, as given.
    pub path: String,
    /// The rank of the process, if known.
    pub rank: Option<u32>,
    /// The program and the machine.
    pub environment: Option<Environment>,
    /// The allocator's counters over the run, by device.
    pub curves: Vec<Curve>,
    /// Who held the memory, in time order.
    pub holders: Vec<HoldersFile>,
    /// What is wrong with the files, each with its path.
    pub warnings: Vec<String>,
}

impl Recorded {
    /// What is said of some files.
    pub fn of(files: &RecorderFiles) -> Self {
        Self {
            path: files.path.clone(),
            rank: files.rank,
            environment: files.environment.clone(),
            curves: Curve::all(&files.statistics),
            holders: files.holders.clone(),
            warnings: files.warnings.clone(),
        }
    }

    /// The steps that were written down.
    pub fn steps(&self) -> u64 {
        self.curves.iter().map(|curve| curve.steps).max().unwrap_or(0)
    }
}

/// The allocator's counters of one device over a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    /// The device; none for a process that uses none.
    pub device: Option<u32>,
    /// How many steps ended from the first reading to the last, by the last way of telling steps; 0 where none were told.
    pub steps: u64,
    /// The number of the first step that was read, as the recorder counts.
    pub first_step: Option<u64>,
    /// The number of the last one.
    pub last_step: Option<u64>,
    /// How steps were told, as the recorder calls it: `optimizer`.
    pub source: Option<String>,
    /// How often the counters were read.
    pub readings: u64,
    /// When they were first, µs since 1970 UTC.
    pub first_us: Option<i64>,
    /// When they were last.
    pub last_us: Option<i64>,
    /// Allocated bytes at each reading; of many at the end of [`Curve::MOST`] equal parts.
    pub allocated: Vec<u64>,
    /// Bytes of the process in main memory, in the same way.
    pub rss: Vec<u64>,
    /// The most bytes allocated at any moment, if written down.
    pub peak_allocated: Option<u64>,
    /// The most bytes reserved at any moment, if written down.
    pub peak_reserved: Option<u64>,
}

impl Curve {
    /// The most points of a curve.
    pub const MOST: usize = 1000;

    /// The curve of each device that was used, else one of none that has the steps alone.
    pub fn all(statistics: &Statistics) -> Vec<Self> {
        let devices = statistics.devices();
        let devices: Vec<Option<u32>> =
            if devices.is_empty() { vec![None] } else { devices.into_iter().map(Some).collect() };
        devices.into_iter().filter_map(|device| Self::of(statistics, device)).collect()
    }

    fn of(statistics: &Statistics, device: Option<u32>) -> Option<Self> {
        let samples: Vec<&Sample> =
            statistics.samples().iter().filter(|sample| sample.device == device).collect();
        let (first, last) = (samples.first()?, samples.last()?);
        let values = |of: &dyn Fn(&Sample) -> Option<Bytes>| {
            samples.iter().filter_map(|sample| of(sample)).map(|bytes| bytes.0).collect::<Vec<u64>>()
        };
        let source = samples.iter().rfind(|sample| sample.step.is_some()).and_then(|sample| sample.source);
        let numbers =
            samples.iter().filter(|sample| sample.source == source).filter_map(|sample| sample.step);
        let (first_step, last_step) = (numbers.clone().min(), numbers.max());
        let steps = first_step.zip(last_step).map_or(0, |(first, last)| (last - first).saturating_add(1));
        let name =
            source.filter(|_| steps > 0).and_then(|place| statistics.sources().get(usize::from(place)));
        Some(Self {
            device,
            steps,
            first_step,
            last_step,
            source: name.cloned(),
            readings: samples.len() as u64,
            first_us: first.time.map(|time| time.0),
            last_us: last.time.map(|time| time.0),
            allocated: thinned(&values(&|sample| sample.allocated), Self::MOST),
            rss: thinned(&values(&|sample| sample.rss), Self::MOST),
            peak_allocated: values(&|s| s.peak_allocated.or(s.allocated)).into_iter().max(),
            peak_reserved: values(&|s| s.peak_reserved.or(s.reserved)).into_iter().max(),
        })
    }
}

/// The last of each of at most `most` equal parts.
fn thinned(values: &[u64], most: usize) -> Vec<u64> {
    if values.len() <= most {
        return values.to_vec();
    }
    (1..=most).filter_map(|i| values.get(values.len() * i / most - 1).copied()).collect()
}

/// Completes a recording by what the recorder wrote down: when steps ended, the rank, and the allocator's settings where
/// the snapshots do not state them.
#[must_use]
pub fn completed(mut recording: Recording, files: &RecorderFiles, symbols: &mut Symbols) -> Recording {
    for (step, time) in files.statistics.step_ends() {
        let name = symbols.string(&format!("{RECORDED_STEP}{step}"));
        recording.annotations.push(Annotation { name, stage: Stage::End, device: 0, time });
    }
    recording.annotations.sort_by_key(|annotation| annotation.time);
    recording.rank = recording.rank.or(files.rank);
    let stated = files.environment.as_ref().and_then(Environment::allocator_conf);
    if let (None, Some((name, conf))) = (&recording.settings, stated) {
        recording.settings = Some(Settings {
            conf: conf.to_owned(),
            expandable_segments: is_expandable(conf),
            all: vec![(name.to_owned(), conf.to_owned())],
            ..Settings::default()
        });
    }
    recording
}

fn is_expandable(conf: &str) -> bool {
    let is_on = |item: &str| {
        item.split_once(':').is_some_and(|(name, value)| {
            name.trim() == "expandable_segments" && value.trim().eq_ignore_ascii_case("true")
        })
    };
    conf.split(',').any(is_on)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_model::TimeUs;

    fn statistics(rows: &[(u64, Option<u32>, u64)]) -> Statistics {
        let mut statistics = Statistics::default();
        for &(step, device, allocated) in rows {
            let (time, allocated) = (Some(TimeUs(step as i64 * 10)), Some(Bytes(allocated)));
            statistics
                .push(Sample { step: Some(step), time, device, allocated, ..Sample::default() }, "optimizer");
        }
        statistics
    }

    #[test]
    fn each_device_has_its_curve() {
        let curves =
            Curve::all(&statistics(&[(1, Some(0), 5), (1, Some(1), 7), (2, Some(0), 6), (2, Some(1), 3)]));
        let shown: Vec<_> =
            curves.iter().map(|c| (c.device, c.allocated.clone(), c.peak_allocated)).collect();
        assert_eq!(shown, [(Some(0), vec![5, 6], Some(6)), (Some(1), vec![7, 3], Some(7))]);
        assert_eq!(Curve::all(&statistics(&[(1, None, 0)]))[0].device, None);
        assert_eq!(Curve::all(&Statistics::default()), []);
    }

    #[test]
    fn long_runs_are_thinned_to_the_ends_of_equal_parts() {
        let values: Vec<u64> = (1..=10).collect();
        assert_eq!(thinned(&values, 5), [2, 4, 6, 8, 10]);
        assert_eq!(thinned(&values, 3), [3, 6, 10]);
        assert_eq!(thinned(&values, 10), values);
    }

    #[test]
    fn settings_of_the_environment_stand_in_for_those_of_snapshots() {
        let recording = vramscope_model::join(Vec::new(), None);
        let settings = vec![("PYTORCH_CUDA_ALLOC_CONF".to_owned(), "expandable_segments: True".to_owned())];
        let environment = Environment { settings, ..Environment::default() };
        let files = RecorderFiles {
            rank: Some(3),
            environment: Some(environment),
            statistics: statistics(&[(1, Some(0), 5), (2, Some(0), 5)]),
            ..RecorderFiles::default()
        };
        let mut symbols = Symbols::default();
        let completed = completed(recording, &files, &mut symbols);
        assert_eq!((completed.rank, completed.annotations.len()), (Some(3), 2));
        assert!(completed.settings.is_some_and(|settings| settings.expandable_segments));
    }
}
