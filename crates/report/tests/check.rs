//! What `check` found, in every format.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should fail on the spot")]

use serde_json::Value;
use vramscope_lint as lint;
use vramscope_lint::{Applicability, Checked, Severity, Source, Span, TextRange};
use vramscope_report::text::Layout;
use vramscope_report::{Excerpts, Palette, github, json, junit, sarif, text};
use vramscope_view::check::{Check, FixedFile, rules};
use vramscope_view::{CheckInput, check};

const TRAIN: &str = "\
import torch

losses = []
for batch in loader:
\tloss = model(batch)
\tlosses.append(loss)
\tprint(
\t\t\"<ü & 100%>\",
\t\tloss,
\t)
";

fn range(text: &str, of: &str) -> TextRange {
    let at = text.find(of).unwrap() as u32;
    TextRange::new(at.into(), (at + of.len() as u32).into())
}

fn found(of: &str, severity: Severity, fix: Option<(Applicability, &str)>) -> lint::Diagnostic {
    let place = range(TRAIN, of);
    lint::Diagnostic {
        rule: lint::rules().next().unwrap(),
        severity,
        range: place,
        message: format!("`{}` keeps the graph, 100%, of each step", of.lines().next().unwrap()),
        target: None,
        evidence: vec![
            lint::Evidence {
                text: "`losses` outlives the loop".into(),
                range: Some(range(TRAIN, "losses = []")),
            },
            lint::Evidence { text: "nothing is ever removed from it".into(), range: None },
        ],
        advice: Some("keep `loss.item()` if only the number is wanted".into()),
        fix: fix.map(|(applicability, content)| lint::Fix {
            applicability,
            message: "append the tensor without its graph".into(),
            leaves_data: false,
            edits: vec![lint::Edit {
                range: Span { start: u32::from(place.end()) - 1, end: u32::from(place.end()) - 1 },
                content: content.into(),
            }],
        }),
    }
}

fn one_of_each() -> Check {
    let source = Source::read("src/train, it.py", TRAIN.as_bytes()).unwrap();
    let checked = Checked {
        diagnostics: vec![
            found("losses.append(loss)", Severity::Error, Some((Applicability::Unsafe, ".detach()"))),
            found(
                "print(\n\t\t\"<ü & 100%>\",\n\t\tloss,\n\t)",
                Severity::Warning,
                Some((Applicability::Safe, "\n")),
            ),
            found("import torch", Severity::Info, None),
        ],
        suppressed: 1,
        problems: vec![lint::Problem {
            range: Some(range(TRAIN, "loader")),
            message: "suppresses nothing".into(),
        }],
    };
    let clean = Source::read("clean.py", b"").unwrap();
    let inputs = [
        CheckInput { source: &source, checked: &checked },
        CheckInput { source: &clean, checked: &Checked::default() },
    ];
    let mut check = check(&inputs, &|_, _| true);
    check.add_unreadable("bad\u{1}.py", "not UTF-8 <at> byte 3");
    check
}

fn plain(excerpts: &Excerpts) -> Layout<'_> {
    Layout { palette: Palette::Plain, width: 100, top: 5, verbose: false, excerpts }
}

#[test]
fn as_text() {
    let excerpts = Excerpts::default();
    insta::assert_snapshot!("check_text", text::check::render(&one_of_each(), &plain(&excerpts)));
    insta::assert_snapshot!("check_concise", text::check::concise(&one_of_each(), &plain(&excerpts)));
    insta::assert_snapshot!("check_statistics", text::check::statistics(&one_of_each(), &plain(&excerpts)));
    let coloured = Layout { palette: Palette::Coloured, ..plain(&excerpts) };
    assert!(text::check::render(&one_of_each(), &coloured).contains("\x1b[31merror\x1b[0m"));
}

#[test]
fn nothing_found_is_said_and_so_is_what_was_fixed() {
    let excerpts = Excerpts::default();
    let mut nothing = Check { files: vec!["a.py".into()], suppressed: 2, ..Check::default() };
    assert_eq!(text::check::render(&nothing, &plain(&excerpts)), "nothing found in 1 file; 2 suppressed\n");
    nothing.fixed.push(FixedFile { file: "a.py".into(), rules: vec![("LK101", 3)] });
    assert_eq!(
        text::check::concise(&nothing, &plain(&excerpts)),
        "fixed 3 in 1 file\nnothing left in 1 file; 2 suppressed\n"
    );
}

#[test]
fn long_lines_are_cut_around_the_mark() {
    let line = format!("{}leak(here){}", "x = 1; ".repeat(40), "; y = 2".repeat(40));
    let source = Source::read("wide.py", line.as_bytes()).unwrap();
    let mut one = found("import torch", Severity::Error, None);
    one.range = range(&line, "leak(here)");
    let checked = Checked { diagnostics: vec![one], ..Checked::default() };
    let excerpts = Excerpts::default();
    let shown = check(&[CheckInput { source: &source, checked: &checked }], &|_, _| true);
    let shown = text::check::render(&shown, &plain(&excerpts));
    let lines: Vec<&str> = shown.lines().collect();
    let at = lines[1].chars().position(|c| c == 'l').unwrap();
    assert_eq!(lines[2].chars().position(|c| c == '^'), Some(at), "{shown}");
    assert!(lines[1].chars().count() <= 100 && lines[2].ends_with(&"^".repeat(10)), "{shown}");
}

#[test]
fn as_json() {
    let document: Value = serde_json::from_str(&json::check::render(&one_of_each())).unwrap();
    assert_eq!(document["schema"], "vramscope.check/1");
    assert_eq!((&document["files"], &document["suppressed"]), (&2.into(), &1.into()));
    let first = &document["diagnostics"][0];
    for (field, value) in [("severity", "error"), ("file", "src/train, it.py")] {
        assert_eq!(first[field], value);
    }
    for (field, value) in [("line", 6), ("column", 2), ("end_line", 6), ("end_column", 21)] {
        assert_eq!(first[field], value, "{field}");
    }
    assert_eq!(first["fix"]["applicability"], "unsafe");
    assert_eq!(first["fix"]["edits"][0]["content"], ".detach()");
    assert_eq!(first["evidence"][0]["line"], 3);
    assert_eq!(first["evidence"][1]["line"], Value::Null);
    assert_eq!(document["diagnostics"][2]["fix"], Value::Null);
    assert_eq!(document["problems"][1]["fatal"], true);
    let schemas = json::schemas();
    for (name, text) in [
        ("vramscope.check/1", json::check::render(&one_of_each())),
        ("vramscope.rules/1", json::rules::render(&rules())),
    ] {
        valid(&schemas[name], &text);
    }
}

#[test]
fn sarif_is_what_its_schema_says() {
    // One of its patterns, for languages, has a bracket that strict readers of regular expressions want escaped.
    let schema = include_str!("data/sarif-schema-2.1.0.json").replace("{2}]?$", r"{2}\\]?$");
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let log = sarif::render(&one_of_each(), &rules());
    valid(&schema, &log);
    valid(&schema, &sarif::render(&Check::default(), &[]));
    insta::assert_snapshot!("check_sarif_results", {
        let log: Value = serde_json::from_str(&log).unwrap();
        let run = &log["runs"][0];
        assert_eq!(run["tool"]["driver"]["rules"][0]["id"], run["results"][0]["ruleId"]);
        let results = serde_json::to_string_pretty(&run["results"][0]).unwrap();
        format!("{results}\n{}", serde_json::to_string_pretty(&run["invocations"]).unwrap())
    });
}

fn valid(schema: &Value, text: &str) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let document: Value = serde_json::from_str(text).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn as_annotations() {
    insta::assert_snapshot!("check_github", github::render(&one_of_each()));
}

#[test]
fn as_junit() {
    let document = junit::render(&one_of_each());
    insta::assert_snapshot!("check_junit", document);
    assert!(!document.contains('\u{1}'), "XML knows no control characters");
}
