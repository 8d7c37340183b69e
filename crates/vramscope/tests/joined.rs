//! Recordings joined with the source: the pattern of a finding, and `vramscope fix`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should fail on the spot"
)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;

fn corpus(path: &str) -> String {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").canonicalize().unwrap();
    corpus.join(path).display().to_string()
}

fn run(args: &[&str]) -> (i32, String, String) {
    let output = cargo_bin_cmd!("vramscope").args(args).env_remove("COLUMNS").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn analyzed(recording: &str, source: &str) -> Value {
    let args = ["analyze", &corpus(recording), "--source", source, "--format", "json"];
    let (_, out, err) = run(&args);
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}\n{out}\n{err}"))
}

/// The first finding's pattern.
fn pattern(recording: &str, source: &str) -> Value {
    analyzed(recording, source)["findings"][0]["pattern"].clone()
}

/// A directory with the program of a case, changed.
fn program(case: &str, change: impl Fn(String) -> String) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(corpus(&format!("programs/{case}/train.py"))).unwrap();
    let file = dir.path().join("train.py");
    std::fs::write(&file, change(text)).unwrap();
    // As if it had been there before anything was recorded.
    set_modified(&file, SystemTime::UNIX_EPOCH);
    dir
}

fn at(dir: &tempfile::TempDir) -> &str {
    dir.path().to_str().unwrap()
}

#[test]
fn a_pattern_is_tied_by_the_holder_the_line_or_the_stack() {
    for (recording, case, code, line, by, target) in [
        ("recorded/leak", "val_loss_list", "LK102", 13, "holder", "losses"),
        ("recorded/ranks", "ddp_one_rank", "LK102", 23, "holder", "logged"),
        ("recordings/rnn_carry", "rnn_carry", "LK110", 12, "site", "hidden"),
        ("recordings/feature_pyramid", "feature_pyramid", "LK102", 15, "stack", "self.features"),
        ("recordings/val_loss_list", "val_loss_list", "LK102", 13, "stack", "losses"),
    ] {
        let pattern = pattern(recording, &corpus(&format!("programs/{case}")));
        assert_eq!(pattern["code"], code, "{recording} {pattern}");
        assert_eq!(
            (pattern["line"].as_u64(), &pattern["matched_by"], &pattern["target"]),
            (Some(line), &by.into(), &target.into()),
            "{recording}"
        );
        assert!(pattern["file"].as_str().unwrap().ends_with(&format!("{case}/train.py")), "{pattern}");
    }
}

#[test]
fn without_a_tie_there_is_no_pattern() {
    assert_eq!(pattern("recorded/cycle", &corpus("programs/cycle_sawtooth")), Value::Null);
    let none = tempfile::tempdir().unwrap();
    assert_eq!(pattern("recorded/leak", at(&none)), Value::Null, "the source is not there");
    // A pattern elsewhere in the file: the function that ran has none.
    let elsewhere = program("val_loss_list", |text| {
        let quiet = text.replace("    losses.append(loss)", "    pass; pass; pass; pass");
        format!(
            "{quiet}\n\ndef other():\n    kept = []\n    for x in data_loader:\n        kept.append(criterion(model(x), x))\n    return kept\n"
        )
    });
    let (_, checked, _) = run(&["check", at(&elsewhere)]);
    assert!(checked.contains("`kept` keeps"), "{checked}");
    for recording in ["recordings/val_loss_list", "recorded/leak"] {
        assert_eq!(pattern(recording, at(&elsewhere)), Value::Null, "{recording}");
    }
    // A pattern in that function that fills something else than what holds the memory.
    let another = program("val_loss_list", |text| text.replace("losses", "others"));
    assert_eq!(pattern("recorded/leak", at(&another)), Value::Null);
    assert_eq!(pattern("recordings/val_loss_list", at(&another))["matched_by"], "stack");
    // Another version of the file, in which that line is in no function.
    let moved = program("val_loss_list", |text| format!("import os\n\n\n\n\n\n\n\n{text}"));
    assert_eq!(pattern("recordings/val_loss_list", at(&moved)), Value::Null);
    assert_eq!(pattern("recorded/leak", at(&moved))["line"], 21, "the holder is still filled there");
}

#[test]
fn a_global_of_the_script_is_looked_for_in_the_script() {
    let dir = program("val_loss_list", |text| text);
    let text = std::fs::read_to_string(dir.path().join("train.py")).unwrap();
    std::fs::write(dir.path().join("other.py"), text).unwrap();
    let pattern = pattern("recorded/leak", at(&dir));
    assert!(pattern["file"].as_str().unwrap().ends_with("train.py"), "{pattern}");
}

#[test]
fn growing_memory_is_fixed_only_where_the_pattern_fills_its_holder() {
    let text = "import torch\n\nmodel = torch.nn.Linear(4, 4)\nhistory = []\nfor batch in loader:\n    history.append(model(batch))\n";
    for (name, code) in [("train.py", Value::from("LK102")), ("other.py", Value::Null)] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(name), text).unwrap();
        let document = analyzed("recorded/cpu", at(&dir));
        assert_eq!(document["findings"][0]["kind"], "growing");
        assert_eq!(document["findings"][0]["pattern"]["code"], code, "{document}");
        let (status, out, _) = run(&["fix", &corpus("recorded/cpu"), "--source", at(&dir), "--apply"]);
        assert_eq!(status == 0, code.is_null(), "nothing is convicted without a pattern: {out}");
    }
}

#[test]
fn people_see_the_pattern_and_its_diff() {
    let source = corpus("programs/val_loss_list");
    let (_, text, _) = run(&["analyze", &corpus("recorded/leak"), "--source", &source]);
    for part in [
        "(LK102 append-attached-tensor), which fills the holder",
        "   fix    add `.detach()`, which lets go of the graph (safe)\n",
        "     13 -     losses.append(loss)",
        "     13 +     losses.append(loss.detach())",
    ] {
        let joined: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let wanted: String = part.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(&wanted), "{part}\n{text}");
    }
    let (_, markdown, _) =
        run(&["analyze", &corpus("recorded/leak"), "--source", &source, "--format", "markdown"]);
    assert!(markdown.contains("Pattern: `LK102 append-attached-tensor` at `"), "{markdown}");
    assert!(
        markdown.contains("```diff\n--- ") && markdown.contains("\n+    losses.append(loss.detach())"),
        "{markdown}"
    );
    let (_, without, _) = run(&["analyze", &corpus("recorded/leak")]);
    assert!(!without.contains("LK102"), "a snapshot must not choose which files are shown: {without}");
    assert!(without.contains("--source DIR"), "{without}");
}

#[test]
fn json_has_the_fix_as_a_diff_and_says_if_the_growth_would_go_on() {
    let leak = pattern("recorded/leak", &corpus("programs/val_loss_list"));
    assert_eq!((&leak["fix"]["applicability"], &leak["fix"]["leaves_data"]), (&"safe".into(), &false.into()));
    let diff = leak["fix"]["diff"].as_str().unwrap();
    assert!(diff.starts_with("--- /") && diff.contains("\n+    losses.append(loss.detach())"), "{diff}");
    // What piles up here are outputs, which are as large without their graphs: the fix moves them.
    for (recording, case) in
        [("recorded/ranks", "ddp_one_rank"), ("recordings/feature_pyramid", "feature_pyramid")]
    {
        let fix = pattern(recording, &corpus(&format!("programs/{case}")))["fix"].clone();
        assert_eq!((&fix["applicability"], &fix["leaves_data"]), (&"unsafe".into(), &false.into()), "{fix}");
        assert!(fix["diff"].as_str().unwrap().contains(".detach().cpu())"), "{fix}");
    }
}

#[test]
fn fix_shows_the_changes_and_writes_them_only_if_told() {
    let dir = program("val_loss_list", |text| text);
    let file = dir.path().join("train.py");
    let before = std::fs::read_to_string(&file).unwrap();
    let recording = corpus("recorded/leak");
    let (status, out, err) = run(&["fix", &recording, "--source", at(&dir)]);
    assert_eq!((status, err.as_str()), (1, ""), "{out}");
    assert!(out.contains("1 of 1 leak fixed by the changes below; `--apply` writes them"), "{out}");
    assert!(
        out.contains("\n-    losses.append(loss)  # LEAK\n+    losses.append(loss.detach())  # LEAK\n"),
        "{out}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);

    let (status, out, err) = run(&["fix", &recording, "--source", at(&dir), "--apply"]);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("1 of 1 leak fixed; ") && !out.contains("\n+++ "), "{out}");
    let after = before.replace("losses.append(loss)", "losses.append(loss.detach())");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), after);

    let (status, out, _) = run(&["fix", &recording, "--source", at(&dir), "--apply"]);
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("no pattern in the source code is tied to this leak: by hand"), "{out}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), after);
}

#[test]
fn fix_edits_nothing_but_what_is_convicted() {
    let dir = program("val_loss_list", |text| {
        format!(
            "{text}\n\ndef other():\n    kept = []\n    for x in data_loader:\n        kept.append(criterion(model(x), x))\n    return kept\n"
        )
    });
    run(&["fix", &corpus("recorded/leak"), "--source", at(&dir), "--apply", "--unsafe-fixes"]);
    let text = std::fs::read_to_string(dir.path().join("train.py")).unwrap();
    assert!(text.contains("losses.append(loss.detach())"), "{text}");
    assert!(text.contains("kept.append(criterion(model(x), x))\n"), "{text}");
}

#[test]
fn fix_says_what_is_left_to_do() {
    let recording = corpus("recordings/rnn_carry");
    let dir = program("rnn_carry", |text| text);
    let file = dir.path().join("train.py");
    let before = std::fs::read_to_string(&file).unwrap();
    let (status, out, _) = run(&["fix", &recording, "--source", at(&dir), "--apply"]);
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("`--unsafe-fixes`") && out.contains("none of 1 leak fixed"), "{out}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    let (status, out, _) = run(&["fix", &recording, "--source", at(&dir), "--apply", "--unsafe-fixes"]);
    assert_eq!(status, 0, "{out}");
    assert!(std::fs::read_to_string(&file).unwrap().contains("device=device), hidden.detach())"));

    // Outputs are as large without their graphs, so they have to leave the device.
    let of_data =
        ["fix", &corpus("recorded/ranks"), "--source", &corpus("programs/ddp_one_rank"), "--unsafe-fixes"];
    let (status, out, _) = run(&of_data);
    assert_eq!(status, 1, "{out}");
    assert!(out.contains(".append(out.detach().cpu())"), "{out}");
    let clean = ["fix", &corpus("recordings/clean_resnet"), "--source", &corpus("programs/clean_resnet")];
    let (status, out, _) = run(&clean);
    assert_eq!(status, 0);
    assert!(out.contains("no leak is convicted"), "{out}");
}

#[test]
fn what_cannot_be_done_is_said_and_changes_nothing() {
    let dir = program("val_loss_list", |text| text);
    let file = dir.path().join("train.py");
    let before = std::fs::read_to_string(&file).unwrap();
    let recording = corpus("recorded/leak");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
    let (status, out, err) = run(&["fix", &recording, "--source", at(&dir), "--apply"]);
    assert_eq!(status, 2, "{out}");
    assert!(err.contains("may not be written to") && err.contains("hint: "), "{err}");
    assert!(out.contains("none of 1 leak fixed"), "{out}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();

    let (status, _, err) = run(&["fix", &recording, "--source", at(&dir), "--format", "json"]);
    assert_eq!(status, 2);
    assert!(err.contains("hint: `vramscope analyze"), "{err}");
    let output = file.to_str().unwrap();
    let (status, _, err) = run(&["fix", &recording, "--source", at(&dir), "--output", output, "--force"]);
    assert_eq!(status, 2, "{err}");
    let (status, _, err) = run(&["fix", &recording]);
    assert_eq!(status, 2);
    assert!(err.contains("--source <DIR>"), "{err}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);

    // A syntax error elsewhere: the file is not edited.
    let broken = program("val_loss_list", |text| format!("{text}\ndef broken(:\n"));
    let (status, out, _) = run(&["fix", &recording, "--source", at(&broken), "--apply"]);
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("it has syntax errors"), "{out}");
}

#[test]
fn what_no_proof_ties_to_a_leak_is_told_as_such() {
    let (status, out, _) =
        run(&["fix", &corpus("recordings/hook_store"), "--source", &corpus("programs/hook_store")]);
    assert_eq!(status, 1, "{out}");
    let words: String = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(
            "nothing proves that it is this leak, but `vramscope check` warns of train.py:11 LK301"
        ),
        "{out}"
    );
}

/// A directory with a program and recordings of it. Copies of what lies in a repository may be of any age, so their times are set.
fn gradients_off(change: impl Fn(String) -> String) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gradients_off");
    for name in ["off.pickle.gz", "on.pickle.gz", "few.pickle.gz"] {
        std::fs::copy(from.join(name), dir.path().join(name)).unwrap();
    }
    let text = std::fs::read_to_string(from.join("train.py")).unwrap();
    std::fs::write(dir.path().join("train.py"), change(text)).unwrap();
    let now = SystemTime::now();
    for entry in dir.path().read_dir().unwrap() {
        set_modified(&entry.unwrap().path(), now);
    }
    dir
}

fn set_modified(path: &Path, time: SystemTime) {
    std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// What is said to be harmless of a recording beside its source: "LK101 :13".
fn harmless(dir: &tempfile::TempDir, recording: &str) -> String {
    let recording = dir.path().join(recording).display().to_string();
    let (_, out, err) = run(&["analyze", &recording, "--source", at(dir), "--format", "json"]);
    let document: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}\n{out}\n{err}"));
    let told = document["harmless_patterns"].as_array().unwrap();
    let told = told.iter().map(|it| format!("{} :{}", it["code"].as_str().unwrap(), it["line"]));
    told.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_pattern_is_harmless_where_the_recording_proves_it() {
    let as_recorded = gradients_off(|text| text);
    // The other pattern of the file, in line 15, never ran.
    assert_eq!(harmless(&as_recorded, "off.pickle.gz"), "LK101 :13");
    assert_eq!(harmless(&as_recorded, "on.pickle.gz"), "", "with gradients it is the leak");
    assert_eq!(harmless(&as_recorded, "few.pickle.gz"), "", "eight steps prove nothing");
    let check = |change: &dyn Fn(String) -> String, want: &str| {
        assert_eq!(harmless(&gradients_off(change), "off.pickle.gz"), want);
    };
    let instead = |line: &str, text: String| {
        let old = "    total += F.cross_entropy(model(x), y)";
        assert!(text.contains(old), "{text}");
        text.replace(old, line)
    };
    check(&|text| instead("    worst.append(F.cross_entropy(model(x), y))", text), "LK102 :13");
    check(&|text| instead("    total += F.cross_entropy(model(x), y).detach()", text), "");
    check(&|text| instead("    total += F.cross_entropy(model(x), y)  # vramscope: ignore[LK101]", text), "");
    // A pattern at another line than the one that ran.
    check(&|text| instead("    loss = F.cross_entropy(model(x), y); seen = 1\n    total += loss", text), "");
    // Another version of the file, in which that line is in a function.
    check(&|text| text.replace("total, worst", "def f():\n  total, worst").replace("\n    ", "\n      "), "");
}

#[test]
fn harmless_patterns_are_told_with_their_figures_and_left_alone() {
    let dir = gradients_off(|text| text);
    let recording = dir.path().join("off.pickle.gz").display().to_string();
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ").replace(at(&dir), "DIR");
    let (status, text, _) = run(&["analyze", &recording, "--source", at(&dir)]);
    assert_eq!(status, 0, "{text}");
    let why = "363 allocations made by this line in 60 steps, each given back by the end of the next step, but for \
               3 blocks (33.0 MiB) of the first; at most 33.3 MiB held at once";
    let line = "checked and harmless to the GPU here: DIR/train.py:13:5 LK101 accumulate-attached-loss: ";
    assert!(words(text.clone()).contains(&format!("{line}{why}")), "{text}");
    let (_, markdown, _) = run(&["analyze", &recording, "--source", at(&dir), "--format", "markdown"]);
    assert!(
        words(markdown.clone()).contains("- `LK101 accumulate-attached-loss` at `DIR/train.py:13:5`: 363 "),
        "{markdown}"
    );
    let (_, json, _) = run(&["analyze", &recording, "--source", at(&dir), "--format", "json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    let told = &document["harmless_patterns"][0];
    assert_eq!((told["allocations"].as_u64(), told["steps"].as_u64()), (Some(363), Some(60)), "{told}");
    assert_eq!((told["first_step_blocks"].as_u64(), &told["target"]), (Some(3), &"total".into()), "{told}");
    assert_eq!((&told["why"], &told["recorded"]["line"]), (&why.into(), &13.into()), "{told}");
    // Of a part of the recording nothing is told.
    for part in [["--since", "10%"], ["--device", "0"]] {
        let args = ["analyze", &recording, "--source", at(&dir), "--format", "json", part[0], part[1]];
        let (_, json, _) = run(&args);
        let document: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(document["harmless_patterns"], Value::Array(Vec::new()), "{part:?}");
    }

    let (status, text, _) = run(&["fix", &recording, "--source", at(&dir), "--apply", "--unsafe-fixes"]);
    assert_eq!(status, 0, "{text}");
    assert!(
        words(text.clone()).contains(
            "left alone: DIR/train.py:13:5 LK101 accumulate-attached-loss (harmless to the GPU here)"
        ),
        "{text}"
    );
    assert!(std::fs::read_to_string(dir.path().join("train.py")).unwrap().contains("(model(x), y)\n"));
}

#[test]
fn a_source_that_was_changed_since_is_said_to_be() {
    let dir = gradients_off(|text| text);
    let note = "`train.py` was changed after the recording was made: lines may have moved, and what was wrong may be fixed already";
    let on = dir.path().join("on.pickle.gz").display().to_string();
    let said = |command: &str| {
        let (_, out, _) = run(&[command, &on, "--source", at(&dir)]);
        out.split_whitespace().collect::<Vec<_>>().join(" ").contains(note)
    };
    let file = dir.path().join("train.py");
    let now = SystemTime::now();
    for (age, changed) in [(0, false), (5, false), (60, true)] {
        set_modified(&file, now + Duration::from_secs(age));
        assert_eq!((said("analyze"), said("fix")), (changed, changed), "{age} s later");
        assert_eq!(harmless(&dir, "off.pickle.gz"), if changed { "" } else { "LK101 :13" }, "{age} s later");
    }
}

#[test]
fn what_is_fixed_is_not_fixed_again_somewhere_else() {
    let dir = gradients_off(|text| text);
    let hour = SystemTime::now() - Duration::from_hours(1);
    for entry in dir.path().read_dir().unwrap() {
        set_modified(&entry.unwrap().path(), hour);
    }
    let on = dir.path().join("on.pickle.gz").display().to_string();
    let fix = || run(&["fix", &on, "--source", at(&dir), "--apply", "--unsafe-fixes"]).1;
    let text = || std::fs::read_to_string(dir.path().join("train.py")).unwrap();
    assert!(fix().contains("1 of 1 leak fixed"));
    let fixed = text();
    assert!(fixed.contains(".detach()"), "{fixed}");
    let again = fix();
    assert!(again.contains("none of 1 leak fixed"), "{again}");
    assert_eq!(text(), fixed);
}

#[test]
fn a_source_that_is_not_there_is_said_not_to_be() {
    let none = tempfile::tempdir().unwrap();
    let recording = corpus("recorded/leak");
    let (_, out, _) = run(&["fix", &recording, "--source", at(&none)]);
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.contains("val_loss_list/train.py` was not found by `--source`"), "{out}");
}
