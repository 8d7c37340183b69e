//! What each detector says of small programs, written down in the script language of `vramscope_model::script`.

#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on, and reads files by itself")]

use std::fmt::Write as _;

use vramscope_detect::{Context, Finding, Kind, detect};
use vramscope_model::{Bytes, Recording, Symbols, join, script};
use vramscope_replay::{Lifetimes, Steps};

/// A program: set-up lines, then the lines of each step, between an allocation and its free that make a step visible.
fn program(steps: usize, mut step: impl FnMut(usize, &mut String)) -> String {
    let mut text = String::from("old weights 4MiB @train.py:3:<module>\n");
    for i in 0..steps {
        writeln!(text, "alloc batch{i} 1MiB @train.py:9:<module>").unwrap();
        writeln!(text, "alloc out{i}_ 1MiB @train.py:10:<module>").unwrap();
        step(i, &mut text);
        writeln!(text, "free out{i}_ @train.py:20:<module>").unwrap();
        writeln!(text, "free batch{i} @train.py:20:<module>").unwrap();
    }
    text
}

fn findings(recording: &Recording, symbols: &Symbols) -> Vec<Finding> {
    let device = &recording.devices[0];
    let lifetimes = Lifetimes::of(device, recording.settings.as_ref());
    let steps = Steps::of(device, &recording.annotations, symbols, lifetimes.whole());
    let capacity = Some(Bytes(1 << 30));
    let context = Context::new(recording, device, symbols, &lifetimes, &steps, lifetimes.whole(), capacity);
    // Whether a program fits the capacity has tests of its own.
    detect(&context).into_iter().filter(|f| f.code != "over-capacity").collect()
}

fn run(text: &str) -> (Vec<Finding>, Symbols) {
    let mut symbols = Symbols::default();
    let recording = script::recording(&mut symbols, text).unwrap();
    (findings(&recording, &symbols), symbols)
}

/// Kinds and lines of all findings, in order: "leak :12, oom :30".
fn check(text: &str, want: &str) {
    let (findings, symbols) = run(text);
    let said: Vec<String> = findings
        .iter()
        .map(|f| match f.site {
            Some(site) => format!("{} :{}", f.kind.name(), symbols.get_frame(site).line),
            None => f.kind.name().to_owned(),
        })
        .collect();
    assert_eq!(said.join(", "), want, "{findings:#?}");
}

#[test]
fn what_is_kept_every_step_leaks() {
    let text = program(30, |i, out| writeln!(out, "alloc kept{i} 2MiB @train.py:12:<module>").unwrap());
    check(&text, "leak :12");
    let (findings, _) = run(&text);
    let leak = &findings[0];
    assert_eq!(leak.bytes, Bytes(60 << 20));
    assert_eq!(leak.blocks, 30);
    assert_eq!(leak.block_size, Some(Bytes(2 << 20)));
    assert_eq!(leak.bytes_per_step, Some(f64::from(2 << 20)));
    assert_eq!(leak.blocks_per_step, Some(1.0));
    // 1 GiB less 60 MiB kept and 4 MiB of weights, at 2 MiB a step; at the soonest less what batches take too.
    let (low, high) = leak.steps_to_oom.unwrap();
    assert_eq!(high, (1024 - 64) / 2);
    assert!(low <= high && low > high - 40, "{low}");
    assert!(leak.confidence > 0.85);
}

#[test]
fn rare_leaks_are_leaks() {
    let text = program(200, |i, out| {
        if i % 20 == 7 {
            writeln!(out, "alloc kept{i} 2MiB @train.py:12:<module>").unwrap();
        }
    });
    check(&text, "leak :12");
}

#[test]
fn leaks_that_begin_late_are_leaks() {
    let text = program(100, |i, out| {
        if i >= 50 {
            writeln!(out, "alloc kept{i} 2MiB @train.py:12:<module>").unwrap();
        }
    });
    check(&text, "leak :12");
}

#[test]
fn bursts_once_an_epoch_are_leaks() {
    let text = program(160, |i, out| {
        if i % 20 >= 17 {
            writeln!(out, "alloc kept{i} 2MiB @train.py:12:<module>").unwrap();
        }
    });
    check(&text, "leak :12");
}

#[test]
fn few_births_may_be_a_cache() {
    let text = program(7, |i, out| writeln!(out, "alloc kept{i} 2MiB @train.py:12:<module>").unwrap());
    check(&text, "growing :12");
}

#[test]
fn a_full_cache_is_no_finding() {
    let text = program(120, |i, out| {
        writeln!(out, "alloc entry{i} 2MiB @train.py:12:<module>").unwrap();
        if i >= 40 {
            writeln!(out, "free entry{} @train.py:13:<module>", i - 40).unwrap();
        }
    });
    check(&text, "");
}

#[test]
fn a_cache_that_has_just_filled_up_is_no_finding() {
    let text = program(60, |i, out| {
        writeln!(out, "alloc entry{i} 2MiB @train.py:12:<module>").unwrap();
        if i >= 50 {
            writeln!(out, "free entry{} @train.py:13:<module>", i - 50).unwrap();
        }
    });
    check(&text, "");
}

#[test]
fn set_up_is_no_finding() {
    let text = program(60, |i, out| {
        if i < 4 {
            writeln!(out, "alloc state{i} 2MiB @train.py:12:<module>").unwrap();
        }
    });
    check(&text, "");
}

#[test]
fn a_cache_of_finitely_many_keys_is_no_finding() {
    // Keys come at random, so new ones become rarer and at last there are none.
    let mut seen = Vec::new();
    let mut random = 12345u64;
    let text = program(240, |_, out| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = (random >> 33) % 30;
        if !seen.contains(&key) {
            seen.push(key);
            writeln!(out, "alloc key{key} 1MiB @train.py:12:<module>").unwrap();
        }
    });
    assert_eq!(seen.len(), 30);
    check(&text, "");
}

#[test]
fn a_queue_that_grows_is_growing() {
    let text = program(100, |i, out| {
        writeln!(out, "alloc a{i} 1MiB @train.py:12:<module>").unwrap();
        if i % 2 == 1 {
            writeln!(out, "free a{} @train.py:14:<module>", i / 2).unwrap();
        }
    });
    check(&text, "growing :12");
}

#[test]
fn a_list_that_is_emptied_every_epoch_is_no_finding() {
    // The recording ends within the fifth epoch.
    let text = program(90, |i, out| {
        writeln!(out, "alloc out{i} 1MiB @train.py:12:<module>").unwrap();
        if i % 20 == 19 {
            for j in (i - 19..=i).rev() {
                writeln!(out, "free out{j} @train.py:16:<module>").unwrap();
            }
        }
    });
    check(&text, "");
}

#[test]
fn what_dies_in_bulk_oldest_first_waits_for_the_collector() {
    let text = program(90, |i, out| {
        writeln!(out, "alloc node{i} 1MiB @train.py:12:<module>").unwrap();
        if i % 15 == 14 {
            for j in i - 14..=i {
                writeln!(out, "free node{j} @anywhere.py:{i}:f < train.py:17:<module>").unwrap();
            }
        }
    });
    check(&text, "reference-cycle :12");
    let (findings, _) = run(&text);
    assert_eq!(findings[0].bytes, Bytes(15 << 20));
}

#[test]
fn memory_of_the_backward_thread_is_not_dropped() {
    let text = program(30, |i, out| writeln!(out, "alloc grad{i} 2MiB").unwrap());
    check(&text, "leak");
}

#[test]
fn what_grows_together_is_one_finding() {
    let text = program(30, |i, out| {
        writeln!(out, "alloc act{i} 4MiB @train.py:12:forward").unwrap();
        writeln!(out, "alloc saved{i} 1MiB @train.py:13:forward").unwrap();
        writeln!(out, "alloc loss{i} 4 @train.py:15:<module>").unwrap();
    });
    check(&text, "leak :12");
    let (findings, symbols) = run(&text);
    let lines: Vec<u32> =
        findings[0].companions.iter().map(|c| symbols.get_frame(c.site.unwrap()).line).collect();
    assert_eq!(lines, [13, 15]);
}

#[test]
fn leaks_at_different_times_are_different_findings() {
    let text = program(60, |i, out| {
        writeln!(out, "alloc a{i} 1MiB @train.py:12:<module>").unwrap();
        if i % 5 == 0 {
            writeln!(out, "alloc b{i} 2MiB @train.py:14:<module>").unwrap();
        }
    });
    check(&text, "leak :12, leak :14");
}

#[test]
fn a_block_whose_free_was_requested_is_dead() {
    let text = program(30, |i, out| {
        writeln!(out, "alloc side{i} 2MiB @train.py:12:<module>").unwrap();
        writeln!(out, "request side{i} @train.py:13:<module>").unwrap();
    });
    // That so much waits is worth a note, but it is no leak.
    check(&text, "pending-free :12");
}

#[test]
fn a_failed_request_is_reported_with_what_explains_it() {
    let mut text = program(30, |i, out| writeln!(out, "alloc kept{i} 2MiB @train.py:12:<module>").unwrap());
    text.push_str("oom 2GiB @train.py:30:<module>\n");
    check(&text, "leak :12, oom :30");
    let mut text = program(30, |_, _| {});
    text.push_str("oom 2GiB @train.py:30:<module>\n");
    check(&text, "oom :30");
}

#[test]
fn three_snapshots_without_history_convict_by_size_two_do_not() {
    let states = |counts: &[usize]| -> Vec<Kind> {
        let mut symbols = Symbols::default();
        let snapshots = counts
            .iter()
            .map(|&n| {
                let mut text = String::from("old w 4MiB\nold v 3MiB\n");
                for i in 0..n {
                    writeln!(text, "old kept{i} 512KiB").unwrap();
                }
                script::snapshot(&mut symbols, &text).unwrap()
            })
            .collect();
        findings(&join(snapshots, None), &symbols).iter().map(|f| f.kind).collect()
    };
    assert_eq!(states(&[1, 51, 101]), [Kind::Leak]);
    assert_eq!(states(&[1, 51]), []);
    assert_eq!(states(&[50, 50, 50]), []);
    assert_eq!(states(&[1, 51, 60]), [Kind::Growing]);
    // As a model that is being loaded.
    assert_eq!(states(&[2, 4, 6]), [Kind::Growing]);
    assert_eq!(states(&[1, 51, 51]), []);
}

#[test]
fn one_block_that_is_made_anew_larger_is_growing() {
    let text = program(40, |i, out| {
        writeln!(out, "alloc history{i} {} @train.py:12:<module>", (i + 1) * 65536).unwrap();
        if i > 0 {
            writeln!(out, "free history{} @train.py:12:<module>", i - 1).unwrap();
        }
    });
    check(&text, "growing :12");
    // A working set that follows its inputs does not begin from nothing.
    let text = program(40, |i, out| {
        writeln!(out, "alloc x{i} {} @train.py:12:<module>", (i + 10) * 65536).unwrap();
        if i > 0 {
            writeln!(out, "free x{} @train.py:12:<module>", i - 1).unwrap();
        }
    });
    check(&text, "");
}

#[test]
fn much_memory_that_waits_for_a_stream_is_noted() {
    let text = program(30, |i, out| {
        writeln!(out, "alloc side{i} 64MiB @train.py:12:<module>").unwrap();
        writeln!(out, "request side{i} @train.py:13:<module>").unwrap();
        if i >= 5 {
            writeln!(out, "complete side{}", i - 5).unwrap();
        }
    });
    check(&text, "pending-free :12");
}

#[test]
fn what_a_line_made_once_at_the_start_is_not_part_of_its_leak() {
    let text = program(30, |i, out| {
        if i == 0 {
            writeln!(out, "alloc workspace 32MiB @train.py:12:<module>").unwrap();
        }
        writeln!(out, "alloc kept{i} 1MiB @train.py:12:<module>").unwrap();
    });
    let (findings, _) = run(&text);
    assert_eq!((findings[0].bytes, findings[0].blocks), (Bytes(30 << 20), 30));
    assert_eq!(findings[0].block_size, Some(Bytes(1 << 20)));
}
