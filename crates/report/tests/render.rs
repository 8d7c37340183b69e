//! Every view in every format, as a whole.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should fail on the spot"
)]

mod fixture;

use vramscope_report::text::Layout;
use vramscope_report::{Excerpts, Palette, json, markdown, text};
use vramscope_view::explained::CapacityCheck;
use vramscope_view::holders::HoldersFile;

fn plain(excerpts: &Excerpts) -> Layout<'_> {
    Layout { palette: Palette::Plain, width: 100, top: 5, verbose: false, excerpts }
}

#[test]
fn analysis_as_text() {
    let excerpts = fixture::excerpts();
    let first_screen = text::analysis::render(&fixture::leak(), &plain(&excerpts));
    assert!(first_screen.lines().count() <= 44, "{first_screen}");
    assert!(first_screen.lines().all(|line| line.chars().count() <= 100), "{first_screen}");
    insta::assert_snapshot!("analysis_leak_text", first_screen);
    let verbose = Layout { verbose: true, ..plain(&excerpts) };
    insta::assert_snapshot!("analysis_leak_verbose", text::analysis::render(&fixture::leak(), &verbose));
    insta::assert_snapshot!(
        "analysis_clean_text",
        text::analysis::render(&fixture::clean(), &plain(&excerpts))
    );
}

#[test]
fn a_line_without_callers_is_followed_by_the_library_function_alone() {
    let mut analysis = fixture::leak();
    let excerpts = Excerpts::default();
    analysis.findings[0].stack.truncate(2);
    let shown = text::analysis::render(&analysis, &plain(&excerpts));
    assert!(
        shown.contains("   in     torch.nn.modules.conv._conv_forward (1 library frame folded)\n"),
        "{shown}"
    );
    analysis.findings[0].stack.remove(0);
    let shown = text::analysis::render(&analysis, &plain(&excerpts));
    assert!(!shown.contains("   in ") && !shown.contains("   from "), "{shown}");
}

#[test]
fn colour_changes_nothing_but_colour() {
    let excerpts = fixture::excerpts();
    let coloured = Layout { palette: Palette::Coloured, ..plain(&excerpts) };
    let text = text::analysis::render(&fixture::leak(), &coloured);
    assert!(text.starts_with("\x1b[1m\x1b[31mLEAK\x1b[0m"), "{text:?}");
    let mut stripped = String::new();
    let mut parts = text.split("\x1b[");
    stripped.extend(parts.next());
    stripped.extend(parts.filter_map(|part| part.split_once('m').map(|(_, rest)| rest)));
    let trimmed: Vec<&str> = stripped.lines().map(str::trim_end).collect();
    let plain = text::analysis::render(&fixture::leak(), &plain(&excerpts));
    assert_eq!(trimmed, plain.lines().collect::<Vec<_>>());
}

#[test]
fn the_sums_that_are_shown_add_up() {
    let excerpts = Excerpts::default();
    let shown = text::analysis::render(&fixture::leak(), &plain(&excerpts));
    let bytes = |name: &str| -> u64 {
        let line = shown.lines().find(|line| line.contains(name)).unwrap();
        let cells: Vec<&str> = line.split("  ").filter(|cell| !cell.trim().is_empty()).collect();
        let exact =
            cells.iter().rposition(|cell| cell.ends_with('%')).and_then(|i| cells.get(i - 1)).unwrap();
        exact.trim().replace(',', "").parse().unwrap()
    };
    assert_eq!(
        bytes("reserved from"),
        bytes("─ allocated") + bytes("pending free") + bytes("releasable") + bytes("stranded")
    );
    let parts =
        ["neck/model.py:14 forward  ", "head/model.py:7", "no Python frame", "older than", "rounding up"];
    assert_eq!(bytes("─ allocated"), parts.iter().map(|part| bytes(part)).sum::<u64>());
}

#[test]
fn analysis_as_markdown() {
    let excerpts = fixture::excerpts();
    insta::assert_snapshot!(
        "analysis_leak_markdown",
        markdown::analysis::render(&fixture::leak(), 5, false, &excerpts)
    );
    insta::assert_snapshot!(
        "analysis_leak_markdown_verbose",
        markdown::analysis::render(&fixture::leak(), 5, true, &excerpts)
    );
}

#[test]
fn analysis_as_json() {
    insta::assert_snapshot!("analysis_leak_json", json::analysis::render(&fixture::leak()));
}

#[test]
fn what_explains_a_failed_request_is_shown_in_every_format() {
    let (analysis, excerpts) = (fixture::out_of_memory(), Excerpts::default());
    let findings = |text: &str, from: &str| text.split_once(from).unwrap().1.to_owned();
    let verbose = Layout { verbose: true, ..plain(&excerpts) };
    let shown = text::analysis::render(&analysis, &plain(&excerpts));
    assert!(!shown.contains("when the request failed"), "{shown}");
    insta::assert_snapshot!(
        "explained_verbose",
        findings(&text::analysis::render(&analysis, &verbose), "1  fragmentation")
    );
    insta::assert_snapshot!(
        "explained_markdown_verbose",
        findings(&markdown::analysis::render(&analysis, 5, true, &excerpts), "### 1.")
    );
    let json: serde_json::Value = serde_json::from_str(&json::analysis::render(&analysis)).unwrap();
    insta::assert_snapshot!(
        "explained_json",
        serde_json::to_string_pretty(&[
            &json["findings"][0]["fragmentation"],
            &json["findings"][1]["shortfall"],
            &json["findings"][1]["settings"]
        ])
        .unwrap()
    );
}

#[test]
fn whether_a_device_is_large_enough_is_said_with_the_figures_of_the_device() {
    let check = |fits, recorded_peak: u64, peak_reserved: Option<u64>, give_backs, want: &str| {
        let mut analysis = fixture::clean();
        analysis.devices[0].capacity = Some(CapacityCheck {
            capacity: 1700 << 20,
            told: "1,700 MiB".into(),
            fits,
            recorded_peak: recorded_peak << 20,
            peak_reserved: peak_reserved.map(|mib| mib << 20),
            give_backs,
            event: None,
        });
        let excerpts = Excerpts::default();
        let text = text::analysis::render(&analysis, &Layout { width: 200, ..plain(&excerpts) });
        let room = text.lines().find_map(|line| line.strip_prefix("room    ")).unwrap_or_default();
        assert_eq!(room, want);
        let markdown = markdown::analysis::render(&analysis, 5, false, &excerpts);
        assert_eq!(markdown.contains(&format!("\nRoom: {want}\n")), !want.is_empty(), "{markdown}");
        let json: serde_json::Value = serde_json::from_str(&json::analysis::render(&analysis)).unwrap();
        assert_eq!(json["devices"][0]["capacity"]["fits"], serde_json::json!(fits));
    };
    check(
        Some(true),
        1640,
        Some(1640),
        0,
        "1,700 MiB are enough, with 60.0 MiB to spare; the CUDA context and other processes need room beside them",
    );
    check(
        Some(true),
        1800,
        Some(1690),
        1,
        "1,700 MiB are enough, but only because unused memory goes back to the driver once",
    );
    check(
        Some(true),
        1800,
        Some(1690),
        1200,
        "1,700 MiB are enough, but only because unused memory goes back to the driver 1,200 times",
    );
    check(
        Some(true),
        1800,
        Some(1600),
        0,
        "1,700 MiB are enough, without what was left over from before the recording",
    );
    check(Some(false), 1800, None, 0, "1,700 MiB are not enough");
    check(None, 1800, None, 0, "");
}

#[test]
fn diff_in_every_format() {
    let excerpts = Excerpts::default();
    insta::assert_snapshot!("diff_text", text::diff::render(&fixture::diff(), &plain(&excerpts)));
    insta::assert_snapshot!("diff_markdown", markdown::diff::render(&fixture::diff(), 1));
    insta::assert_snapshot!("diff_json", json::diff::render(&fixture::diff()));
}

#[test]
fn inspection_in_every_format() {
    let excerpts = Excerpts::default();
    let files = [fixture::inspection()];
    insta::assert_snapshot!("inspect_text", text::inspect::render(&files, &plain(&excerpts)));
    insta::assert_snapshot!("inspect_markdown", markdown::inspect::render(&files, false));
    insta::assert_snapshot!("inspect_json", json::inspect::render(&files));
}

#[test]
fn settings_compared_in_every_format() {
    let excerpts = Excerpts::default();
    let narrow = Layout { width: 80, ..plain(&excerpts) };
    let verbose = Layout { verbose: true, ..narrow };
    for (name, answer) in [("lower", fixture::whatif::lower()), ("oom", fixture::whatif::out_of_memory())] {
        let shown = text::whatif::render(&answer, &narrow);
        let more = text::whatif::render(&answer, &verbose);
        assert!(shown.lines().chain(more.lines()).all(|line| line.chars().count() <= 80), "{shown}{more}");
        insta::assert_snapshot!(format!("whatif_{name}_text"), shown);
        insta::assert_snapshot!(format!("whatif_{name}_verbose"), more);
        insta::assert_snapshot!(format!("whatif_{name}_markdown"), markdown::whatif::render(&answer, false));
        insta::assert_snapshot!(format!("whatif_{name}_json"), json::whatif::render(&answer));
    }
}

#[test]
fn nothing_recommended_leaves_nothing_to_paste() {
    let mut answer = fixture::whatif::lower();
    answer.recommended = None;
    let shown = text::whatif::render(&answer, &plain(&Excerpts::default()));
    assert!(!shown.contains("export ") && shown.contains("why     it saves"), "{shown}");
    assert!(!markdown::whatif::render(&answer, false).contains("```"));
    let document: serde_json::Value = serde_json::from_str(&json::whatif::render(&answer)).unwrap();
    assert!(document["recommended"].is_null());
    answer.recommended = Some(0);
    let document: serde_json::Value = serde_json::from_str(&json::whatif::render(&answer)).unwrap();
    assert_eq!(document["recommended"], "", "the defaults are a setting, too");
}

#[test]
fn every_document_has_a_schema_with_words_for_each_field() {
    let schemas = json::schemas();
    let names: Vec<&str> = schemas.keys().copied().collect();
    assert_eq!(
        names,
        [
            "vramscope.analysis/1",
            "vramscope.check/1",
            "vramscope.diff/1",
            "vramscope.holders/1",
            "vramscope.inspect/1",
            "vramscope.rules/1",
            "vramscope.whatif/1"
        ]
    );
    for (name, schema) in schemas {
        let properties = schema["properties"].as_object().unwrap();
        assert!(properties.contains_key("schema") && properties.contains_key("version"), "{name}");
        let document = match name {
            "vramscope.analysis/1" => json::analysis::render(&fixture::leak()),
            "vramscope.check/1" => json::check::render(&vramscope_view::check::Check::default()),
            "vramscope.rules/1" => json::rules::render(&vramscope_view::check::rules()),
            "vramscope.diff/1" => json::diff::render(&fixture::diff()),
            "vramscope.holders/1" => json::holders::render(&HoldersFile::default()),
            "vramscope.whatif/1" => json::whatif::render(&fixture::whatif::lower()),
            _ => json::inspect::render(&[fixture::inspection()]),
        };
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["schema"], name);
        for (field, description) in properties {
            assert!(document.get(field).is_some(), "{name}: {field} is missing");
            assert!(
                description["description"].is_string() || description["$ref"].is_string(),
                "{name}: {field}"
            );
        }
    }
}

#[test]
fn changes_are_from_the_peak_that_the_headline_compares_with() {
    let mut answer = fixture::whatif::lower();
    answer.begun_anew = Some(1496 << 20);
    let shown = text::whatif::render(&answer, &plain(&Excerpts::default()));
    let row = shown.lines().find(|line| line.contains("748.0 MiB")).unwrap();
    assert!(row.contains("-50 %"), "{row}");
    let said = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("change: from 1.5 GiB, the peak of the recording's own setting without"),
        "{shown}"
    );
}

#[test]
fn the_pattern_of_a_finding_is_in_every_format_and_in_the_schema() {
    let mut analysis = fixture::leak();
    analysis.findings[0].pattern = Some(fixture::pattern());
    let document: serde_json::Value = serde_json::from_str(&json::analysis::render(&analysis)).unwrap();
    let schema = &json::schemas()["vramscope.analysis/1"];
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let of_json = serde_json::to_string_pretty(&document["findings"][0]["pattern"]).unwrap();
    insta::assert_snapshot!("pattern_json", of_json);
    let excerpts = Excerpts::default();
    let shown = text::analysis::render(&analysis, &plain(&excerpts));
    let part = |text: &str, from: &str, to: &str| {
        let (_, rest) = text.split_once(from).unwrap();
        format!("{from}{}", rest.split_once(to).unwrap().0)
    };
    insta::assert_snapshot!("pattern_text", part(&shown, "   code", "   why"));
    let shown = markdown::analysis::render(&analysis, 5, false, &excerpts);
    insta::assert_snapshot!("pattern_markdown", part(&shown, "Pattern:", "Why:"));
    if let Some(pattern) = &mut analysis.findings[0].pattern {
        pattern.leaves_data = true;
    }
    let shown = text::analysis::render(&analysis, &plain(&excerpts));
    insta::assert_snapshot!("pattern_of_data_text", part(&shown, "   code", "   why"));
}
