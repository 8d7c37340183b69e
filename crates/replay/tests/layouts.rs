//! Layouts worked out from the trace, against the states of all snapshots of the corpus; and what is said of free memory
//! over time, against such layouts.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops where it cannot go on, and reads files by itself"
)]

use std::path::{Path, PathBuf};

use vramscope_model::{
    Action, BlockState, Bytes, DeviceRecording, Event, EventIdx, PoolId, PoolKind, Recording, Settings,
    StackId, State, StreamId, Symbols, TimeUs, join, script,
};
use vramscope_replay::{
    Balance, Domain, Failed, Kept, Layout, Lifetimes, Pins, Portions, Steps, Stranding, Window, levels_at,
    rescue, total,
};

/// Every folder with recordings, with the recordings of a process together.
fn recordings(root: &str) -> Vec<(String, Symbols, Recording)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(root);
    let mut folders = vec![root.clone()];
    let mut out = Vec::new();
    while let Some(folder) = folders.pop() {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
        files.sort();
        let name = folder.strip_prefix(&root).unwrap().display().to_string();
        let mut symbols = Symbols::default();
        let mut snapshots = Vec::new();
        let read = |path: &PathBuf, symbols: &mut Symbols| {
            let file = std::fs::File::open(path).unwrap();
            vramscope_formats::read(file, symbols).ok().map(|d| d.snapshot)
        };
        if name == "_variants" || root.ends_with("older") {
            for path in &files {
                let name = format!("{name}/{}", path.file_name().unwrap().to_string_lossy());
                let mut symbols = Symbols::default();
                let snapshot = read(path, &mut symbols);
                out.extend(snapshot.map(|s| (name, symbols, join(vec![s], None))));
            }
            continue;
        }
        for path in &files {
            let name = path.file_name().unwrap().to_string_lossy();
            if name.contains(".pickle") || name.contains(".pt") {
                snapshots.extend(read(path, &mut symbols));
            }
        }
        if !snapshots.is_empty() {
            out.push((name, symbols, join(snapshots, None)));
        }
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}

/// Segments with their blocks in use, pending and free, as lines.
fn lines_of_state(state: &State) -> Vec<String> {
    let mut lines = Vec::new();
    for s in &state.segments {
        lines.push(format!(
            "{:#x} +{} {:?} pool {} stream {}{}",
            s.addr,
            s.size.0,
            s.kind,
            s.pool.0,
            s.stream.0,
            if s.expandable { " expandable" } else { "" }
        ));
        for b in &s.blocks {
            let word = match b.state {
                BlockState::Allocated => "held",
                BlockState::PendingFree => "pending",
                BlockState::Inactive => "free",
            };
            lines.push(format!("  {:#x} +{} {word}", b.addr, b.size.0));
        }
    }
    lines
}

fn lines_of_layout(layout: &Layout) -> Vec<String> {
    let mut lines = Vec::new();
    for s in layout.stretches() {
        lines.push(format!(
            "{:#x} +{} {:?} pool {} stream {}{}",
            s.start,
            s.size(),
            s.domain.kind,
            s.domain.pool.0,
            s.domain.stream.0,
            if s.expandable { " expandable" } else { "" }
        ));
        let mut parts: Vec<(u64, u64, &str)> = layout
            .blocks_in(s)
            .map(|b| (b.addr, b.size.0, if b.pending { "pending" } else { "held" }))
            .chain(layout.gaps_in(s).map(|g| (g.start, g.size(), "free")))
            .collect();
        parts.sort_unstable();
        lines.extend(parts.iter().map(|(addr, size, word)| format!("  {addr:#x} +{size} {word}")));
    }
    lines
}

/// Every device of every recording that has a trace.
fn each_device(check: &mut dyn FnMut(&str, &Symbols, &Recording, &DeviceRecording, &Lifetimes)) {
    for root in ["recordings", "more/recordings", "older"] {
        for (name, symbols, recording) in recordings(root) {
            for device in recording.devices.iter().filter(|d| !d.events.is_empty()) {
                let lifetimes = Lifetimes::of(device, recording.settings.as_ref());
                let name = format!("{root}/{name} cuda:{}", device.ordinal);
                check(&name, &symbols, &recording, device, &lifetimes);
            }
        }
    }
}

/// A few moments spread over a trace.
fn moments(device: &DeviceRecording) -> Vec<EventIdx> {
    let n = device.events.len() as u32;
    (0..=7).map(|i| EventIdx((u64::from(n) * i / 7) as u32)).collect()
}

#[test]
fn layouts_equal_the_states_of_all_snapshots() {
    let (mut compared, mut earlier) = (0, 0);
    each_device(&mut |name, _, _, device, lifetimes| {
        for state in &device.states {
            let Some(at) = state.after else { continue };
            let layout = Layout::at(device, lifetimes, at);
            pretty(&format!("{name} at {}", at.0), &lines_of_layout(&layout), &lines_of_state(state));
            compared += 1;
            earlier += u32::from(at.index() < device.events.len());
        }
    });
    assert!(compared > 460 && earlier > 230, "{compared} compared, {earlier} of them before the end");
}

/// Compares line by line, and shows the first that differ.
fn pretty(name: &str, found: &[String], want: &[String]) {
    let differ: Vec<String> = found
        .iter()
        .zip(want)
        .filter(|(f, w)| f != w)
        .take(3)
        .map(|(f, w)| format!("found {f}, wanted {w}"))
        .collect();
    let (found, want) = (found.len(), want.len());
    assert!(
        differ.is_empty() && found == want,
        "{name}: {found} lines, wanted {want}\n{}",
        differ.join("\n")
    );
}

#[test]
fn a_pass_over_many_moments_shows_the_layout_of_each() {
    each_device(&mut |name, _, _, device, lifetimes| {
        let moments = moments(device);
        let mut seen = Vec::new();
        Layout::visit(device, lifetimes, &moments, |at, layout| {
            let alone = Layout::at(device, lifetimes, at);
            pretty(&format!("{name} at {}", at.0), &lines_of_layout(layout), &lines_of_layout(&alone));
            seen.push(at);
        });
        assert_eq!(seen, moments, "{name}");
    });
}

#[test]
fn what_is_free_adds_up_with_the_curve_at_any_moment() {
    each_device(&mut |name, _, recording, device, lifetimes| {
        // What the trace does not show to be obtained nobody can place.
        if !device.trace_reaches_state() || device.last_state().is_none_or(|s| s.segments.is_empty()) {
            return;
        }
        let portions = Portions::of(recording.settings.as_ref());
        let moments = moments(device);
        let levels = levels_at(device, lifetimes, &moments);
        for (&at, level) in moments.iter().zip(levels) {
            let layout = Layout::at(device, lifetimes, at);
            let sums = total(layout.free(portions).values());
            assert_eq!(sums.reserved, level.reserved, "{name} at {}: reserved", at.0);
            assert_eq!(sums.held, level.allocated, "{name} at {}: allocated", at.0);
            let parts = sums.held + sums.pending + sums.releasable + sums.stranded;
            assert_eq!(parts, sums.reserved, "{name} at {}: parts", at.0);
        }
        let sums = total(Layout::at(device, lifetimes, lifetimes.n_events()).free(portions).values());
        let state = device.last_state().map(|s| Balance::of(s, recording.settings.as_ref())).unwrap();
        assert_eq!((sums.releasable, sums.stranded), (state.releasable, state.stranded), "{name}");
    });
}

/// Bytes × time, moment by moment, from whole layouts.
#[test]
fn bytes_by_time_are_those_of_the_layouts_after_each_event() {
    let mut compared = 0;
    each_device(&mut |name, symbols, recording, device, lifetimes| {
        let n = device.events.len();
        if !(50..=1500).contains(&n) || device.events.time_span().is_none() {
            return;
        }
        let settings = recording.settings.as_ref();
        let portions = Portions::of(settings);
        let steps = Steps::of(device, &recording.annotations, symbols, lifetimes.whole());
        let kept = Kept::by(&steps, lifetimes);
        let window = Window { from: EventIdx(n as u32 / 5), to: EventIdx(n as u32 * 4 / 5) };
        let found = Stranding::of(device, lifetimes, symbols, &kept, settings, window);

        let first = device.events.time(window.from).unwrap().0;
        let seconds = |i: EventIdx| (device.events.time(i).unwrap().0 - first) as f64 / 1e6;
        let all: Vec<EventIdx> = (window.from.0 + 1..window.to.0).map(EventIdx).collect();
        let mut want = [0.0; 6];
        let mut latest = seconds(window.from);
        Layout::visit(device, lifetimes, &all, |at, layout| {
            let now = seconds(at).max(latest);
            let (pins, sums) = (
                Pins::of(layout, lifetimes, symbols, &kept, portions),
                total(layout.free(portions).values()),
            );
            assert_eq!(pins.stranded, sums.stranded, "{name} at {}", at.0);
            assert_eq!(pins.alone, pins.places.iter().map(|p| p.alone).sum(), "{name} at {}", at.0);
            assert!(pins.places.iter().all(|p| p.blocks > 0 && p.segments > 0), "{name} at {}", at.0);
            let parts = [sums.releasable, pins.alone, pins.shared, pins.dense, pins.passing, pins.stranded];
            for (sum, bytes) in want.iter_mut().zip(parts) {
                *sum += bytes.0 as f64 * (now - latest);
            }
            latest = now;
        });
        let found = [found.releasable, found.alone, found.shared, found.dense, found.passing, found.stranded];
        for (f, w) in found.iter().zip(want) {
            assert!((f - w).abs() <= 1e-6 * w.max(1.0), "{name}: {found:?}, wanted {want:?}");
        }
        compared += 1;
    });
    assert!(compared > 50, "only {compared} were compared");
}

#[test]
fn no_free_block_was_large_enough_where_a_request_failed_to_fit() {
    let mut n = 0;
    each_device(&mut |name, symbols, recording, device, lifetimes| {
        let settings = recording.settings.as_ref();
        let portions = Portions::of(settings);
        let steps = Steps::of(device, &recording.annotations, symbols, lifetimes.whole());
        let kept = Kept::by(&steps, lifetimes);
        let found = Stranding::of(device, lifetimes, symbols, &kept, settings, lifetimes.whole());
        for fit in &found.fits {
            let free = Layout::at(device, lifetimes, fit.event).free(portions)[&fit.domain];
            let name = format!("{name} at {}", fit.event.0);
            assert_eq!((free.free(), free.releasable), (fit.free, fit.releasable), "{name}");
            assert_eq!(Some(free.largest), fit.largest, "{name}");
            n += 1;
        }
    });
    assert!(n > 1000, "only {n} failed fits");
}

/// Traces of nonsense: absurd sizes, memory that comes twice, frees of what is not there.
#[test]
fn nonsense_is_followed_without_stumbling() {
    let mut symbols = Symbols::default();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut dice = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    for round in 0..400 {
        let mut recording =
            script::recording(&mut symbols, "old a 4MiB @a.py:1:f\nold b 30MiB @a.py:2:f").unwrap();
        let device = &mut recording.devices[0];
        let base = device.states[0].segments[0].addr;
        for time in 0..120 {
            let sizes = [0, 1, 512, 1 << 20, 2 << 20, 20 << 20, 60 << 20, 1 << 62, u64::MAX];
            device.events.push(Event {
                action: Action::ALL[dice(10) as usize],
                addr: match dice(12) {
                    0 => 0,
                    1 => u64::MAX - dice(3),
                    n => base + n * (dice(40) << 19),
                },
                size: Bytes(sizes[dice(sizes.len() as u64) as usize]),
                time: TimeUs(if dice(9) == 0 { time - 50 } else { time }),
                stream: StreamId(dice(2) as u16),
                pool: PoolId(dice(2) as u16),
                stack: StackId(dice(symbols.n_stacks() as u64) as u32),
            });
        }
        if round % 2 == 0 {
            device.states[0].after = Some(EventIdx(dice(121) as u32));
            device.states[0].segments[0].expandable = round % 4 == 0;
        }
        let device = &recording.devices[0];
        let settings = Settings { expandable_segments: round % 3 == 0, ..Settings::default() };
        let lifetimes = Lifetimes::of(device, Some(&settings));
        let steps = Steps::of(device, &[], &symbols, lifetimes.whole());
        let (kept, portions) = (Kept::by(&steps, &lifetimes), Portions::of(Some(&settings)));
        let window = Window { from: EventIdx(10), to: EventIdx(200) };
        let found = Stranding::of(device, &lifetimes, &symbols, &kept, Some(&settings), window);
        assert!(found.stranded >= 0.0 && found.releasable >= 0.0);
        Layout::visit(device, &lifetimes, &moments(device), |_, layout| {
            for free in layout.free(portions).values() {
                assert!(free.largest <= free.free() && free.free() <= free.reserved);
            }
            let pins = Pins::of(layout, &lifetimes, &symbols, &kept, portions);
            assert_eq!(pins.stranded, pins.alone + pins.shared + pins.dense + pins.passing);
            let domain =
                layout.stretches().next().map_or(
                    Domain { pool: PoolId::DEFAULT, kind: PoolKind::Large, stream: StreamId(0) },
                    |s| s.domain,
                );
            let (request, missing) = (Bytes(40 << 20), Bytes(20 << 20));
            let failed = Failed { domain, request, missing, max_split: None };
            let enough = rescue(layout, portions, &failed, |b| b.id.is_some());
            assert!(enough.is_none_or(|r| r.blocks > 0));
        });
    }
}
