//! Every text in `torch.tsv` is read as the libraries of torch read it.

use vramscope_model::Divisions;
use vramscope_replay::allocator::conf::{ConfError, ConfWarning, Notice};
use vramscope_replay::allocator::config::{Config, Release, Rules};

const OUTCOMES: &str = include_str!("torch.tsv");

/// The releases whose libraries were asked.
fn releases() -> impl Iterator<Item = Release> {
    (0..=15).map(|minor| Release(2, minor))
}

fn release(text: &str) -> Release {
    let (major, minor) = text.split_once('.').expect("a release");
    Release(major.parse().expect("a number"), minor.parse().expect("a number"))
}

#[test]
fn texts_are_read_as_torch_reads_them() {
    let mut differing = Vec::new();
    let mut compared = 0;
    for line in OUTCOMES.lines().filter(|line| !line.starts_with('#')) {
        let [from, to, text, outcome] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let text = text.replace("\\n", "\n").replace("\\t", "\t");
        for release in releases().filter(|&r| release(from) <= r && r <= release(to)) {
            compared += 1;
            let ours = Config::parse(&text, &Rules::of_release(release));
            if let Some(how) = difference(&ours, outcome) {
                differing.push(format!("{release} {text:?}: torch: {outcome}; here: {how}"));
            }
        }
    }
    assert!(differing.is_empty(), "{} of {compared} differ:\n{}", differing.len(), differing.join("\n"));
    assert!(compared > 4000, "{compared}");
}

/// How a reading differs from torch's, where it should not.
fn difference(ours: &Result<(Config, Vec<ConfWarning>), ConfError>, outcome: &str) -> Option<String> {
    // torch takes sizes that no device has (it reads -1 as one), and what it then does is of no use.
    let absurd = |name| number(outcome, name).is_some_and(|bytes| bytes >= 1 << 63);
    match (ours, outcome) {
        (Err(_), "refused") | (Ok(_), "taken") => None,
        (Err(error), _) if absurd("rounding=") || absurd("large=") => {
            (!error.to_string().contains("a device can have")).then(|| error.to_string())
        }
        (Err(error), _) => Some(error.to_string()),
        // Settings of later releases can be tried on a recording of an older one.
        (Ok((_, warnings)), "refused") => {
            let newer = warnings.iter().any(|w| matches!(w.notice, Notice::Newer { .. }));
            (!newer).then(|| "taken".into())
        }
        (Ok((config, _)), _) => (*config != expected(outcome)).then(|| format!("{config:?}")),
    }
}

fn number(outcome: &str, name: &str) -> Option<u64> {
    outcome.split(' ').find_map(|word| word.strip_prefix(name)).map(|n| n.parse().expect("a number"))
}

fn expected(outcome: &str) -> Config {
    let mut config = Config::default();
    for word in outcome.split(' ').filter(|&word| word != "defaults") {
        match word.split_once('=').unwrap_or((word, "")) {
            // That much is no limit.
            ("max_split", bytes) => config.max_split_size = bytes.parse().ok().filter(|&b: &u64| b < 1 << 63),
            ("rounding", bytes) => config.max_non_split_rounding = bytes.parse().expect("bytes"),
            ("large", bytes) => config.large_segment = bytes.parse().expect("bytes"),
            ("gc", share) => config.garbage_collection_threshold = share.parse().expect("a share"),
            ("fraction", share) => config.per_process_memory_fraction = share.parse().expect("a share"),
            ("expandable", _) => config.expandable_segments = true,
            ("throw", _) => config.throw_on_cudamalloc_oom = true,
            ("divisions", table) => {
                let table: Vec<u64> = table.split(',').map(|d| d.parse().expect("a number")).collect();
                config.roundup_divisions = Divisions(table.try_into().expect("16 numbers"));
            }
            _ => panic!("{word}"),
        }
    }
    config
}
