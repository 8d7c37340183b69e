//! What must hold for the repository as a whole. Each failure says what to do.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests read files and fail loudly"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use vramscope_dev::generate;

fn root() -> PathBuf {
    generate::root().canonicalize().unwrap()
}

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// All files below a folder of the repository with one of these endings, build output aside.
fn files(folder: &str, endings: &[&str]) -> Vec<PathBuf> {
    let (mut folders, mut found) = (vec![root().join(folder)], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && !matches!(name, "target" | ".git" | "node_modules") {
                folders.push(path);
            } else if endings.iter().any(|e| name.ends_with(e)) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "nothing in {folder}");
    found
}

#[test]
fn generated_documents_are_up_to_date() {
    let stale: Vec<String> = generate::stale().unwrap().iter().map(generate::Stale::difference).collect();
    assert!(stale.is_empty(), "{}", stale.join("\n\n"));
}

#[test]
fn generated_documents_say_something() {
    let documents: BTreeMap<String, String> =
        generate::documents().unwrap().into_iter().map(|d| (d.path, d.text)).collect();
    let is_rule = |path: &&str| path.starts_with("docs/rules/LK");
    let paths: Vec<&str> = documents.keys().map(String::as_str).filter(|path| !is_rule(path)).collect();
    assert_eq!(
        paths,
        [
            "README.md",
            "docs/allocator-settings.md",
            "docs/cli.md",
            "docs/detectors.md",
            "docs/holders.md",
            "docs/rules/README.md",
            "docs/schema/analysis.json",
            "docs/schema/check.json",
            "docs/schema/diff.json",
            "docs/schema/holders.json",
            "docs/schema/inspect.json",
            "docs/schema/rules.json",
            "docs/schema/whatif.json"
        ]
    );
    for word in ["## `vramscope analyze`", "`--since <MOMENT>`", "  - `markdown`", "Exit status"] {
        assert!(documents["docs/cli.md"].contains(word), "{word} is not in docs/cli.md");
    }
    assert!(documents["docs/detectors.md"].contains("## survivors-by-birth\n\n### What it finds"));
    assert!(
        documents["docs/allocator-settings.md"]
            .contains("| `fragmentation_varlen` | `expandable_segments:True` |")
    );
    assert!(documents["docs/schema/analysis.json"].contains("\"bytes_per_step\""));
}

#[test]
fn each_rule_has_a_page_and_no_page_is_left_of_rules_that_are_gone() {
    let mut pages: Vec<String> = files("docs/rules", &[".md"])
        .iter()
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "README")
        .collect();
    pages.sort();
    let codes: Vec<&str> = vramscope_lint::rules().map(|rule| rule.code).collect();
    assert_eq!(pages, codes, "left: docs/rules; right: the rules, in the order of their codes");
    let index = text("docs/rules/README.md");
    for rule in vramscope_lint::rules() {
        assert!(index.contains(&format!("[{0}]({0}.md) | {1} |", rule.code, rule.name)), "{}", rule.code);
    }
}

#[test]
fn crates_depend_on_what_the_table_says() {
    let map = text("ARCHITECTURE.md");
    let (_, rest) = map.split_once("<!-- crates: begin -->").unwrap();
    let (table, _) = rest.split_once("<!-- crates: end -->").unwrap();
    let words = |cell: &str| {
        cell.split(',').map(|w| w.trim().to_owned()).filter(|w| w != "–").collect::<BTreeSet<String>>()
    };
    let stated: BTreeMap<String, BTreeSet<String>> = table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            (cells[0].trim_matches('`').to_owned(), words(cells[2]))
        })
        .collect();

    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let short = |name: &str| match name {
        "vramscope" => Some(name.to_owned()),
        _ => name.strip_prefix("vramscope-").map(str::to_owned),
    };
    let found: BTreeMap<String, BTreeSet<String>> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            // Those for tests, benchmarks and build scripts have a kind.
            let used = package["dependencies"].as_array().unwrap().iter().filter(|d| d["kind"].is_null());
            let names = used.filter_map(|d| short(d["name"].as_str().unwrap())).collect();
            (short(package["name"].as_str().unwrap()).unwrap(), names)
        })
        .collect();
    assert_eq!(found, stated, "left: as it is; right: the table of crates in ARCHITECTURE.md");
}

#[test]
fn modules_are_short() {
    const MOST: usize = 600;
    for path in files("crates", &[".rs"]) {
        let source = std::fs::read_to_string(&path).unwrap();
        let n = source.split("#[cfg(test)]\nmod tests {").next().unwrap().lines().count();
        assert!(n <= MOST, "{} has {n} lines without its tests; split it by its ideas", path.display());
    }
}

#[test]
fn modules_are_named_by_what_they_are_about() {
    for path in files("crates", &[".rs"]) {
        for part in path.strip_prefix(root()).unwrap() {
            let name = Path::new(part).file_stem().unwrap().to_str().unwrap();
            let is_vague = ["util", "utils", "common", "helper", "helpers", "misc", "shared"].contains(&name);
            assert!(!is_vague, "{}: `{name}` says nothing of what is in it", path.display());
        }
    }
}

#[test]
fn every_crate_takes_part_in_the_lints() {
    for path in files("crates", &["Cargo.toml"]) {
        let manifest = std::fs::read_to_string(&path).unwrap();
        for line in ["[lints]\nworkspace = true", "edition.workspace = true", "license.workspace = true"] {
            assert!(manifest.contains(line), "{} lacks `{line}`", path.display());
        }
    }
}

#[test]
fn detectors_are_sorted_and_documented() {
    let codes: Vec<&str> = vramscope_detect::DETECTORS.iter().map(|d| d.code).collect();
    assert!(codes.is_sorted_by(|a, b| a < b), "DETECTORS must be sorted by code, each there once: {codes:?}");
    for detector in vramscope_detect::DETECTORS {
        let headings: Vec<&str> = detector.doc.lines().filter(|line| line.starts_with('#')).collect();
        let wanted = ["## What it finds", "## Why it matters", "## How it decides", "## What to do"];
        assert_eq!(headings, wanted, "headings of {}", detector.code);
        assert!(!detector.summary.is_empty() && !detector.summary.ends_with('.'), "{}", detector.summary);
        let is_kebab = detector.code.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        assert!(is_kebab, "`{}` is not written in-kebab-case", detector.code);
        let file = format!("crates/detect/src/{}.rs", detector.code.replace('-', "_"));
        assert!(root().join(&file).exists(), "detector `{}` should be in {file}", detector.code);
    }
}

#[test]
fn formats_are_told_apart_by_name() {
    let names: Vec<&str> = vramscope_formats::FORMATS.iter().map(|f| f.name).collect();
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
}

#[test]
fn links_in_documents_lead_somewhere() {
    for path in files("", &[".md"]) {
        let source = std::fs::read_to_string(&path).unwrap();
        // What stands between fences is code, where `](` links nothing.
        let prose: String = source.split("```").step_by(2).collect();
        for target in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = target.split('#').next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let file = path.parent().unwrap().join(target);
            assert!(file.exists(), "{} links to {target}, which is not there", path.display());
        }
    }
}

#[test]
fn the_readme_names_recordings_that_are_there() {
    let readme = text("README.md");
    let paths: Vec<&str> = readme
        .split(|c: char| c.is_whitespace() || "`()".contains(c))
        .filter(|w| w.starts_with("corpus/"))
        .collect();
    assert!(paths.contains(&"corpus/recordings/feature_pyramid"), "{paths:?}");
    for path in paths {
        assert!(root().join(path).exists(), "the README names {path}, which is not there");
    }
}

#[test]
fn the_simulators_modules_are_in_the_map() {
    let map = text("ARCHITECTURE.md");
    for path in files("crates/replay/src/allocator", &[".rs"]) {
        let folder = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        // Below are parts of modules that are there.
        if folder == "allocator" && name != "mod" {
            assert!(map.contains(&format!("`{name}`")), "ARCHITECTURE.md does not say what `{name}` holds");
        }
    }
}

#[test]
fn only_the_python_crate_has_unsafe_code() {
    let lifted: Vec<PathBuf> = files("crates", &[".rs"])
        .into_iter()
        .filter(|path| !path.starts_with(root().join("crates/python")))
        .filter(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            ["allow", "expect", "warn"]
                .iter()
                .any(|level| text.contains(&format!("{level}(unsafe{}", "_code")))
        })
        .collect();
    assert!(lifted.is_empty(), "unsafe code belongs into crates/python: {lifted:?}");
}
