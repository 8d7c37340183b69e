//! `vramscope check` and `vramscope rule`, as they are typed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should fail on the spot"
)]

use std::path::Path;

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;

/// A directory with these files.
fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

/// Runs it there and gives exit status, output and messages.
fn run_with(dir: &Path, args: &[&str], input: &str) -> (i32, String, String) {
    let mut command = cargo_bin_cmd!("vramscope");
    let output =
        command.args(args).current_dir(dir).env_remove("COLUMNS").write_stdin(input).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn run(dir: &Path, args: &[&str]) -> (i32, String, String) {
    run_with(dir, args, "")
}

const NOTHING: (i32, &str, &str) = (0, "nothing found in 2 files\n", "");

fn same(got: &(i32, String, String), want: (i32, &str, &str)) {
    assert_eq!((got.0, got.1.as_str(), got.2.as_str()), want);
}

#[test]
fn the_current_directory_is_checked_where_nothing_is_named() {
    let dir = project(&[("a.py", "x = 1\n"), ("sub/b.py", "y = 2\n"), ("venv/c.py", ""), ("d.txt", "")]);
    same(&run(dir.path(), &["check"]), NOTHING);
    same(&run(dir.path(), &["check", "a.py", "sub", "./a.py", "sub/../sub/b.py"]), NOTHING);
    same(&run(dir.path(), &["check", "--exclude", "sub"]), (0, "nothing found in 1 file\n", ""));
    same(&run(dir.path(), &["check", "venv"]), (0, "nothing found in 1 file\n", ""));
    let (status, out, err) = run(dir.path(), &["check", "--exclude", "*.py"]);
    assert_eq!((status, out.as_str()), (0, "nothing found in 0 files\n"));
    assert_eq!(err, "warning: no Python files and no notebooks were found there\n");
}

#[test]
fn rules_that_are_asked_for_are_shown_whatever_a_project_usually_shows() {
    let source = "import torch\n\nfor batch in loader:\n    step = torch.compile(model)\n    step(batch)\n";
    let dir = project(&[("a.py", source), ("vramscope.toml", "min-severity = \"error\"\n")]);
    let (_, shown, _) = run(dir.path(), &["check", "--select", "LK601", "--format", "concise"]);
    let (_, by_flag, _) =
        run(dir.path(), &["check", "--select", "LK601", "--min-severity", "error", "--format", "concise"]);
    let (_, usual, _) = run(dir.path(), &["check", "--format", "concise"]);
    assert!(shown.contains("a.py:4"), "{shown}");
    assert!(!by_flag.contains("a.py:4"), "{by_flag}");
    assert!(!usual.contains("a.py:4"), "{usual}");
}

#[test]
fn what_git_ignores_is_left_out_unless_wanted() {
    let dir = project(&[("a.py", ""), (".gitignore", "generated/\n"), ("generated/b.py", "")]);
    same(&run(dir.path(), &["check"]), (0, "nothing found in 1 file\n", ""));
    same(&run(dir.path(), &["check", "--no-respect-gitignore"]), NOTHING);
}

#[test]
fn one_bad_file_keeps_no_other_from_being_checked() {
    let dir = project(&[("a.py", "x = 1\n"), ("b.py", "y = 2\n")]);
    std::fs::write(dir.path().join("bad.py"), b"# coding: utf-8\n\xff\xfe\xfd").unwrap();
    let (status, out, err) = run(dir.path(), &["check", "--exit-zero"]);
    assert_eq!((status, err.as_str()), (2, ""), "{out}");
    assert!(out.starts_with("bad.py problem: "), "{out}");
    assert!(out.ends_with("nothing found in 2 files; 1 file could not be read\n"), "{out}");
    let (status, out, err) = run(dir.path(), &["check", "a.py", "nowhere.py"]);
    assert_eq!((status, out.as_str()), (2, "nothing found in 1 file\n"));
    assert!(err.starts_with("error: `nowhere.py` does not exist\nhint: "), "{err}");
    let (status, out, err) = run(dir.path(), &["check", "nowhere", "nobody"]);
    assert_eq!((status, out.as_str(), err.matches("does not exist").count()), (2, "", 2));
    let (status, out, err) = run(dir.path(), &["check", "--diff"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(err.starts_with("warning: bad.py: "), "{err}");
}

#[test]
fn every_format_is_what_it_says() {
    let dir = project(&[("a.py", "x = 1\n")]);
    let (_, json, _) = run(dir.path(), &["check", "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["schema"], &json["files"]), (&"vramscope.check/1".into(), &1.into()));
    // The format may stand before the command where every command knows it.
    assert_eq!(
        run(dir.path(), &["--format", "json", "check"]).1,
        run(dir.path(), &["check", "--format", "json"]).1
    );
    let (_, sarif, _) = run(dir.path(), &["check", "--format", "sarif"]);
    let sarif: Value = serde_json::from_str(&sarif).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(run(dir.path(), &["check", "--format", "github"]).1, "");
    assert!(
        run(dir.path(), &["check", "--format", "junit"]).1.contains("<testsuite name=\"a.py\" tests=\"1\"")
    );
    assert_eq!(run(dir.path(), &["check", "--format", "concise"]).1, "nothing found in 1 file\n");
    assert_eq!(run(dir.path(), &["check", "--statistics"]).1, "nothing found in 1 file\n");
    for args in [
        &["check", "--format", "markdown"][..],
        &["inspect", "--format", "sarif", "a.py"],
        &["check", "--diff", "--format", "json"],
        &["check", "--diff", "--fix"],
        &["check", "--statistics", "--format", "sarif"],
        &["check", "-", "--fix"],
        &["check", "-", "a.py"],
    ] {
        let (status, out, err) = run(dir.path(), args);
        assert_eq!((status, out.as_str(), err.starts_with("error: ")), (2, "", true), "{args:?} {err}");
    }
    let (status, out, _) = run(dir.path(), &["check", "--format", "sarif", "--output", "out.sarif"]);
    assert_eq!((status, out.as_str()), (0, ""));
    assert!(std::fs::read_to_string(dir.path().join("out.sarif")).unwrap().contains("\"2.1.0\""));
    let (status, _, err) = run(dir.path(), &["check", "--output", "a.py", "--force"]);
    assert_eq!(status, 2);
    assert!(err.starts_with("error: `a.py` is read, so it cannot be written to"), "{err}");
    assert_eq!(std::fs::read_to_string(dir.path().join("a.py")).unwrap(), "x = 1\n");
}

#[test]
fn the_standard_input_is_a_file_like_any_other() {
    let dir = project(&[]);
    same(&run_with(dir.path(), &["check", "-"], "x = 1\n"), (0, "nothing found in 1 file\n", ""));
    let args = ["check", "-", "--stdin-filename", "src/a.py", "--format", "junit"];
    assert!(run_with(dir.path(), &args, "x = 1\n").1.contains("<testsuite name=\"src/a.py\""));
    same(&run_with(dir.path(), &["check", "-", "--diff"], "x = 1\n"), (0, "", ""));
}

#[test]
fn settings_of_the_project_are_heeded_and_mistakes_in_them_told() {
    let dir = project(&[
        ("pyproject.toml", "[tool.vramscope]\nexclude = [\"old\"]\n"),
        ("old/a.py", ""),
        ("new/b.py", ""),
        ("broken/vramscope.toml", "ignore = [\n  \"LK9999\",\n]\n"),
    ]);
    same(&run(dir.path(), &["check", "old", "new"]), (0, "nothing found in 1 file\n", ""));
    let (status, out, err) = run(dir.path(), &["check", "broken"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(err.starts_with("error: broken/vramscope.toml:2: there is no rule `LK9999`\nhint: "), "{err}");
    let (status, _, err) = run(dir.path(), &["check", "--select", "LK1,nothing"]);
    assert_eq!(status, 2);
    assert!(err.starts_with("error: there is no rule `nothing`\nhint: `vramscope rule` lists"), "{err}");
}

#[test]
fn files_without_anything_to_fix_are_not_touched() {
    let text = "# -*- coding: latin-1 -*-\r\nx = 1\r\n";
    let dir = project(&[("a.py", text)]);
    let before = dir.path().join("a.py").metadata().unwrap().modified().unwrap();
    same(&run(dir.path(), &["check", "--fix", "--unsafe-fixes"]), (0, "nothing found in 1 file\n", ""));
    same(&run(dir.path(), &["check", "--diff", "--unsafe-fixes"]), (0, "", ""));
    assert_eq!(std::fs::read_to_string(dir.path().join("a.py")).unwrap(), text);
    assert_eq!(dir.path().join("a.py").metadata().unwrap().modified().unwrap(), before);
}

#[test]
fn large_files_are_checked() {
    let dir = project(&[("large.py", &format!("x = 1  # {}\n", "c".repeat(100)).repeat(460_000))]);
    assert!(dir.path().join("large.py").metadata().unwrap().len() > 50_000_000);
    same(&run(dir.path(), &["check"]), (0, "nothing found in 1 file\n", ""));
}

#[test]
fn rules_are_listed_and_explained() {
    let dir = project(&[]);
    let (status, list, err) = run(dir.path(), &["rule"]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(list.contains("LK101") && list.starts_with("code"), "{list}");
    let (_, page, _) = run(dir.path(), &["rule", "lk101"]);
    assert!(page.starts_with("# accumulate-attached-loss (LK101)\n"), "{page}");
    assert_eq!(run(dir.path(), &["rule", "accumulate-attached-loss", "--format", "markdown"]).1, page);
    let (_, json, _) = run(dir.path(), &["rule", "--format", "json", "LK101"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["schema"], &json["rules"][0]["code"]), (&"vramscope.rules/1".into(), &"LK101".into()));
    let (status, _, err) = run(dir.path(), &["rule", "LK000"]);
    assert_eq!(status, 2);
    assert!(err.starts_with("error: there is no rule `LK000`\nhint: "), "{err}");
}

#[test]
fn what_is_added_below_the_last_line_of_a_cell_stays_in_the_cell() {
    let cells = [
        "import torch\nmodel = torch.nn.Linear(1, 1).cuda()\nfor x in loader:\n    out = model(x)\n    print(out.shape)",
        "%%time\nmodel(y)",
    ];
    let cells: Vec<Value> = cells
        .iter()
        .map(|it| serde_json::json!({"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": null, "source": it}))
        .collect();
    let notebook = serde_json::json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4});
    let dir = project(&[("a.ipynb", &notebook.to_string())]);
    let (status, out, err) = run(dir.path(), &["check", "--select", "LK203", "--fix", "--unsafe-fixes"]);
    assert_eq!(status, 0, "{out}{err}");
    let text = std::fs::read_to_string(dir.path().join("a.ipynb")).unwrap();
    let fixed: Value = serde_json::from_str(&text).unwrap();
    let source = |cell: usize| match &fixed["cells"][cell]["source"] {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect::<String>(),
        text => text.as_str().unwrap().to_owned(),
    };
    assert!(source(0).ends_with("    print(out.shape)\nout = None"), "{}", source(0));
    assert_eq!(source(1), "%%time\nmodel(y)");
}

#[test]
fn what_is_found_in_a_file_that_cannot_be_fixed_is_told() {
    let source = "import torch\n\nmodel = torch.nn.Linear(4, 4)\nlosses = []\nfor x in loader:\n    losses.append(model(x).mean())\n";
    let dir = project(&[("a.py", source), ("b.py", source)]);
    let file = dir.path().join("a.py");
    let mut permissions = file.metadata().unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&file, permissions).unwrap();
    let (status, out, _) = run(dir.path(), &["check", "--fix", "--unsafe-fixes", "--format", "json"]);
    assert_eq!(status, 2);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["files"], 2, "{answer}");
    let found: Vec<_> =
        answer["diagnostics"].as_array().unwrap().iter().map(|it| (&it["file"], &it["line"])).collect();
    assert_eq!(found, [(&Value::from("a.py"), &Value::from(6))], "{answer}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), source);
    assert_ne!(std::fs::read_to_string(dir.path().join("b.py")).unwrap(), source);
}

#[test]
fn names_that_are_mentioned_too_often_are_said_to_be_left_out() {
    let many = "    losses.append(model(x))\n".repeat(2100);
    let source =
        format!("import torch\n\nmodel = torch.nn.Linear(4, 4)\nlosses = []\nfor x in loader:\n{many}");
    let dir = project(&[("a.py", &source)]);
    let (_, out, _) = run(dir.path(), &["check"]);
    assert!(out.contains("`losses` is mentioned too often"), "{out}");
}
