//! The built command on real recordings and on bad input.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should fail on the spot"
)]

use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use assert_cmd::Command;
use assert_cmd::cargo::{cargo_bin, cargo_bin_cmd};
use serde_json::Value;

fn vramscope(args: &[&str]) -> Command {
    let mut command = cargo_bin_cmd!("vramscope");
    command.args(args).env_remove("NO_COLOR");
    command
}

fn corpus(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    root.join(path).canonicalize().unwrap().to_str().unwrap().to_owned()
}

/// Runs it and gives exit status, output and messages.
fn run(args: &[&str]) -> (i32, String, String) {
    let output = vramscope(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(args: &[&str]) -> (i32, Value) {
    let (status, out, err) = run(args);
    (status, serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}\n{out}\n{err}")))
}

/// A directory with some files in it.
fn directory(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let paths = files
        .iter()
        .map(|(name, bytes)| {
            let path: PathBuf = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path.to_str().unwrap().to_owned()
        })
        .collect();
    (dir, paths)
}

fn copy_of(path: &str) -> Vec<u8> {
    std::fs::read(corpus(path)).unwrap()
}

#[test]
fn help_says_what_every_command_does() {
    for (name, args) in [
        ("help", &["--help"][..]),
        ("help_analyze", &["analyze", "--help"]),
        ("help_check", &["check", "--help"]),
        ("help_diff", &["diff", "--help"]),
        ("help_fix", &["fix", "--help"]),
        ("help_holders", &["holders", "--help"]),
        ("help_inspect", &["inspect", "--help"]),
        ("help_whatif", &["whatif", "--help"]),
        ("help_lsp", &["lsp", "--help"]),
        ("help_rule", &["rule", "--help"]),
        ("help_run", &["run", "--help"]),
    ] {
        let (status, out, err) = run(args);
        assert_eq!((status, err.as_str()), (0, ""));
        insta::assert_snapshot!(name, out);
    }
}

/// Every sum of DESIGN §4.
fn check_sums(device: &Value) {
    let balance = &device["balance"];
    let n = |name: &str| balance[name].as_u64().unwrap_or_else(|| panic!("{name} in {balance}"));
    assert_eq!(n("reserved"), n("allocated") + n("pending") + n("free"));
    assert_eq!(n("free"), n("releasable") + n("stranded"));
    let sites: u64 =
        balance["sites"].as_array().unwrap().iter().map(|site| site["bytes"].as_u64().unwrap()).sum();
    let asked = balance["requested"].as_u64().unwrap_or_else(|| n("allocated"));
    assert_eq!(asked, sites + n("before_recording"));
    if balance["requested"].is_u64() {
        assert_eq!(n("allocated"), n("requested") + n("rounding"));
    }
}

#[test]
fn a_leak_is_told_in_the_shape_that_is_promised() {
    let (status, document) = json(&["analyze", "--format", "json", &corpus("recordings/feature_pyramid")]);
    assert_eq!(status, 1);
    assert_eq!(document["schema"], "vramscope.analysis/1");
    assert_eq!(document["verdict"], "leak");
    let inputs: Vec<&str> =
        document["inputs"].as_array().unwrap().iter().map(|input| input["path"].as_str().unwrap()).collect();
    let names: Vec<&str> = inputs.iter().map(|path| path.rsplit('/').next().unwrap()).collect();
    assert_eq!(
        names,
        ["step1.pickle", "step50.pickle.zst", "step100.pickle.zst"],
        "in time order, nothing else"
    );
    document["devices"].as_array().unwrap().iter().for_each(check_sums);
    let finding = &document["findings"][0];
    assert_eq!(finding["kind"], "leak");
    assert_eq!(finding["site"]["line"], 14);
    assert!(finding["site"]["file"].as_str().unwrap().ends_with("train.py"));
    for field in [
        "code",
        "severity",
        "confidence",
        "title",
        "device",
        "rank",
        "stack",
        "bytes",
        "blocks",
        "block_size",
        "bytes_per_step",
        "blocks_per_step",
        "steps_to_oom",
        "first_us",
        "last_us",
        "evidence",
        "related",
        "holder",
        "pattern",
        "advice",
    ] {
        assert!(finding.get(field).is_some(), "{field}");
    }
}

#[test]
fn sums_add_up_for_every_kind_of_file() {
    for name in ["no_history.pickle", "legacy_list.pickle", "state_only.pickle.zst", "two_devices.pickle.zst"]
    {
        let (status, document) =
            json(&["analyze", "--format", "json", &corpus(&format!("recordings/_variants/{name}"))]);
        assert!(status < 2, "{name}");
        let devices = document["devices"].as_array().unwrap();
        assert!(!devices.is_empty(), "{name}");
        devices.iter().for_each(check_sums);
    }
}

#[test]
fn ranks_are_told_apart_and_can_be_chosen() {
    let ddp = corpus("recordings/ddp_one_rank");
    let (_, document) = json(&["analyze", "--format", "json", &ddp]);
    let ranks: Vec<u64> = document["devices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|device| device["rank"].as_u64().unwrap())
        .collect();
    assert_eq!(ranks, [0, 1]);
    let (_, one) = json(&["analyze", "--format", "json", "--rank", "1", &ddp]);
    assert!(one["inputs"].as_array().unwrap().iter().all(|input| input["rank"] == 1));
    let (status, _, err) = run(&["analyze", "--rank", "7", &ddp]);
    assert_eq!(status, 2);
    assert!(err.contains("no snapshot is of rank 7") && err.contains("rank 0, 1"), "{err}");
}

#[test]
fn a_clean_run_exits_with_zero_and_is_useful_all_the_same() {
    let (status, out, err) = run(&["analyze", &corpus("recordings/streams_record")]);
    assert_eq!((status, err.as_str()), (0, ""));
    for part in ["CLEAN", "reserved from the driver", "peak", "steps   40", "more    "] {
        assert!(out.contains(part), "{part}:\n{out}");
    }
    assert!(!out.contains('\x1b'), "no colour in a pipe");
}

#[test]
fn source_lines_are_shown_where_the_source_is() {
    let recordings = corpus("recordings/feature_pyramid");
    let (_, out, _) = run(&["analyze", &recordings, "--source", &corpus("programs/feature_pyramid")]);
    assert!(out.contains("14 │     x = layer(x)") && out.contains("← allocated here"), "{out}");
    let (_, out, _) = run(&["analyze", &recordings]);
    assert!(!out.contains("│     x = layer(x)") && out.contains("--source DIR"), "{out}");
    let (status, out, err) = run(&["analyze", &recordings, "--source", "nowhere"]);
    assert_eq!((status, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("`--source nowhere`: `nowhere` does not exist") && err.contains("hint: "), "{err}");
}

#[test]
fn no_arrow_points_at_a_line_that_cannot_be_the_one() {
    let (dir, _) = directory(&[("train.py", "def forward(self):\n    pass\n".repeat(10).as_bytes())]);
    let recordings = corpus("recordings/feature_pyramid");
    let source = dir.path().to_str().unwrap();
    for format in ["text", "markdown"] {
        let (_, out, _) = run(&["analyze", &recordings, "--source", source, "--format", format]);
        assert!(out.contains("pass") && out.contains("seems to have changed since"), "{out}");
        assert!(!out.contains("allocated here\n"), "{out}");
    }
}

#[test]
fn bad_input_is_named_with_the_reason_and_what_to_do() {
    let (dir, paths) = directory(&[
        ("empty.pickle", b""),
        ("notes.txt", b"hello\n"),
        ("page.html", b"<!doctype html><html></html>"),
        ("numbers.json", b"[1, 2, 3]"),
    ]);
    let [empty, text, page, numbers] = paths.as_slice() else { panic!("{paths:?}") };
    let folder = dir.path().to_str().unwrap();
    let missing = format!("{folder}/missing.pickle");
    let pattern = format!("{folder}/*.nothing");
    for (args, wanted) in [
        (&["analyze", empty.as_str()][..], "the file is empty"),
        (&["analyze", text], "it is plain text"),
        (&["inspect", page], "it is a web page"),
        (&["analyze", numbers], "could not be read"),
        (&["analyze", &missing], "does not exist"),
        (&["analyze", &pattern], "matches no file"),
        (&["inspect", folder], "no memory snapshot in any of the 4 files"),
        (&["diff", &missing, text], "does not exist"),
    ] {
        let (status, out, err) = run(args);
        assert_eq!((status, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.contains(wanted), "{args:?}: {err}");
        assert!(err.contains("error: `") || err.contains("error: no memory snapshot"), "{args:?}: {err}");
        assert!(err.contains("hint: "), "{args:?}: {err}");
    }
}

#[test]
fn what_can_be_read_is_looked_at_and_the_rest_is_said() {
    let (_dir, paths) = directory(&[("notes.txt", b"hello\n")]);
    let good = corpus("recordings/streams_record/step40.pickle.zst");
    let (status, out, err) = run(&["analyze", &paths[0], &good]);
    assert_eq!(status, 0, "{err}");
    assert!(out.starts_with("CLEAN"), "{out}");
    assert!(err.contains("notes.txt` could not be read"), "{err}");
    let (status, _, err) = run(&["diff", &paths[0], &good]);
    assert_eq!(status, 2);
    assert!(err.contains("is the only snapshot"), "{err}");
}

#[test]
fn two_runs_are_compared_by_their_ends() {
    let ddp = corpus("recordings/ddp_one_rank");
    let (first, second) = (format!("{ddp}/rank0"), format!("{ddp}/rank1/*"));
    let (status, document) = json(&["diff", "--format", "json", &first, &second]);
    assert_eq!(status, 0);
    let parts = document["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 1);
    for (side, file) in [("before", "rank0/step60.pickle.zst"), ("after", "rank1/step60.pickle.zst")] {
        assert!(parts[0][side].as_str().unwrap().ends_with(file), "{parts:?}");
    }
    let remark = document["caveats"][0].as_str().unwrap();
    assert!(
        remark.contains("stands for 3 snapshots") && remark.ends_with("the last of each is compared"),
        "{remark}"
    );
    let (_, document) = json(&["diff", "--format", "json", &first]);
    assert_eq!(document["parts"].as_array().unwrap().len(), 3, "one run is a series");
    for args in [&["diff", ddp.as_str()][..], &["diff", &first, &ddp]] {
        let (status, out, err) = run(args);
        assert_eq!((status, out.as_str()), (2, ""), "{err}");
        assert!(
            err.contains("stands for snapshots of 2 ranks") && err.contains("hint: name two of them"),
            "{err}"
        );
        assert!(err.contains("rank0/step60.pickle.zst` and `"), "{err}");
    }
}

#[test]
fn the_width_can_be_told() {
    let recording = corpus("recordings/feature_pyramid");
    let widest = |columns: &str| {
        let output = vramscope(&["diff", &recording]).env("COLUMNS", columns).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        // Paths are kept whole, so that they can be copied.
        text.lines().filter(|line| !line.contains('/')).map(|line| line.chars().count()).max().unwrap()
    };
    assert!(widest("90") <= 90 && widest("90") > 75, "{}", widest("90"));
    assert!(widest("120") > 100, "{}", widest("120"));
    assert_eq!(widest("none"), widest("100"));
}

#[test]
fn a_damaged_file_is_read_as_far_as_it_goes() {
    let mut bytes = copy_of("recordings/feature_pyramid/step1.pickle");
    bytes.truncate(12_000);
    let (_dir, paths) = directory(&[("cut.pickle", &bytes)]);
    let (status, document) = json(&["analyze", "--format", "json", &paths[0]]);
    assert!(status < 2);
    assert!(document["inputs"][0]["warnings"][0].as_str().unwrap().contains("cut short"));
    let (_, _, err) = run(&["analyze", &paths[0]]);
    assert!(err.contains("warning: ") && err.contains("cut.pickle: "), "{err}");
    let (_, _, err) = run(&["analyze", "-q", &paths[0]]);
    assert_eq!(err, "");
}

#[test]
fn snapshots_of_different_processes_are_refused_with_the_reason() {
    let (a, b) =
        (corpus("recordings/hook_store/step10.pickle.zst"), corpus("recordings/cuda_graph/step10.pickle"));
    let (status, out, err) = run(&["analyze", &a, &b]);
    assert_eq!((status, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("are of different processes") && err.contains("vramscope diff"), "{err}");
}

#[test]
fn processes_with_a_device_each_are_taken_as_one_job() {
    let (dir, _) = directory(&[
        ("a.pickle.zst", &copy_of("recordings/ddp_one_rank/rank0/step60.pickle.zst")),
        ("b.pickle.zst", &copy_of("recordings/ddp_one_rank/rank1/step60.pickle.zst")),
    ]);
    let (status, out, err) = run(&["analyze", "--format", "json", dir.path().to_str().unwrap()]);
    assert!(status < 2, "{err}");
    assert!(err.contains("note: ") && err.contains("2 processes with a device each"), "{err}");
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["devices"].as_array().unwrap().len(), 2);
}

#[test]
fn a_device_that_is_not_there_is_refused() {
    let (status, _, err) =
        run(&["analyze", "--device", "3", &corpus("recordings/_variants/two_devices.pickle.zst")]);
    assert_eq!(status, 2);
    assert!(err.contains("no snapshot holds device 3") && err.contains("device 0, 1"), "{err}");
}

#[test]
fn no_file_is_overwritten_unless_told() {
    let (_dir, paths) = directory(&[("mine.md", b"mine")]);
    let file = paths[0].as_str();
    let recording = corpus("recordings/cuda_graph/step10.pickle");
    let (status, _, err) = run(&["inspect", &recording, "-o", file]);
    assert_eq!(status, 2);
    assert!(err.contains("is already there") && err.contains("--force"), "{err}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "mine");
    let (status, out, _) = run(&["inspect", &recording, "-o", file, "--force", "--format", "markdown"]);
    assert_eq!((status, out.as_str()), (0, ""));
    assert!(std::fs::read_to_string(file).unwrap().starts_with("## `"));
}

#[test]
fn what_is_read_is_never_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("snapshot.pickle");
    std::fs::copy(corpus("recordings/cuda_graph/step10.pickle"), &file).unwrap();
    let before = std::fs::read(&file).unwrap();
    let (within, of) = (directory.path().to_str().unwrap(), file.to_str().unwrap());
    for command in ["analyze", "diff", "inspect", "whatif"] {
        for input in [of, within] {
            let (status, _, err) = run(&[command, input, "-o", of, "--force"]);
            assert_eq!(status, 2, "{command}");
            assert!(err.contains("is read, so it cannot be written to"), "{command}: {err}");
            assert_eq!(std::fs::read(&file).unwrap(), before, "{command}");
        }
    }
}

#[test]
fn mistakes_in_arguments_exit_with_two() {
    for (args, wanted) in [
        (&["inspect"][..], "required"),
        (&["analyze", "x", "--since", "40"], "write `step:40`, `event:40` or `40s`"),
        (&["analyze", "x", "--capacity", "80 apples"], "is no unit"),
        (&["analyse", "x"], "analyze"),
    ] {
        let (status, _, err) = run(args);
        assert_eq!(status, 2, "{args:?}");
        assert!(err.contains(wanted), "{args:?}: {err}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let mut child = Process::new(cargo_bin("vramscope"))
        .args(["inspect", "--format", "json", &corpus("recordings/feature_pyramid")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn colour_can_be_forced() {
    let (_, out, _) = run(&["analyze", "--color", "always", &corpus("recordings/streams_record")]);
    assert!(out.starts_with("\x1b[1m\x1b[32mCLEAN\x1b[0m"), "{out:?}");
}

#[test]
fn changes_of_places_add_up_to_the_change_of_the_whole() {
    let (status, document) = json(&["diff", "--format", "json", &corpus("recordings/feature_pyramid")]);
    assert_eq!(status, 0);
    assert_eq!(document["matching"], "same-process");
    let parts = document["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 3, "two neighbours, and the first with the last");
    for device in parts.iter().flat_map(|part| part["devices"].as_array().unwrap()) {
        let change = |of: &Value| of["after"].as_i64().unwrap() - of["before"].as_i64().unwrap();
        let groups: i64 =
            device["groups"].as_array().unwrap().iter().map(|group| change(&group["bytes"])).sum();
        assert_eq!(groups, change(&device["allocated"]));
    }
}

#[test]
fn files_are_described_with_their_health() {
    let (status, document) = json(&["inspect", "--format", "json", &corpus("recordings/_variants")]);
    assert_eq!(status, 0, "no file of the corpus contradicts itself");
    let files = document["files"].as_array().unwrap();
    assert!(files.len() > 15, "{}", files.len());
    assert!(files.iter().all(|file| !file["checks"].as_array().unwrap().is_empty()));
}

#[test]
fn recording_is_done_by_python_and_what_is_missing_is_said() {
    let bin = tempfile::tempdir().unwrap();
    let run = |path: &Path| {
        let output =
            vramscope(&["run", "--steps", "5", "train.py", "--lr", "3"]).env("PATH", path).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let (status, _, err) = run(bin.path());
    assert_eq!(status, 2);
    assert!(err.contains("`python3` could not be started"), "{err}");
    let python = |text: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        let path = bin.path().join("python3");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    python("#!/bin/sh\nexit 1\n");
    let (status, _, err) = run(bin.path());
    assert_eq!(status, 2);
    assert!(err.contains("hint: `pip install vramscope`"), "{err}");
    python("#!/bin/sh\n[ \"$1\" = -c ] && exit 0\necho \"$@\"\nexit 7\n");
    assert_eq!(
        run(bin.path()),
        (7, "-m vramscope run --steps 5 train.py --lr 3\n".to_owned(), String::new())
    );
}
