//! What recordings say of their settings, and of the release that made them.

use std::path::Path;

use vramscope_model::Symbols;
use vramscope_replay::allocator::config::{Config, Rules};

/// The rules that may hold, newest first, and the settings under the first of them with what is said of these.
fn check(file: &str, releases: &[&str], conf: &str, warnings: &[&str]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(file);
    let document =
        vramscope_formats::read(std::fs::File::open(path).unwrap(), &mut Symbols::default()).unwrap();
    let settings = document.snapshot.settings.as_ref();
    let rules = Rules::of(&document.snapshot.features, settings);
    let found: Vec<_> = rules.iter().map(|r| r.release.to_string()).collect();
    assert_eq!(found, releases, "{file}");
    for rules in rules {
        let (config, said) = Config::of_recording(settings, &rules);
        assert_eq!(config.text(), conf, "{file}");
        assert_eq!(said.iter().map(ToString::to_string).collect::<Vec<_>>(), warnings, "{file}");
    }
}

const UNRECORDED: &str =
    "the file does not state the allocator's settings (torch 2.3 and later do); the defaults are taken";

#[test]
fn recordings_tell_their_release_and_settings() {
    let of = |name: &str| format!("more/recordings/{name}/step120.pickle.zst");
    check(&of("expandable_leak"), &["2.11"], "expandable_segments:True", &[]);
    check(&of("max_split_leak"), &["2.11"], "max_split_size_mb:32", &[]);
    let conf = "max_split_size_mb:64,garbage_collection_threshold:0.6";
    check(&of("gc_threshold_varlen"), &["2.11"], conf, &[]);
}

#[test]
fn older_and_newer_files_tell_theirs() {
    let of = |name: &str, release, warnings: &[&str]| {
        check(&format!("older/{name}.pickle"), &[release], "", warnings);
    };
    of("torch1.12_step12", "1.12", &[UNRECORDED]);
    of("torch1.13_step12", "2.0", &[UNRECORDED]);
    of("torch2.0_oom", "2.0", &[UNRECORDED]);
    of("torch2.1_expandable", "2.2", &[UNRECORDED]);
    of("torch2.3_pending", "2.4", &[]);
    of("torch2.5", "2.7", &[]);
    of("torch2.12_pools", "2.12", &[]);
    of("torch2.14_host", "2.15", &[]);
    of("torch2.15", "2.15", &[]);
}
