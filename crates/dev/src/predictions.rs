//! What the simulator predicts of runs whose memory was measured, for the documents.
//!
//! The tests of `replay` hold it to these figures; here they are only put side by side.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;
use vramscope_model::{Symbols, join};
use vramscope_replay::Lifetimes;
use vramscope_replay::allocator::{Config, Limits, Rules, Simulation};

use crate::answers::answer;

/// The memory of the H200 that they ran on as torch tells it, in bytes.
const TOTAL: u64 = 150_109_880_320;

/// A program that was run under several settings.
pub struct Program {
    /// Its folder's name.
    pub name: String,
    /// Whether it is one of the corpus' own cases, else one of `corpus/whatif/more`.
    pub is_case: bool,
    /// What `whatif` recommends from its recording.
    pub recommended: Option<String>,
    /// The first under the defaults, of which there is the recording.
    pub runs: Vec<Run>,
}

/// One run. Bytes.
pub struct Run {
    /// The settings, as in `PYTORCH_CUDA_ALLOC_CONF`.
    pub conf: String,
    /// The share of the device's memory that it might have, if there was a limit.
    pub fraction: Option<f64>,
    /// The most that was reserved.
    pub measured: u64,
    /// The most that was allocated.
    pub allocated: u64,
    /// Calls that obtained memory and that gave it back, where they were counted.
    pub calls: Option<[u64; 2]>,
    /// How often all that was free was given back for a request.
    pub retries: u64,
    /// How often a request failed.
    pub failed: u64,
    /// Whether the run ended because of that.
    pub ended: bool,
    /// The most reserved, as predicted from the recording of the default run.
    pub predicted: u64,
    /// Whether a request is predicted to fail.
    pub predicted_failed: bool,
}

impl Run {
    /// The bytes that might be reserved, if there was a limit.
    pub fn limit(&self) -> Option<u64> {
        self.fraction.map(|fraction| (fraction * TOTAL as f64) as u64)
    }

    /// By how many bytes the prediction is off.
    pub fn off(&self) -> u64 {
        self.predicted.abs_diff(self.measured)
    }

    /// Whether the peak is predicted to the byte, and that requests fail or that none does.
    pub fn is_exact(&self) -> bool {
        self.off() == 0 && self.predicted_failed == (self.failed > 0)
    }
}

/// All programs of the corpus that were run under several settings.
pub fn programs() -> anyhow::Result<Vec<Program>> {
    let corpus = crate::generate::root().join("corpus");
    let mut all = Vec::new();
    for (truth, is_case) in [("whatif/truth.json", true), ("whatif/more/truth.json", false)] {
        let path = corpus.join(truth);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let truth: Value = serde_json::from_str(&text)?;
        for (name, runs) in truth["cases"].as_object().context("no cases")? {
            let folder = if is_case { "recordings" } else { "whatif/more/recordings" };
            let simulation = simulation(&last_snapshot(&corpus.join(folder).join(name))?)?;
            let runs = runs.as_array().context("no runs")?.iter().map(|run| predict(&simulation, run));
            let runs = runs.collect::<anyhow::Result<_>>()?;
            let answer = answer(&format!("vramscope whatif corpus/{folder}/{name} --format json"))?;
            let recommended = serde_json::from_str::<Value>(&answer)?["recommended"].as_str().map(Into::into);
            all.push(Program { name: name.clone(), is_case, recommended, runs });
        }
    }
    Ok(all)
}

/// The snapshot with the highest number in its name.
fn last_snapshot(folder: &Path) -> anyhow::Result<PathBuf> {
    let number = |path: &PathBuf| -> u64 {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
    };
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
    let snapshots = paths.into_iter().filter(|path| path.to_string_lossy().contains(".pickle"));
    snapshots.max_by_key(number).with_context(|| format!("no snapshot in {}", folder.display()))
}

fn simulation(path: &Path) -> anyhow::Result<Simulation> {
    #[expect(clippy::disallowed_methods, reason = "a tool for developers reads the corpus")]
    let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
    let snapshot = vramscope_formats::read(file, &mut Symbols::default())?.snapshot;
    let features = snapshot.features;
    let recording = join(vec![snapshot], None);
    let settings = recording.settings.as_ref();
    let candidates: Vec<(Config, Rules)> = Rules::of(&features, settings)
        .into_iter()
        .map(|rules| (Config::of_recording(settings, &rules).0, rules))
        .collect();
    let device = recording.devices.first().context("no device")?;
    let lifetimes = Lifetimes::of(device, settings);
    Simulation::of(device, &lifetimes, settings, &candidates)
        .map_err(|why| anyhow::anyhow!("{}: {why}", path.display()))
}

fn predict(simulation: &Simulation, run: &Value) -> anyhow::Result<Run> {
    let conf = run["conf"].as_str().context("no setting")?;
    let fraction = run["memory_fraction"].as_f64();
    let rules = simulation.rules();
    let (config, _) = Config::parse(conf, &rules).map_err(|error| anyhow::anyhow!("`{conf}`: {error}"))?;
    let reserved = fraction.map(|fraction| rules.bytes_of_fraction(fraction, TOTAL));
    let outcome = simulation.run(&config, &Limits { capacity: None, reserved, total: Some(TOTAL) });
    let number = |key: &str| run[key].as_u64();
    Ok(Run {
        conf: conf.to_owned(),
        fraction,
        measured: number("peak_reserved").context("no peak")?,
        allocated: number("peak_allocated").context("no peak")?,
        calls: number("num_device_alloc").zip(number("num_device_free")).map(<[u64; 2]>::from),
        retries: number("num_alloc_retries").unwrap_or(0),
        failed: number("num_ooms").unwrap_or(0),
        ended: run["out_of_memory"].is_object(),
        predicted: outcome.peak_reserved,
        predicted_failed: outcome.oom.is_some(),
    })
}
