use vramscope_model::{Action, BlockState, Events, Snapshot, StackId, Symbols, TimeUs, script};
use vramscope_view::inspect::{Health, InspectInput, Inspection};

fn inspect_file(path: &str) -> Inspection {
    let mut symbols = Symbols::default();
    let document = crate::read(path, &mut symbols);
    let warnings: Vec<String> = document.warnings.iter().map(ToString::to_string).collect();
    let input = InspectInput {
        path,
        format: &document.format,
        rank: None,
        snapshot: &document.snapshot,
        warnings: &warnings,
    };
    vramscope_view::inspect(&input, &symbols)
}

fn inspect_snapshot(snapshot: &Snapshot, symbols: &Symbols) -> Inspection {
    let input = InspectInput { path: "a", format: "a script", rank: None, snapshot, warnings: &[] };
    vramscope_view::inspect(&input, symbols)
}

/// What is not as it should be, by check and a part of what was seen; no more and no less.
#[track_caller]
fn has(inspection: &Inspection, want: &[(&str, Health, &str)]) {
    let got: Vec<_> = inspection
        .checks
        .iter()
        .filter(|c| matches!(c.health, Limited | Bad))
        .map(|c| (c.name.as_str(), c.health, c.seen.as_str()))
        .collect();
    let same = got.len() == want.len()
        && got.iter().zip(want).all(|(g, w)| g.0 == w.0 && g.1 == w.1 && g.2.contains(w.2));
    assert!(same, "{}: {got:#?}\nwanted {want:#?}", inspection.path);
    assert!(inspection.checks.iter().all(|c| c.health == Health::Good || !c.seen.is_empty()));
    assert!(
        got.iter()
            .all(|(name, ..)| inspection.checks.iter().any(|c| c.name == *name && !c.meaning.is_empty()))
    );
}

fn check(path: &str, want: &[(&str, Health, &str)]) {
    has(&inspect_file(path), want);
}

/// A snapshot of a script, changed.
fn check_script(text: &str, change: impl Fn(&mut Snapshot), want: &[(&str, Health, &str)]) {
    let mut symbols = Symbols::default();
    let mut snapshot = script::snapshot(&mut symbols, text).unwrap();
    change(&mut snapshot);
    has(&inspect_snapshot(&snapshot, &symbols), want);
}

use Health::{Bad, Limited};

#[test]
fn a_full_recording_has_nothing_to_complain_of() {
    for name in
        ["annotations.pickle.zst", "cpp_writer.pickle.zst", "json_full.json.zst", "torch_saved_full.pt"]
    {
        check(&format!("recordings/_variants/{name}"), &[]);
    }
    check("recordings/_variants/two_threads.pickle.zst", &[]);
    check("recordings/_variants/mempool.pickle.zst", &[]);
    check("recordings/_variants/compiled.pickle.zst", &[]);
}

#[test]
fn what_a_mode_of_recording_leaves_out_is_said() {
    check(
        "recordings/_variants/context_none.pickle.zst",
        &[("stacks of allocations", Limited, "none on 123 allocations")],
    );
    check(
        "recordings/_variants/context_state.pickle.zst",
        &[("stacks of allocations", Limited, "none on 123 allocations")],
    );
    check(
        "recordings/_variants/state_only.pickle.zst",
        &[
            ("history", Limited, "enabled=\"state\""),
            ("marks in time", Limited, "ended without having begun"),
        ],
    );
    check(
        "recordings/_variants/stopped.pickle.zst",
        &[("history", Limited, "stopped"), ("stacks of held blocks", Limited, "on 21 of 39")],
    );
    check("recordings/_variants/no_history.pickle", &[("history", Limited, "no history was recorded")]);
    check("recordings/_variants/legacy_list.pickle", &[("history", Limited, "`memory_snapshot()`")]);
    check("recordings/legacy_pt/snapshot_50.pt", &[("history", Limited, "`memory_snapshot()`")]);
    check("recordings/lru_plateau/step10.pickle", &[]);
}

#[test]
fn a_full_ring_buffer_is_seen_by_what_it_lost() {
    check(
        "recordings/_variants/ring_truncated.pickle.zst",
        &[("beginning of the trace", Limited, "25 held blocks (67.1 MiB)")],
    );
}

#[test]
fn older_blocks_and_threads_without_python_are_counted() {
    check(
        "recordings/feature_pyramid/step1.pickle",
        &[
            ("blocks older than the trace", Limited, "10 held blocks, 115.0 KiB or under 1 %"),
            ("stacks of allocations", Limited, "empty on 26 of 71 allocations"),
        ],
    );
    check(
        "recordings/train_loss_list/step20.pickle.zst",
        &[
            ("blocks older than the trace", Limited, "122 held blocks"),
            ("stacks of allocations", Limited, "empty on 2881 of 5125 allocations"),
        ],
    );
}

#[test]
fn older_schemas_lack_times_traces_and_sums() {
    check("older/torch1.13_step12.pickle", &[("history", Limited, "the format has no trace")]);
    check("older/torch1.12_step12.pickle", &[("history", Limited, "`memory_snapshot()`")]);
    check(
        "older/torch2.0_oom.pickle",
        &[
            ("times", Limited, "missing on 355 of 355 events"),
            ("stacks of allocations", Limited, "empty on 60 of 128"),
        ],
    );
    let inspection = inspect_file("older/profiler_categories.pickle");
    let sums = inspection.checks.iter().find(|c| c.name == "stated sizes of segments").unwrap();
    assert_eq!(sums.health, Health::NotApplicable);
    check(
        "older/nightly2024_user_defined.pickle",
        &[("reading", Limited, "`user_defined`"), ("stacks of allocations", Limited, "empty on 60")],
    );
}

#[test]
fn what_is_there_is_mentioned_and_what_is_not_is_not() {
    let note = |path: &str, name: &str| {
        inspect_file(path).checks.into_iter().find(|c| c.name == name).map(|c| c.seen)
    };
    assert_eq!(
        note("recordings/cuda_graph/step30.pickle", "private pools").as_deref(),
        Some("3 pools, 40.0 MiB")
    );
    assert_eq!(
        note("recordings/fragmentation_varlen_expandable/step80.pickle.zst", "expandable segments")
            .as_deref(),
        Some("2 of 2 segments, 756.0 MiB")
    );
    assert_eq!(
        note("recordings/streams_record/step40.pickle.zst", "pending frees").as_deref(),
        Some("1 block, 16.0 MiB in all, given back")
    );
    assert_eq!(
        note("recordings/oom_capped/oom.pickle.zst", "failed requests").as_deref(),
        Some("1 request failed for lack of memory")
    );
    for name in ["private pools", "expandable segments", "pending frees", "failed requests"] {
        assert_eq!(note("recordings/_variants/annotations.pickle.zst", name), None, "{name}");
    }
}

#[test]
fn a_file_is_described() {
    let inspection = inspect_file("recordings/_variants/annotations.pickle.zst");
    assert_eq!(inspection.format, "zstd, pickle protocol 4");
    assert_eq!(inspection.torch, "2.10-2.11");
    assert_eq!(inspection.annotations, (36, 8));
    assert_eq!(inspection.stacks, (28, 215));
    assert_eq!(inspection.frames_by_origin, [3, 25, 0, 187]);
    let device = &inspection.devices[0];
    let events = [("alloc", 123), ("free_requested", 102), ("free_completed", 102), ("segment_alloc", 5)];
    assert_eq!(device.events, events.map(|(name, n)| (name.to_owned(), n)));
    assert_eq!((device.segments, device.blocks), ((3, 2, 0), 27));
    assert_eq!(device.bytes, (73400320, 70129664, 0, 3270656));
    assert_eq!(device.stacks, (332, 0, 0));

    let unknown = inspect_file("older/nightly2024_user_defined.pickle");
    assert!(unknown.devices[0].events.contains(&("user_defined".to_owned(), 24)));
    let graph = inspect_file("recordings/cuda_graph/step30.pickle");
    assert_eq!((graph.devices[0].private_pools, graph.devices[0].streams), (3, 3));
    let host = inspect_file("older/torch2.14_host.pickle");
    assert!(host.host.is_some());
}

#[test]
fn no_file_of_the_corpus_contradicts_itself() {
    let mut files = 0;
    for path in ["recordings", "older"].iter().flat_map(|path| crate::folders(path)).flatten() {
        let inspection = inspect_file(&path);
        assert!(inspection.checks.iter().all(|c| c.health != Bad), "{path}: {:#?}", inspection.checks);
        let mut names: Vec<&str> =
            inspection.checks.iter().map(|c| c.name.as_str()).filter(|n| *n != "reading").collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "{path}: each check speaks once");
        files += 1;
    }
    assert!(files > 90, "only {files} files were found");
}

const STORY: &str = "segment 4KiB
    alloc a 512 @t.py:1:f
    alloc b 512 @t.py:2:f
    alloc c 512 @t.py:3:f
    alloc d 2560 @t.py:4:f
    free b";

#[test]
fn contradictions_are_bad() {
    check_script(STORY, |_| {}, &[]);
    check_script(
        STORY,
        |s| s.devices[0].segments[0].blocks[1].size.0 = 1024,
        &[("blocks tile their segments", Bad, "1 of 1 segment with gaps or overlaps")],
    );
    check_script(
        STORY,
        |s| s.devices[0].segments[0].stated_active.0 += 1,
        &[("stated sizes of segments", Bad, "1 of 1 segment")],
    );
    check_script(
        STORY,
        |s| s.devices[0].segments[0].size.0 += 4096,
        &[("blocks tile their segments", Bad, "1 of 1 segment")],
    );
    // Many blocks freed behind the trace's back.
    check_script(
        STORY,
        |s| {
            let segment = &mut s.devices[0].segments[0];
            for block in &mut segment.blocks {
                block.state = BlockState::Inactive;
            }
            (segment.stated_allocated.0, segment.stated_active.0) = (0, 0);
        },
        &[("trace against segments", Bad, "3 held by the trace only")],
    );
}

#[test]
fn a_few_differences_are_what_separate_locks_allow() {
    check_script(
        STORY,
        |s| {
            let segment = &mut s.devices[0].segments[0];
            segment.blocks[0].state = BlockState::Inactive;
            segment.stated_allocated.0 -= 512;
            segment.stated_active.0 -= 512;
        },
        &[("trace against segments", Limited, "1 held by the trace only")],
    );
}

fn keep(events: &Events, wanted: impl Fn(Action) -> bool) -> Events {
    let mut kept = Events::default();
    events.iter().filter(|e| wanted(e.action)).for_each(|e| kept.push(e));
    kept
}

#[test]
fn skipped_frees_are_noticed() {
    let is_free = |a: Action| matches!(a, Action::FreeRequested | Action::FreeCompleted);
    check_script(
        STORY,
        |s| s.devices[0].events = keep(&s.devices[0].events, |a| !is_free(a)),
        &[("frees are recorded", Limited, "1 block in the trace is no longer held")],
    );
    check_script(
        STORY,
        |s| s.devices[0].events = keep(&s.devices[0].events, |a| a != Action::FreeRequested),
        &[],
    );
}

#[test]
fn blocks_out_of_turn_are_bad() {
    check_script(
        STORY,
        |s| {
            let events = &mut s.devices[0].events;
            let mut again = events.get(1);
            again.time = TimeUs(9_000_000);
            events.push(again);
        },
        &[("allocations and frees alternate", Bad, "1 block allocated at an address that was still held")],
    );
}

#[test]
fn times_that_go_back_are_counted() {
    check_script(
        STORY,
        |s| {
            let events = &mut s.devices[0].events;
            let mut late = events.get(2);
            late.time.0 += 150;
            events.set(2, late);
        },
        &[("times", Limited, "1 event earlier than the one before, by up to 50 µs")],
    );
}

#[test]
fn a_file_that_was_cut_off_is_not_blamed_for_what_is_missing() {
    check_script(
        STORY,
        |s| {
            s.truncated = true;
            s.devices[0].events = s.devices[0].events.slice(0..2);
        },
        &[("reading", Limited, "ends before its data does")],
    );
}

#[test]
fn marks_of_several_threads_cross() {
    check_script(
        "start a\nstart b\nalloc x 512 @t.py:1:f\nend a\nalloc y 512 @t.py:1:f\nend b",
        |_| {},
        &[("marks in time", Limited, "1 region ended while a later one was open")],
    );
}

#[test]
fn only_the_device_in_trouble_is_named() {
    check_script(
        STORY,
        |s| {
            let mut other = s.devices[0].clone();
            other.ordinal = 1;
            other.segments[0].blocks[1].size.0 = 1024;
            s.devices.push(other);
        },
        &[("blocks tile their segments", Bad, "device 1: 1 of 1 segment")],
    );
}

#[test]
fn stacks_that_come_and_go_are_noticed() {
    check_script(
        STORY,
        |s| {
            let events = &mut s.devices[0].events;
            let event = events.get(1);
            events.set(1, vramscope_model::Event { stack: StackId::ABSENT, ..event });
        },
        &[("stacks of allocations", Limited, "missing on 1 of 4 allocations, 25 %")],
    );
}
