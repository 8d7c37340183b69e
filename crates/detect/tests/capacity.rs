//! Whether a recorded run fits a device, on programs written down in the script language of `vramscope_model::script`.

#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use vramscope_detect::{Context, Finding, detect};
use vramscope_model::{Bytes, EventIdx, Symbols, script};
use vramscope_replay::{Lifetimes, Steps, Window};

const MIB: u64 = 1 << 20;

/// What is said of a device with so many MiB, if only the events before one are looked at.
fn findings(text: &str, mib: u64, until: u32) -> Vec<Finding> {
    let mut symbols = Symbols::default();
    let recording = script::recording(&mut symbols, text).unwrap();
    let device = &recording.devices[0];
    let lifetimes = Lifetimes::of(device, None);
    let all = lifetimes.whole();
    let window = Window { to: all.to.min(EventIdx(until)), ..all };
    let steps = Steps::of(device, &[], &symbols, window);
    let capacity = Some(Bytes(mib * MIB));
    let context = Context::new(&recording, device, &symbols, &lifetimes, &steps, window, capacity);
    detect(&context).into_iter().filter(|f| f.code == "over-capacity").collect()
}

/// The kind and the title of what is said, or nothing.
fn check(text: &str, mib: u64, want: &str) {
    let found = findings(text, mib, u32::MAX);
    let said: Vec<String> = found.iter().map(|f| format!("{}: {}", f.kind.name(), f.title)).collect();
    assert_eq!(said.join(", "), want, "{mib} MiB: {found:#?}");
}

/// Two blocks held at once, each in a segment of its own.
const TWO: &str =
    "segment 30MiB\nalloc a 30MiB @train.py:3:<module>\nsegment 30MiB\nalloc b 30MiB @train.py:4:<module>";

#[test]
fn a_run_fits_or_runs_out_at_a_request() {
    check(TWO, 60, "");
    check(TWO, 59, "oom: with 59.0 MiB memory would run out at event 3");
    check(TWO, 29, "oom: with 29.0 MiB memory would run out at event 1");
    let found = &findings(TWO, 59, u32::MAX)[0];
    assert_eq!((found.bytes, found.shortage), (Bytes(30 * MIB), Some(Bytes(30 * MIB))));
    let shortfall = found.shortfall.as_ref().unwrap();
    assert_eq!((shortfall.reserved, shortfall.device_free), (Bytes(30 * MIB), Bytes(29 * MIB)));
    assert!(shortfall.no_setting_helps && found.settings.is_none());
    // What comes later than what is looked at is not told.
    assert_eq!(findings(TWO, 59, 3).len(), 0);
    assert_eq!(findings(TWO, 29, 3).len(), 1);
}

#[test]
fn unused_memory_goes_back_before_a_run_runs_out() {
    let text = "segment 30MiB\nalloc a 30MiB @train.py:3:<module>\nfree a\nsegment 50MiB\nalloc b 50MiB @train.py:4:<module>";
    check(text, 80, "");
    check(text, 79, "note: it fits 79.0 MiB, but only because unused memory need not stay reserved");
    check(text, 50, "note: it fits 50.0 MiB, but only because unused memory need not stay reserved");
    check(text, 49, "oom: with 49.0 MiB memory would run out at event 5");
}

#[test]
fn blocks_from_before_the_recording_count() {
    let text = "old w 40MiB @train.py:3:<module>\nalloc a 30MiB @train.py:4:<module>\nfree a";
    check(text, 70, "");
    check(text, 69, "oom: with 69.0 MiB memory would run out at event 0");
    check(text, 39, "oom: 39.0 MiB are not enough: more was in use from the beginning");
}

#[test]
fn a_request_that_failed_here_may_be_served_there() {
    let text = "segment 30MiB\nalloc a 30MiB @train.py:3:<module>\noom 80MiB @train.py:5:<module>";
    check(text, 30, "");
    check(text, 100, "");
    check(text, 120, "note: 120.0 MiB are enough for the request that failed");
}

#[test]
fn what_cannot_be_replayed_is_judged_by_what_was_held() {
    // One segment is recorded that no request would have obtained.
    let text =
        "segment 90MiB\nalloc a 30MiB @train.py:3:<module>\nfree a\nalloc b 30MiB @train.py:4:<module>";
    check(text, 60, "");
    check(text, 59, "note: it may or may not fit 59.0 MiB");
    check(text, 30, "note: it may or may not fit 30.0 MiB");
    check(text, 29, "oom: with 29.0 MiB memory would run out at event 1 at the latest");
}
