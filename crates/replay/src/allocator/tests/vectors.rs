//! Short programs, each with what is reserved after every step.
//!
//! Source: the allocator reference, §16: what PyTorch's own tests and its developers' notes say, and vectors worked out from the
//! rules.

use vramscope_model::StreamId;

use crate::allocator::block::Id;
use crate::allocator::config::{Config, MIB, Release, Rules};
use crate::allocator::machine::Allocator;
use crate::allocator::outcome::Limits;

/// Torch 2.11, in which they were tried.
fn rules() -> Rules {
    Rules::of_release(Release(2, 11))
}

/// Runs a program and compares what is reserved after each of its steps, in MiB; `OOM` for a request that fails.
///
/// `+30` requests 30 MiB, `+10M-512` less, `+1B` one byte, `+5@7` on stream 7; `-0` frees the first block that was requested,
/// `-all` every one, `flush` gives back what is free.
fn check(config: &Config, limits: Limits, program: &str, expected: &str) {
    let mut allocator = Allocator::new(config, rules(), limits);
    let mut blocks: Vec<Option<Id>> = Vec::new();
    let mut reserved = Vec::new();
    for word in program.split_whitespace() {
        let mut result = None;
        if let Some(request) = word.strip_prefix('+') {
            let (size, stream) = request.split_once('@').unwrap_or((request, "0"));
            let block = allocator.malloc(bytes(size), StreamId(stream.parse().unwrap()), 0).ok();
            result = block.is_none().then(|| "OOM".to_owned());
            blocks.push(block);
        } else if word == "-all" {
            blocks.iter_mut().filter_map(Option::take).for_each(|block| allocator.free(block, false));
        } else if let Some(number) = word.strip_prefix('-') {
            let block = blocks[number.parse::<usize>().unwrap()].take().unwrap();
            allocator.free(block, false);
        } else {
            assert_eq!(word, "flush");
            allocator.release_all();
        }
        super::invariants::check(&allocator);
        reserved.push(result.unwrap_or_else(|| (allocator.tally.reserved / MIB).to_string()));
    }
    assert_eq!(reserved.join(" "), expected, "{program}");
}

fn bytes(text: &str) -> u64 {
    if let Some(bytes) = text.strip_suffix('B') {
        return bytes.parse().unwrap();
    }
    let at = text.find('M').unwrap_or(text.len());
    let mib: u64 = text[..at].parse().unwrap();
    let more: i64 = text[at..].trim_start_matches('M').parse().unwrap_or(0);
    (mib * MIB).checked_add_signed(more).unwrap()
}

fn default() -> Config {
    Config::default()
}

fn expandable() -> Config {
    Config { expandable_segments: true, ..Config::default() }
}

fn max_split(mib: u64) -> Config {
    Config { max_split_size: Some(mib * MIB), ..Config::default() }
}

fn large_segment(mib: u64) -> Config {
    Config { large_segment: mib * MIB, max_non_split_rounding: mib * MIB, ..Config::default() }
}

const FREELY: Limits = Limits { capacity: None, reserved: None, total: None };

fn capacity(mib: u64) -> Limits {
    Limits { capacity: Some(mib * MIB), ..FREELY }
}

fn limit(mib: u64) -> Limits {
    Limits { reserved: Some(mib * MIB), ..FREELY }
}

#[test]
fn segments_of_small_and_large_pools() {
    check(&default(), FREELY, "+1B +1 +1 +1M-512", "2 2 4 4");
    check(&default(), FREELY, "+1M+1 +9 +9 +2", "20 20 20 40");
    check(&default(), FREELY, "+10M-512 +10M-512", "20 20");
    check(&default(), FREELY, "+2 -0 +524288B", "20 20 22");
    check(&expandable(), FREELY, "+2 -0 +524288B", "20 20 22");
}

#[test]
fn a_rest_of_a_mebibyte_or_less_stays_with_its_block() {
    let config = default();
    let mut allocator = Allocator::new(&config, rules(), FREELY);
    for want in [(10 << 20) - 512, (10 << 20) + 512] {
        let block = allocator.malloc((10 << 20) - 512, StreamId(0), 0).unwrap();
        assert_eq!(allocator.blocks[block].size, want);
    }
}

#[test]
fn streams_share_nothing() {
    check(&default(), FREELY, "+30@0 -0 +30@7 +30@0", "30 30 60 60");
    check(&expandable(), FREELY, "+5@0 +5@7", "20 40");
}

#[test]
fn blocks_of_the_greatest_split_size_are_handed_out_whole() {
    check(&max_split(200), FREELY, "+300 -0 +100 +285 -2 +280", "300 300 400 400 400 680");
    check(&max_split(100), capacity(500), "+120 +120 +120 -all +220", "120 240 360 360 340");
    check(&default(), capacity(500), "+120 +120 +120 -all +220", "120 240 360 360 220");
}

#[test]
fn expandable_segments_map_what_is_missing_in_pages() {
    check(&expandable(), capacity(100), "+30 +30 +25 +30", "40 60 100 OOM");
    check(&expandable(), FREELY, "+10 +30 +10 -1 flush", "20 40 60 60 40");
    check(&expandable(), FREELY, "+20 +60 +20 -1 flush +30", "20 80 100 100 40 80");
    check(&expandable(), limit(65), "+22 +30", "40 OOM");
    check(&expandable(), FREELY, "+22 +30", "40 60");
    check(&expandable(), limit(25), "+22", "40");
    check(
        &expandable(),
        FREELY,
        "+16 +16 +16 +16 +16 +16 +16 +16 -all +32 +32 +32 +32",
        "20 40 60 80 80 100 120 140 140 140 140 140 140",
    );
    check(&expandable(), FREELY, "+16 +16 +16 +16 -0 -2 +32", "20 40 60 80 80 80 100");
    let twelve = Config { expandable_segments: true, ..large_segment(12) };
    check(&twelve, FREELY, "+16 +16 +16 +16", "24 36 48 72");
}

#[test]
fn many_small_then_few_large_need_new_segments_and_not_the_other_way_round() {
    let eight = "+16 +16 +16 +16 +16 +16 +16 +16";
    check(
        &default(),
        FREELY,
        &format!("{eight} -all +32 +32 +32 +32"),
        "16 32 48 64 80 96 112 128 128 160 192 224 256",
    );
    check(
        &default(),
        FREELY,
        &format!("+32 +32 +32 +32 -all {eight}"),
        "32 64 96 128 128 128 128 128 128 128 128 128 128",
    );
}

#[test]
fn larger_segments_for_large_requests() {
    check(&large_segment(64), FREELY, "+2 +11 +70", "64 64 134");
}

/// At most three blocks of one size are held: old, temporary and new. In the end all but one are free, and given back.
#[test]
fn a_few_blocks_of_one_size_as_in_the_test_of_captured_graphs() {
    // The first old one lies elsewhere.
    // The first old one lies elsewhere.
    let rounds = |size: &str| {
        let steps = (1..6).map(|i| format!("+{size} +{size} -{} -{} ", 2 * i, 2 * i - 1));
        format!("+{size} +{size} -0 {}flush", steps.collect::<String>())
    };
    let ends = |config: &Config, size: &str, held: &str, kept: &str| {
        let mut allocator = Allocator::new(config, rules(), FREELY);
        let mut blocks: Vec<Option<Id>> = Vec::new();
        let mut before = 0;
        for word in rounds(size).split_whitespace() {
            before = allocator.tally.reserved;
            if let Some(size) = word.strip_prefix('+') {
                blocks.push(Some(allocator.malloc(bytes(size), StreamId(0), 0).unwrap()));
            } else if let Some(number) = word.strip_prefix('-') {
                let block = blocks[number.parse::<usize>().unwrap()].take().unwrap();
                allocator.free(block, false);
            } else {
                allocator.release_all();
            }
        }
        let got = format!("{} {}", before / MIB, allocator.tally.reserved / MIB);
        assert_eq!(got, format!("{held} {kept}"), "{size}");
    };
    for (size, held, kept, held_expandable, kept_expandable) in [
        ("512B", "2", "2", "2", "2"),
        ("1M", "4", "2", "4", "2"),
        ("1M+512", "20", "20", "20", "20"),
        ("10M-512", "40", "20", "40", "40"),
        ("10M+512", "36", "12", "40", "20"),
    ] {
        ends(&default(), size, held, kept);
        ends(&expandable(), size, held_expandable, kept_expandable);
    }
}

/// As PyTorch's tests switch `expandable_segments` between requests.
#[test]
fn the_setting_may_change_between_requests() {
    let (off, on) = (max_split(40), Config { expandable_segments: true, ..max_split(40) });
    let mut allocator = Allocator::new(&off, rules(), limit(120));
    let mut blocks = Vec::new();
    for config in [&off, &on, &off] {
        allocator.config = config;
        blocks.push(allocator.malloc(40 * MIB, StreamId(0), 0).unwrap());
    }
    assert!(allocator.malloc(40 * MIB, StreamId(0), 0).is_err());
    blocks.drain(..).for_each(|block| allocator.free(block, false));
    assert!(allocator.malloc(120 * MIB, StreamId(0), 0).is_ok());
    assert_eq!(allocator.tally.reserved, 120 * MIB);
    assert_eq!(allocator.tally.calls, [3, 2, 1, 1]);

    let collecting = |config| Config { garbage_collection_threshold: 0.5, ..config };
    let (off, on) = (collecting(default()), collecting(expandable()));
    let mut allocator = Allocator::new(&off, rules(), limit(120));
    for config in [&off, &on] {
        allocator.config = config;
        blocks.push(allocator.malloc(40 * MIB, StreamId(0), 0).unwrap());
    }
    blocks.drain(..).for_each(|block| allocator.free(block, false));
    assert!(allocator.malloc(80 * MIB, StreamId(0), 0).is_ok());
    assert_eq!(allocator.tally.reserved, 80 * MIB);
}

#[test]
fn garbage_is_what_was_free_for_longer_than_the_average() {
    let config = Config { garbage_collection_threshold: 0.5, ..default() };
    check(
        &config,
        limit(1000),
        "+200 +300 +100 -0 +20 -3 +20 -4 +20 -5 +20 -6 -1 -2 +50 -7 +350",
        "200 500 600 600 600 600 600 600 600 600 600 600 600 600 600 600 450",
    );
}
