//! How fast a large recording is replayed: under its own settings with every event compared, under others, and under twelve settings
//! one after the other on one core.
//!
//! `cargo bench -p vramscope-replay`; `scripts/bench_whatif.py` puts these beside the whole command and a replay in plain Python.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark reads its file and fails loudly"
)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use vramscope_model::{Symbols, join};
use vramscope_replay::Lifetimes;
use vramscope_replay::allocator::{Config, Limits, Rules, Simulation};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/large/gpt_long_python.pickle.zst");

/// Settings of each kind.
const SETTINGS: [&str; 6] = [
    "",
    "expandable_segments:True",
    "max_split_size_mb:64",
    "roundup_power2_divisions:8",
    "expandable_segments:True,roundup_power2_divisions:8",
    "garbage_collection_threshold:0.6",
];

/// What a sweep tries on a recording like this one.
const SWEEP: [&str; 12] = [
    "",
    "expandable_segments:True",
    "max_split_size_mb:32",
    "max_split_size_mb:64",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:8",
    "roundup_power2_divisions:16",
    "roundup_power2_divisions:[32:8,64:1,>:1]",
    "expandable_segments:True,roundup_power2_divisions:8",
    "large_segment_size_mb:64",
    "expandable_segments:True,large_segment_size_mb:12",
    "max_split_size_mb:64,max_non_split_rounding_mb:128",
];

fn whatif(c: &mut Criterion) {
    let mut symbols = Symbols::default();
    let snapshot =
        vramscope_formats::read(std::fs::File::open(FILE).unwrap(), &mut symbols).unwrap().snapshot;
    let features = snapshot.features;
    let recording = join(vec![snapshot], None);
    let settings = recording.settings.as_ref();
    let rules = Rules::of(&features, settings);
    let candidates: Vec<(Config, Rules)> =
        rules.into_iter().map(|rules| (Config::of_recording(settings, &rules).0, rules)).collect();
    let device = &recording.devices[0];
    let lifetimes = Lifetimes::of(device, settings);
    let simulation = Simulation::of(device, &lifetimes, settings, &candidates).unwrap();
    assert!(simulation.reproduction().is_exact());
    let n_events = device.events.len() as u64;

    let mut group = c.benchmark_group("whatif");
    group.throughput(Throughput::Elements(n_events));
    group.sample_size(10).measurement_time(Duration::from_secs(4));
    group.bench_function("reproduce", |b| {
        b.iter(|| Simulation::of(black_box(device), &lifetimes, settings, &candidates).unwrap());
    });
    for conf in SETTINGS {
        let (config, _) = Config::parse(conf, &simulation.rules()).unwrap();
        // Without a limit nothing is collected.
        let reserved = (config.garbage_collection_threshold > 0.0).then_some(1 << 30);
        let limits = Limits { reserved, ..Limits::default() };
        let name = if conf.is_empty() { "defaults" } else { conf };
        group.bench_function(name, |b| b.iter(|| simulation.run_anew(black_box(&config), &limits)));
    }
    group.throughput(Throughput::Elements(n_events * SWEEP.len() as u64));
    let configs = SWEEP.map(|conf| Config::parse(conf, &simulation.rules()).unwrap().0);
    group.bench_function("12 settings", |b| {
        b.iter(|| {
            let runs = configs.iter().map(|config| simulation.run_anew(config, &Limits::default()));
            runs.map(|outcome| outcome.peak_reserved).max()
        });
    });
    group.finish();
}

criterion_group!(benches, whatif);
criterion_main!(benches);
