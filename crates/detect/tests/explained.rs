//! What detectors say of memory that could not be obtained or used, on recordings of the corpus.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops where it cannot go on, and reads files by itself"
)]

use std::path::{Path, PathBuf};

use vramscope_detect::{Context, EmptyCache, Finding, Kind, detect};
use vramscope_model::{BlockState, Bytes, Event, Symbols, join, script};
use vramscope_replay::{Lifetimes, Place, Steps};

const MIB: u64 = 1 << 20;

/// The findings about one device of a case, all its recordings together.
fn findings(case: &str) -> (Vec<Finding>, Symbols) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(case);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.to_string_lossy().contains(".pickle"));
    paths.sort();
    let mut symbols = Symbols::default();
    let snapshots = paths
        .iter()
        .map(|path| {
            vramscope_formats::read(std::fs::File::open(path).unwrap(), &mut symbols).unwrap().snapshot
        })
        .collect();
    let recording = join(snapshots, None);
    let device = &recording.devices[0];
    let lifetimes = Lifetimes::of(device, recording.settings.as_ref());
    let steps = Steps::of(device, &recording.annotations, &symbols, lifetimes.whole());
    let context = Context::new(&recording, device, &symbols, &lifetimes, &steps, lifetimes.whole(), None);
    let found = detect(&context);
    (found, symbols)
}

fn one(case: &str, kind: Kind) -> (Finding, Symbols) {
    let (mut found, symbols) = findings(case);
    let i = found.iter().position(|f| f.kind == kind).unwrap();
    (found.swap_remove(i), symbols)
}

fn line(symbols: &Symbols, place: Place) -> Option<u32> {
    place.site().map(|site| symbols.get_frame(site).line)
}

#[test]
fn a_full_process_is_told_that_no_setting_helps() {
    let (finding, symbols) = one("recordings/oom_capped", Kind::Oom);
    let found = finding.shortfall.unwrap();
    assert_eq!((found.request, found.needed), (Bytes(32 * MIB), Bytes(32 * MIB)));
    let limit = (found.limit.by_fraction, found.limit.at_least / MIB, found.limit.below / MIB);
    assert_eq!(limit, (true, 2848, 2880));
    assert_eq!(found.reserved, Bytes(2848 * MIB));
    assert_eq!((found.here.free(), found.here.largest), (Bytes::ZERO, Bytes::ZERO));
    assert_eq!(found.empty_cache, EmptyCache::NothingLeft);
    let holders: Vec<_> =
        found.holders.iter().map(|h| (line(&symbols, h.place), h.bytes.0 / MIB, h.blocks)).collect();
    assert_eq!(holders, [(Some(19), 2752, 43), (Some(26), 64, 2), (Some(23), 32, 1)]);
    let least = found.least.unwrap();
    assert_eq!((least.bytes, least.blocks, least.leaves_gap), (Bytes(32 * MIB), 1, true));
    assert_eq!(found.least_at_largest.unwrap().bytes, Bytes(64 * MIB));
    assert!(found.no_setting_helps);
    let last = finding.evidence.last().unwrap();
    assert!(last.starts_with("no allocator setting helps: "), "{last}");
}

#[test]
fn what_settings_could_save_is_bounded() {
    let (finding, symbols) = one("more/recordings/oom_leak", Kind::Oom);
    let found = finding.shortfall.unwrap();
    assert!(!found.no_setting_helps);
    assert_eq!(found.here.largest, Bytes(13 * MIB));
    assert_eq!(found.pins.places.iter().map(|p| line(&symbols, p.place)).collect::<Vec<_>>(), [Some(32)]);
    assert_eq!(found.pins.alone, Bytes(13 * MIB));
    // 13 MiB lie beside 3 MiB that would make room for 16.
    assert_eq!(found.least.unwrap().bytes, Bytes(3 * MIB));
    let (finding, _) = one("more/recordings/oom_too_big", Kind::Oom);
    let found = finding.shortfall.unwrap();
    assert_eq!(found.returned, Bytes(136 * MIB));
    assert_eq!((found.least, found.least_at_largest), (None, None));
    assert!(finding.evidence.iter().any(|e| e.contains("the request alone needs 4.0 GiB")));
}

#[test]
fn survivors_that_pin_are_named() {
    for (case, want, survivors) in [
        ("recordings/fragmentation_varlen", 17, 10),
        ("more/recordings/frag_survivors", 22, 29),
        ("more/recordings/frag_varlen_inference", 15, 7),
    ] {
        let (finding, symbols) = one(case, Kind::Fragmentation);
        let found = finding.fragmentation.unwrap();
        let stranding = &found.stranding;
        let first = stranding.places.first().unwrap();
        assert_eq!(line(&symbols, first.place), Some(want), "{case}");
        assert_eq!(first.survivors, survivors, "{case}");
        assert!(first.alone > 0.5 * (stranding.alone + stranding.shared), "{case}");
        let named = format!("kept by train.py:{want} ");
        assert!(finding.evidence.iter().any(|e| e.contains(&named)), "{case}: {:?}", finding.evidence);
        let n: u64 = found.fits_over_time.iter().sum();
        assert_eq!(n as usize, stranding.fits.len(), "{case}");
        assert!(stranding.has_times && stranding.stranded > 0.0 && stranding.releasable > 0.0, "{case}");
        let parts = stranding.alone + stranding.shared + stranding.dense + stranding.passing;
        assert!((parts - stranding.stranded).abs() < 1.0, "{case}");
        let example = found.example.unwrap();
        assert!(example.largest.unwrap() < example.request && example.request <= example.free, "{case}");
    }
}

/// Two segments of 40 MiB, one wholly free, and a request on another stream with 10 MiB left on the device, as when a graph
/// is captured and nothing is given back.
fn request_beside_a_free_segment(mib: u64) -> Finding {
    let mut symbols = Symbols::default();
    let text = format!("old a 40MiB @train.py:3:<module>\nold b 40MiB @train.py:4:<module>\noom {mib}MiB");
    let mut recording = script::recording(&mut symbols, &text).unwrap();
    let device = &mut recording.devices[0];
    let failure = device.events.get(0);
    let stream = symbols.stream(7);
    device.events.set(0, Event { addr: 10 * MIB, stream, ..failure });
    let segments = &mut device.states[0].segments;
    let mut second = segments[0].clone();
    segments[0].blocks.truncate(1);
    segments[0].blocks[0].state = BlockState::Inactive;
    second.blocks.remove(0);
    second.addr += 40 * MIB;
    segments[0].size = Bytes(40 * MIB);
    second.size = Bytes(40 * MIB);
    segments.push(second);
    let device = &recording.devices[0];
    let lifetimes = Lifetimes::of(device, None);
    let steps = Steps::of(device, &[], &symbols, lifetimes.whole());
    let context = Context::new(&recording, device, &symbols, &lifetimes, &steps, lifetimes.whole(), None);
    detect(&context).into_iter().find(|f| f.kind == Kind::Oom).unwrap()
}

#[test]
fn free_segments_of_other_streams_count_if_they_were_not_given_back() {
    let check = |mib: u64, empty_cache: EmptyCache, no_setting_helps: bool, said: &str| {
        let finding = request_beside_a_free_segment(mib);
        let found = finding.shortfall.unwrap();
        let limit = (found.limit.by_fraction, found.limit.at_least / MIB, found.limit.least_refused());
        assert_eq!(limit, (false, 90, 90 * MIB + 1), "{mib}");
        assert_eq!(found.missing, Bytes((mib - 10) * MIB), "{mib}");
        assert_eq!(found.here.free(), Bytes::ZERO, "{mib}");
        assert_eq!(found.empty_cache, empty_cache, "{mib}");
        assert_eq!(found.no_setting_helps, no_setting_helps, "{mib}");
        assert!(finding.evidence.iter().any(|e| e.contains(said)), "{mib}: {:#?}", finding.evidence);
    };
    let free = Bytes(40 * MIB);
    check(30, EmptyCache::Enough(free), false, "`empty_cache()` before it would have helped: 40.0 MiB");
    check(30, EmptyCache::Enough(free), false, "none of it for large blocks of the default pool, stream 0x7");
    check(50, EmptyCache::Enough(free), false, "without gaps it would have fit");
    check(
        60,
        EmptyCache::NotEnough(free),
        true,
        "no allocator setting helps: what is held and the request come to 100.0 MiB",
    );
    check(
        60,
        EmptyCache::NotEnough(free),
        true,
        "it would have given back 40.0 MiB, and 50.0 MiB were missing",
    );
}
