//! Every recording of the corpus, replayed under its own settings: the same segment events, every block at the recorded address,
//! and the last state block by block; or the reason why not.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops where it cannot go on, and reads files by itself"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use vramscope_model::{Symbols, join};
use vramscope_replay::Lifetimes;
use vramscope_replay::allocator::{Config, Rules, Simulation};

/// Recordings that cannot be reproduced, by the beginnings of their paths.
const REASONS: [(&str, &str); 8] = [
    ("older/profiler_categories", "written by hand: its blocks lie as no allocator puts them"),
    (
        "older/torch2.1_expandable",
        "written by a model that fills the holes of expandable segments in another order",
    ),
    (
        "whatif/random/recordings/switches",
        "the settings change while it is recorded; only the last are in the file",
    ),
    ("whatif/vectors/recordings/conf_", SETTINGS_CHANGE),
    ("whatif/vectors/recordings/garbage_collect_expandable", SETTINGS_CHANGE),
    ("whatif/vectors/recordings/gc_expandable_counted", SETTINGS_CHANGE),
    ("whatif/vectors/recordings/split_", SETTINGS_CHANGE),
    ("whatif/vectors/recordings/release_some_split", SETTINGS_CHANGE),
];

const SETTINGS_CHANGE: &str = "the settings change while it is recorded, and only the last are in the file";

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

/// All files below a directory, by path.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn every_recording_is_reproduced_exactly_or_it_is_known_why_not() {
    let (mut list, mut failed, mut n_exact) = (String::new(), Vec::new(), 0);
    let folders = ["large", "more/recordings", "older", "recordings", "whatif"];
    for path in folders.iter().flat_map(|folder| files(&corpus().join(folder))) {
        let name = path.strip_prefix(corpus()).unwrap().display().to_string();
        let mut symbols = Symbols::default();
        let Ok(document) = vramscope_formats::read(std::fs::File::open(&path).unwrap(), &mut symbols) else {
            continue;
        };
        let features = document.snapshot.features;
        let recording = join(vec![document.snapshot], None);
        let settings = recording.settings.as_ref();
        let reason = REASONS.iter().find(|(start, _)| name.starts_with(start)).map(|(_, reason)| *reason);
        for device in recording.devices.iter().filter(|device| !device.events.is_empty()) {
            let rules = Rules::of(&features, settings);
            let candidates: Vec<(Config, Rules)> =
                rules.into_iter().map(|rules| (Config::of_recording(settings, &rules).0, rules)).collect();
            let lifetimes = Lifetimes::of(device, settings);
            let said = match Simulation::of(device, &lifetimes, settings, &candidates) {
                Err(unplayable) => unplayable.to_string(),
                Ok(simulation) => {
                    let it = simulation.reproduction();
                    n_exact += usize::from(it.is_exact());
                    if !it.is_exact() && reason.is_none() {
                        failed.push(format!("{name}: {:?}", it.first_divergence));
                    }
                    let figures = format!(
                        "{} of {} segment events, {} of {} allocations in place, {} of {} blocks at the end",
                        it.reproduced, it.recorded, it.in_place, it.allocations, it.same_blocks, it.blocks
                    );
                    match reason.filter(|_| !it.is_exact()) {
                        Some(reason) => format!("{figures}: {reason}"),
                        None => figures,
                    }
                }
            };
            writeln!(list, "{name} {}: {said}", device.ordinal).unwrap();
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(n_exact > 800, "{n_exact}");
    insta::assert_snapshot!(list);
}
