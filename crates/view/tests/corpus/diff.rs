use vramscope_model::{Snapshot, Symbols, script};
use vramscope_view::diff::{DeviceDiff, Diff, DiffInput, Matching};

fn diff_snapshots(paths: &[&str], snapshots: &[Snapshot], symbols: &Symbols) -> Diff {
    let inputs: Vec<DiffInput<'_>> =
        paths.iter().zip(snapshots).map(|(path, snapshot)| DiffInput { path, snapshot }).collect();
    let diff = vramscope_view::diff(&inputs, symbols);
    for device in diff.parts.iter().flat_map(|p| &p.devices) {
        sums_are_exact(device, paths);
    }
    diff
}

fn diff_files(paths: &[&str]) -> Diff {
    let mut symbols = Symbols::default();
    let snapshots: Vec<Snapshot> =
        paths.iter().map(|path| crate::read(path, &mut symbols).snapshot).collect();
    diff_snapshots(paths, &snapshots, &symbols)
}

fn diff_scripts(scripts: &[&str]) -> Diff {
    let mut symbols = Symbols::default();
    let snapshots: Vec<Snapshot> =
        scripts.iter().map(|text| script::snapshot(&mut symbols, text).unwrap()).collect();
    diff_snapshots(&["a", "b", "c"][..scripts.len()], &snapshots, &symbols)
}

/// Every sum adds up to the byte, whatever was compared.
fn sums_are_exact(device: &DeviceDiff, paths: &[&str]) {
    let (before, after) = device.allocated;
    let groups =
        |of: &dyn Fn(&vramscope_view::diff::GroupDiff) -> u64| -> u64 { device.groups.iter().map(of).sum() };
    assert_eq!(groups(&|g| g.bytes.0), before, "{paths:?}");
    assert_eq!(groups(&|g| g.bytes.1), after, "{paths:?}");
    let changes: i64 = device.groups.iter().map(|g| g.bytes.1 as i64 - g.bytes.0 as i64).sum();
    assert_eq!(changes, after as i64 - before as i64, "{paths:?}");
    for group in device.groups.iter().filter(|g| !g.stacks.is_empty()) {
        let sums = group.stacks.iter().fold((0, 0), |(a, b), stack| (a + stack.1, b + stack.2));
        assert_eq!(sums, group.bytes, "{paths:?} {}", group.label);
    }
    if let (Some(born), Some(died), Some(persisted)) = (device.born, device.died, device.persisted) {
        assert_eq!((died + persisted, born + persisted), (before, after), "{paths:?}");
        for group in &device.groups {
            let (born, died, persisted) = group.born_died_persisted.unwrap();
            assert_eq!((died + persisted, born + persisted), group.bytes, "{paths:?} {}", group.label);
        }
    } else {
        assert!(device.groups.iter().all(|g| g.born_died_persisted.is_none()));
    }
}

/// Born, died and persisted bytes by label, as a reader written in Python finds them.
fn check(diff: &Diff, part: usize, want: &[(&str, (u64, u64, u64))]) {
    let groups = &diff.parts[part].devices[0].groups;
    let mut got: Vec<(&str, (u64, u64, u64))> =
        groups.iter().map(|g| (g.label.as_str(), g.born_died_persisted.unwrap())).collect();
    got.sort_unstable();
    let mut want = want.to_vec();
    want.sort_unstable();
    assert_eq!(got, want);
}

#[test]
fn a_leak_is_born_and_persists() {
    let diff = diff_files(&[
        "recordings/feature_pyramid/step1.pickle",
        "recordings/feature_pyramid/step50.pickle.zst",
        "recordings/feature_pyramid/step100.pickle.zst",
    ]);
    assert_eq!(diff.matching, Matching::SameProcess);
    assert_eq!(diff.parts.len(), 3);
    let steady = [
        ("train.py:34 train_one_step", (0, 0, 235520)),
        ("older than the recording", (0, 0, 117760)),
        ("no Python frame (autograd backward)", (117760, 117760, 0)),
    ];
    let with = |leak| [[("train.py:14 forward", leak)].as_slice(), &steady].concat();
    check(&diff, 0, &with((822083584, 0, 16777216)));
    check(&diff, 1, &with((838860800, 0, 838860800)));
    check(&diff, 2, &with((1660944384, 0, 16777216)));

    let first = &diff.parts[2];
    assert!(first.before.ends_with("step1.pickle") && first.after.ends_with("step100.pickle.zst"));
    let group = &first.devices[0].groups[0];
    let site = group.site.as_ref().unwrap();
    assert_eq!((site.line, site.function.as_str()), (14, "forward"));
    assert_eq!(group.blocks, (4, 400));
    assert_eq!(group.stacks.len(), 1);
    assert!(group.stacks[0].0.iter().any(|f| !f.is_user), "library frames are kept");
}

#[test]
fn the_order_of_the_arguments_does_not_matter_within_one_process() {
    let diff = diff_files(&[
        "recordings/feature_pyramid/step100.pickle.zst",
        "recordings/feature_pyramid/step1.pickle",
    ]);
    assert!(diff.parts[0].before.ends_with("step1.pickle"));
    assert_eq!(diff.parts[0].devices[0].born, Some(1661062144));
    assert!(diff.caveats.iter().any(|c| c.contains("time order")), "{:?}", diff.caveats);
}

#[test]
fn a_full_cache_is_replaced_and_a_filling_one_grows() {
    let diff = diff_files(&[
        "recordings/lru_plateau/step10.pickle",
        "recordings/lru_plateau/step30.pickle.zst",
        "recordings/lru_plateau/step50.pickle.zst",
        "recordings/lru_plateau/step100.pickle.zst",
        "recordings/lru_plateau/step160.pickle.zst",
    ]);
    let (cache, input) = ("train.py:12 positional", "train.py:20 <module>");
    check(&diff, 0, &[(cache, (43540480, 0, 21155840)), (input, (2215936, 2134016, 0))]);
    check(&diff, 1, &[(cache, (46772224, 4198400, 60497920)), (input, (2297856, 2215936, 0))]);
    check(&diff, 3, &[(cache, (116965376, 115245056, 0)), (input, (2420736, 2334720, 0))]);
    assert!(diff.caveats.iter().any(|c| c.contains("no proof of a leak")));
}

#[test]
fn native_frames_name_what_has_no_python_frame() {
    let diff =
        diff_files(&["recordings/gpt_train/step5.pickle.zst", "recordings/gpt_train/step20.pickle.zst"]);
    check(
        &diff,
        0,
        &[
            ("train.py:49 <module>", (0, 0, 221634560)),
            ("older than the recording", (0, 0, 110292992)),
            ("train.py:19 forward", (0, 0, 35651584)),
            ("AddmmBackward0 (C++)", (0, 0, 33554432)),
            ("train.py:34 forward", (16777216, 16777216, 0)),
            ("train.py:43 <module>", (8192, 8192, 0)),
            ("train.py:46 <module>", (512, 512, 0)),
        ],
    );
}

#[test]
fn without_stacks_sizes_tell_what_grows() {
    let diff = diff_files(&[
        "recordings/legacy_pt/snapshot_0.pt",
        "recordings/legacy_pt/snapshot_50.pt",
        "recordings/legacy_pt/snapshot_100.pt",
    ]);
    assert_eq!(diff.matching, Matching::SameProcess);
    assert!(diff.matching_reason.contains("grouped by size"), "{}", diff.matching_reason);
    for part in &diff.parts[..2] {
        let top = &part.devices[0].groups[0];
        assert_eq!(top.label, "512.0 KiB blocks, small pool");
        assert_eq!(top.blocks.1 - top.blocks.0, 50);
        assert_eq!(top.born_died_persisted.unwrap().0, 26214400);
        assert!(part.devices[0].groups[1..].iter().all(|g| g.bytes.0 == g.bytes.1));
    }
    assert!(diff.caveats.iter().any(|c| c.contains("has no trace")), "{:?}", diff.caveats);
}

#[test]
fn different_programs_have_no_stack_in_common() {
    let diff = diff_files(&[
        "recordings/gpt_train/step5.pickle.zst",
        "recordings/fragmentation_varlen/step20.pickle.zst",
    ]);
    assert_eq!(diff.matching, Matching::ByStack);
    assert!(diff.caveats.iter().any(|c| c.contains("different programs")), "{:?}", diff.caveats);
    let places = diff.parts[0].devices[0].groups.iter().filter(|g| g.site.is_some());
    assert!(places.into_iter().all(|g| g.bytes.0 == 0 || g.bytes.1 == 0));
}

#[test]
fn two_runs_of_one_program_in_different_folders_are_matched() {
    let diff = diff_files(&[
        "recordings/fragmentation_varlen/step80.pickle.zst",
        "recordings/fragmentation_varlen_expandable/step80.pickle.zst",
    ]);
    assert_eq!(diff.matching, Matching::ByStack);
    assert!(diff.caveats.iter().any(|c| c.contains("by the end of their paths")), "{:?}", diff.caveats);
    let groups = &diff.parts[0].devices[0].groups;
    assert!(groups.iter().all(|g| g.bytes.0 > 0 && g.bytes.1 > 0));
    assert!(groups.iter().filter_map(|g| g.site.as_ref()).all(|s| s.file.starts_with("/srv/job2/")));
}

#[test]
fn ranks_of_one_job_are_compared_though_their_devices_differ() {
    let diff = diff_files(&[
        "recordings/ddp_one_rank/rank0/step60.pickle.zst",
        "recordings/ddp_one_rank/rank1/step60.pickle.zst",
    ]);
    assert_eq!(diff.matching, Matching::ByStack);
    assert!(diff.matching_reason.contains("ranks"), "{}", diff.matching_reason);
    let [device] = diff.parts[0].devices.as_slice() else { panic!("one pair of devices") };
    assert_eq!(device.groups[0].label, "train.py:18 <module>");
    assert_eq!(device.groups[0].blocks, (5, 64));
    assert!(diff.caveats.iter().any(|c| c.starts_with("device 0 of")), "{:?}", diff.caveats);
}

#[test]
fn runs_of_which_one_has_no_stacks_are_matched_by_size() {
    let diff = diff_files(&[
        "recordings/_variants/context_none.pickle.zst",
        "recordings/_variants/annotations.pickle.zst",
    ]);
    assert_eq!(diff.matching, Matching::BySize);
    assert!(diff.parts[0].devices[0].groups.iter().all(|g| g.bytes.0 == g.bytes.1));
}

#[test]
fn the_same_stacks_with_and_without_native_frames_are_matched() {
    let diff = diff_scripts(&[
        "alloc a 512 @??:0:at::mm(int) < t.py:3:f < t.py:9:main\nalloc b 1KiB @??:0:at::mm(int)",
        "alloc x 2KiB @t.py:3:f < t.py:9:main\nalloc y 4KiB",
    ]);
    let groups = &diff.parts[0].devices[0].groups;
    assert_eq!(groups.iter().map(|g| g.bytes).collect::<Vec<_>>(), [(1024, 4096), (512, 2048)]);
    assert!(diff.caveats.iter().any(|c| c.contains("C++ frames")), "{:?}", diff.caveats);
}

#[test]
fn paths_are_matched_by_their_ends_and_moved_lines_by_function() {
    let diff = diff_scripts(&[
        "alloc a 512 @/home/a/x.py:10:f < /home/a/x.py:30:main\nalloc b 512 @/home/a/x.py:20:g",
        "alloc a 1KiB @/srv/b/x.py:10:f < /srv/b/x.py:30:main\nalloc b 2KiB @/srv/b/x.py:22:g",
    ]);
    let groups = &diff.parts[0].devices[0].groups;
    let got: Vec<_> = groups.iter().map(|g| (g.label.as_str(), g.bytes)).collect();
    assert_eq!(got, [("x.py:22 g", (512, 2048)), ("x.py:10 f", (512, 1024))]);
    assert!(diff.caveats.iter().any(|c| c.contains("/home/a/x.py with /srv/b/x.py")), "{:?}", diff.caveats);
    assert!(diff.caveats.iter().any(|c| c.contains("matched by function")), "{:?}", diff.caveats);
}

#[test]
fn programs_that_share_only_the_name_of_a_file_are_not_matched() {
    let diff = diff_scripts(&[
        "alloc a 512 @/home/a/train.py:10:main\nalloc b 512 @/home/a/train.py:20:main",
        "alloc a 1KiB @/srv/b/train.py:12:main",
    ]);
    let groups = &diff.parts[0].devices[0].groups;
    assert_eq!(groups.iter().map(|g| g.bytes).collect::<Vec<_>>(), [(0, 1024), (512, 0), (512, 0)]);
    assert!(diff.caveats.iter().any(|c| c.contains("different programs")), "{:?}", diff.caveats);

    let diff = diff_scripts(&[
        "alloc a 512 @/home/a/bert/train.py:10:main",
        "alloc a 1KiB @/srv/b/bert/train.py:12:main",
    ]);
    assert_eq!(diff.parts[0].devices[0].groups[0].bytes, (512, 1024));
}

#[test]
fn lines_that_did_not_move_are_not_confused_with_those_that_did() {
    let diff = diff_scripts(&[
        "alloc a 512 @x.py:10:main\nalloc b 512 @x.py:20:main",
        "alloc a 1KiB @x.py:10:main\nalloc b 2KiB @x.py:21:main",
    ]);
    let groups = &diff.parts[0].devices[0].groups;
    let got: Vec<_> = groups.iter().map(|g| (g.label.as_str(), g.bytes)).collect();
    assert_eq!(got, [("x.py:21 main", (512, 2048)), ("x.py:10 main", (512, 1024))]);
}

#[test]
fn what_is_pending_is_not_allocated() {
    let before = "alloc a 512 @t.py:1:f\nalloc b 512 @t.py:2:f";
    let diff = diff_scripts(&[before, &format!("{before}\nrequest a")]);
    let device = &diff.parts[0].devices[0];
    assert_eq!((device.allocated, device.died), ((1024, 512), Some(512)));
    assert!(diff.caveats.iter().any(|c| c.contains("wait for another stream")), "{:?}", diff.caveats);
}

#[test]
fn sums_are_exact_for_every_pair_of_neighbours_in_the_corpus() {
    let mut pairs = 0;
    for folder in ["recordings", "older"].iter().flat_map(|path| crate::folders(path)) {
        for pair in folder.windows(2) {
            let paths: Vec<&str> = pair.iter().map(String::as_str).collect();
            // Each diff checks its sums.
            let diff = diff_files(&paths);
            assert_eq!(diff.parts.len(), 1, "{paths:?}");
            pairs += 1;
        }
    }
    assert!(pairs > 70, "only {pairs} pairs were found");
}
