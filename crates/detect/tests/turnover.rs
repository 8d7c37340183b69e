//! Which lines a recording acquits, by small programs in the script language of `vramscope_model::script`.

#![expect(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::fmt::Write as _;

use vramscope_detect::{Context, Turnover, turnover};
use vramscope_model::{Bytes, Symbols, script};
use vramscope_replay::{Lifetimes, Steps};

/// A program: set-up lines, then the lines of each step, between an allocation and its free that make a step visible.
fn program(steps: usize, mut step: impl FnMut(usize, &mut String)) -> String {
    let mut text = String::from("old weights 4MiB\n");
    for i in 0..steps {
        writeln!(text, "alloc batch{i} 1MiB @train.py:9:<module>").unwrap();
        writeln!(text, "alloc out{i}_ 1MiB @train.py:10:<module>").unwrap();
        step(i, &mut text);
        writeln!(text, "free out{i}_ @train.py:20:<module>").unwrap();
        writeln!(text, "free batch{i} @train.py:20:<module>").unwrap();
    }
    text
}

fn lines(text: &str) -> Option<Vec<(u32, Turnover)>> {
    let mut symbols = Symbols::default();
    let recording = script::recording(&mut symbols, text).unwrap();
    let device = &recording.devices[0];
    let lifetimes = Lifetimes::of(device, recording.settings.as_ref());
    let steps = Steps::of(device, &recording.annotations, &symbols, lifetimes.whole());
    let context = Context::new(&recording, device, &symbols, &lifetimes, &steps, lifetimes.whole(), None);
    let lines = turnover(&context)?;
    Some(lines.into_iter().map(|it| (symbols.get_frame(it.frame).line, it)).collect())
}

/// The lines that are acquitted: ":9 :10"; "nothing" where the recording cannot acquit.
fn check(text: &str, want: &str) {
    let Some(mut lines) = lines(text) else {
        assert_eq!("nothing", want);
        return;
    };
    lines.sort_by_key(|(line, _)| *line);
    let settled: Vec<String> =
        lines.iter().filter(|(_, it)| it.is_settled).map(|(line, _)| format!(":{line}")).collect();
    assert_eq!(settled.join(" "), want, "{lines:#?}");
}

#[test]
fn what_goes_with_its_step_is_acquitted_with_its_figures() {
    let text = program(40, |i, out| {
        writeln!(out, "alloc loss{i} 2MiB @train.py:12:<module>").unwrap();
        if i > 0 {
            writeln!(out, "free loss{} @train.py:12:<module>", i - 1).unwrap();
        }
    });
    check(&text, ":9 :10 :12");
    let found = lines(&text).unwrap();
    let (_, loss) = found.iter().find(|(line, _)| *line == 12).unwrap();
    assert_eq!((loss.allocations, loss.steps, loss.most_held), (40, 40, Bytes(4 << 20)));
    assert_eq!((loss.from_first_step, loss.from_first_step_bytes), (0, Bytes::ZERO));
}

#[test]
fn what_the_first_step_makes_may_stay() {
    let text = program(40, |i, out| {
        writeln!(out, "alloc loss{i} 2MiB @train.py:12:<module>").unwrap();
        writeln!(out, "free loss{i} @train.py:13:<module>").unwrap();
        if i == 0 {
            writeln!(out, "alloc workspace 8MiB @train.py:12:<module>").unwrap();
        }
    });
    check(&text, ":9 :10 :12");
    let found = lines(&text).unwrap();
    let (_, loss) = found.iter().find(|(line, _)| *line == 12).unwrap();
    assert_eq!((loss.from_first_step, loss.from_first_step_bytes), (1, Bytes(8 << 20)));
}

#[test]
fn nothing_is_acquitted_where_anything_is_kept() {
    // A running total whose own block goes at once, and whose graph stays.
    let total = |keeps: fn(usize) -> bool, frees: fn(usize) -> Option<usize>| {
        program(60, move |i, out| {
            writeln!(out, "alloc total{i} 512 @train.py:14:<module>").unwrap();
            if keeps(i) {
                writeln!(out, "alloc graph{i} 512 @train.py:12:<module>").unwrap();
            }
            writeln!(out, "free total{i} @train.py:15:<module>").unwrap();
            if let Some(j) = frees(i) {
                writeln!(out, "free graph{j} @train.py:16:<module>").unwrap();
            }
        })
    };
    check(&total(|_| false, |_| None), ":9 :10 :14");
    check(&total(|_| true, |_| None), "nothing");
    // In a few of the steps only.
    check(&total(|i| i % 20 == 7, |_| None), "nothing");
    // Twice in all.
    check(&total(|i| i == 20 || i == 45, |_| None), "nothing");
    // For three steps at a time, as a bounded list does.
    check(&total(|_| true, |i| i.checked_sub(3)), "nothing");
    // For one step more: the loss of the step before.
    check(&total(|_| true, |i| i.checked_sub(1)), ":9 :10 :12 :14");
}

#[test]
fn what_is_kept_from_another_line_each_time_acquits_nothing() {
    let text = program(60, |i, out| {
        writeln!(out, "alloc kept{i} {}KiB @gen_{i}.py:1:<module>", 64 + i).unwrap();
    });
    check(&text, "nothing");
}

#[test]
fn what_is_kept_until_the_loop_has_ended_is_not_acquitted() {
    let mut text = program(40, |i, out| writeln!(out, "alloc kept{i} 1MiB @train.py:12:<module>").unwrap());
    for i in 0..40 {
        writeln!(text, "free kept{i} @train.py:30:<module>").unwrap();
    }
    check(&text, "nothing");
}

#[test]
fn a_line_that_runs_more_than_once_a_step_is_not_acquitted() {
    // An evaluation within the step: its graphs go when it ends, all at once.
    let text = program(40, |i, out| {
        for j in 0..4 {
            writeln!(out, "alloc val{i}_{j} 1MiB @train.py:12:evaluate < train.py:18:<module>").unwrap();
        }
        for j in 0..4 {
            writeln!(out, "free val{i}_{j} @train.py:18:<module>").unwrap();
        }
    });
    check(&text, ":9 :10");
}

#[test]
fn a_line_that_ran_in_a_few_steps_is_not_acquitted() {
    let text = program(40, |i, out| {
        if i % 10 == 3 {
            writeln!(out, "alloc log{i} 1MiB @train.py:12:<module>").unwrap();
            writeln!(out, "free log{i} @train.py:13:<module>").unwrap();
        }
    });
    check(&text, ":9 :10");
}

#[test]
fn a_recording_that_is_not_whole_acquits_nothing() {
    let text = program(40, |_, _| {});
    check(&text, ":9 :10");
    check(&program(20, |_, _| {}), "nothing");
    // Something from before the recording went.
    check(&format!("{text}free weights\n"), "nothing");
    // A request failed.
    check(&format!("{text}oom 9GiB @train.py:10:<module>\n"), "nothing");
    // Without stacks there are no lines.
    let bare: Vec<&str> = text.lines().map(|line| line.split(" @").next().unwrap()).collect();
    check(&bare.join("\n"), "");
}
