//! The specifications of the rules: `specs/<CODE>-<name>.md` holds code in which a rule speaks, and code in which it must not.
//!
//! Under a heading, ```` ```python ```` blocks are files of one project; `file=name.py` names one. A comment at the end of a
//! line, `# LK102` or `# LK102 error`, says that the rule of the file reports that line (with this severity); it is taken off before
//! the code is checked. A ```` ```python fixed ```` block says what all fixes, the unsafe ones too, make of the block before it,
//! a ```` ```python safe ```` block what the safe ones do.
//! Of a file whose name ends in `.ipynb` the lines `# %%` separate the cells.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should fail on the spot, and reads files by itself"
)]

use std::{collections::BTreeSet, fs, path::Path};

use vramscope_lint::{Applicability, Framework, Rule, Selection, Source, TextSize, check, fix, rules};

/// One heading of a specification.
#[derive(Default)]
struct Case {
    title: String,
    files: Vec<File>,
}

#[derive(Default)]
struct File {
    name: String,
    code: String,
    /// Line, and severity if it matters.
    expected: BTreeSet<(u32, Option<String>)>,
    fixed: Option<String>,
    safe: Option<String>,
}

/// What fixes of one grade should make of a file.
type Expected = fn(&File) -> Option<&str>;

/// What separates the cells of a notebook.
const CELL: &str = "# %%\n";

impl File {
    /// This file with `code` in it.
    fn source(&self, code: &str) -> Source {
        if !self.name.ends_with(".ipynb") {
            return Source::read(self.name.as_str(), code.as_bytes()).unwrap();
        }
        let cells: Vec<String> = code
            .split(CELL)
            .map(|cell| {
                let text = cell.strip_suffix('\n').unwrap_or(cell);
                let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                format!(
                    r#"{{"cell_type": "code", "metadata": {{}}, "outputs": [], "execution_count": null, "source": "{text}"}}"#
                )
            })
            .collect();
        let json = format!(
            r#"{{"cells": [{}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 4}}"#,
            cells.join(", ")
        );
        Source::read(self.name.as_str(), json.as_bytes()).unwrap()
    }

    /// The line of the block in which the byte at `offset` of the source stands.
    fn line_of_block(source: &Source, offset: TextSize) -> u32 {
        // Between two cells stands a line of the block that is none of the source.
        let separators = source.location(offset).cell.map_or(0, |cell| cell - 1);
        source.line_at(offset) + separators
    }
}

fn read(rule: &Rule) -> Vec<Case> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("specs").join(format!("{}-{}.md", rule.code, rule.name));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut cases: Vec<Case> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            cases.push(Case { title: title.to_owned(), files: Vec::new() });
        }
        let Some(info) = line.strip_prefix("```python") else { continue };
        let case =
            cases.last_mut().unwrap_or_else(|| panic!("{}: code before the first heading", path.display()));
        let code: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if matches!(info.trim(), "fixed" | "safe") {
            let file = case.files.last_mut().expect("a fixed block follows the block that it fixes");
            let text = Some(file.source(&(code.join("\n") + "\n")).text().to_owned());
            *(if info.trim() == "safe" { &mut file.safe } else { &mut file.fixed }) = text;
            continue;
        }
        let name =
            info.trim().strip_prefix("file=").map_or(format!("case{}.py", case.files.len()), str::to_owned);
        let mut file = File { name, ..File::default() };
        for (index, line) in code.iter().enumerate() {
            let (code, marker) = match line.split_once(&format!("# {}", rule.code)) {
                Some((code, marker)) => (code.trim_end(), Some(marker.trim())),
                None => (*line, None),
            };
            if let Some(marker) = marker {
                let severity = (!marker.is_empty()).then(|| marker.to_owned());
                file.expected.insert((index as u32 + 1, severity));
            }
            file.code.push_str(code);
            file.code.push('\n');
        }
        case.files.push(file);
    }
    cases
}

fn sources(case: &Case) -> Vec<Source> {
    case.files.iter().map(|it| it.source(&it.code)).collect()
}

fn check_rule(rule: &'static Rule) -> Vec<String> {
    let mut wrong = Vec::new();
    let cases = read(rule);
    let selection = Selection::of(|it| it.code == rule.code);
    let fires = cases.iter().filter(|it| it.files.iter().any(|it| !it.expected.is_empty())).count();
    if fires == 0 || fires == cases.len() {
        wrong.push(format!("{}: needs cases in which it speaks and cases in which it does not", rule.code));
    }
    for case in &cases {
        let place = format!("{} \"{}\"", rule.code, case.title);
        let sources = sources(case);
        let found = check(&sources, &selection, &|| {});
        for (file, (source, found)) in case.files.iter().zip(sources.iter().zip(&found)) {
            let told: BTreeSet<(u32, String)> = found
                .diagnostics
                .iter()
                .map(|it| (File::line_of_block(source, it.range.start()), it.severity.name().to_owned()))
                .collect();
            let told_lines: BTreeSet<u32> = told.iter().map(|it| it.0).collect();
            let expected_lines: BTreeSet<u32> = file.expected.iter().map(|it| it.0).collect();
            if told_lines != expected_lines {
                wrong.push(format!(
                    "{place}: lines {told_lines:?} are reported, {expected_lines:?} should be"
                ));
            }
            for (line, severity) in &file.expected {
                if let Some(severity) = severity
                    && told_lines.contains(line)
                    && !told.contains(&(*line, severity.clone()))
                {
                    wrong.push(format!("{place}: line {line} should be {severity}: {told:?}"));
                }
            }
            for it in &found.diagnostics {
                if it.severity > rule.severity {
                    wrong.push(format!("{place}: is {}, worse than the rule's worst", it.severity.name()));
                }
                let best = it.fix.as_ref().map(|it| it.applicability);
                if best > rule.fix {
                    wrong.push(format!("{place}: has a fix of a better grade than the rule says"));
                }
            }
        }
        let grades: [(Applicability, Expected); 2] = [
            (Applicability::Unsafe, |it| it.fixed.as_deref()),
            (Applicability::Safe, |it| it.safe.as_deref()),
        ];
        for (grade, expected) in grades {
            if case.files.iter().all(|it| expected(it).is_none()) {
                continue;
            }
            for (file, fixed) in case.files.iter().zip(fix(sources.clone(), &selection, grade, &|| {})) {
                let unchanged = file.source(&file.code);
                if fixed.source.text() != expected(file).unwrap_or(unchanged.text()) {
                    let grade = grade.name();
                    wrong.push(format!("{place}: the {grade} fix makes of it\n{}", fixed.source.text()));
                }
            }
        }
    }
    wrong
}

#[test]
fn every_rule_does_what_its_specification_says() {
    let only = std::env::var("RULE").ok();
    let wrong: Vec<String> = rules()
        .filter(|it| only.as_deref().is_none_or(|only| it.code.starts_with(only)))
        .flat_map(check_rule)
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The example of a page shows the pattern, and the code after "Use instead" is free of it.
#[test]
fn the_examples_of_every_page_are_true() {
    let mut wrong = Vec::new();
    for rule in rules() {
        let page = rule.page();
        for heading in ["## Why it matters", "## Example", "## Fix", "## References"] {
            if !page.contains(heading) {
                wrong.push(format!("{}: has no \"{heading}\"", rule.code));
            }
        }
        let blocks: Vec<&str> =
            page.split("```python\n").skip(1).filter_map(|it| it.split("```").next()).collect();
        let [bad, good] = blocks[..] else {
            wrong.push(format!("{}: needs an example and what to use instead", rule.code));
            continue;
        };
        let selection = Selection::of(|it| it.code == rule.code);
        for (code, is_bad) in [(bad, true), (good, false)] {
            let is_notebook = rule.frameworks.contains(&Framework::Notebook);
            let name = if is_notebook { "example.ipynb" } else { "example.py" };
            let source = File { name: name.to_owned(), ..File::default() }.source(code);
            let found = check(&[source], &selection, &|| {});
            if found[0].diagnostics.is_empty() == is_bad {
                wrong.push(format!(
                    "{}: the {} example is{} reported",
                    rule.code,
                    if is_bad { "first" } else { "second" },
                    if is_bad { " not" } else { "" }
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn codes_and_names_are_unique_and_in_order() {
    let codes: Vec<_> = rules().map(|it| it.code).collect();
    let names: BTreeSet<_> = rules().map(|it| it.name).collect();
    assert!(codes.is_sorted(), "{codes:?}");
    assert_eq!(codes.iter().collect::<BTreeSet<_>>().len(), codes.len());
    assert_eq!(names.len(), codes.len());
}

/// All fixes of all rules on all code of all specifications: they end, they leave Python, and a second time there is nothing to do.
#[test]
fn fixing_twice_changes_nothing_the_second_time() {
    let mut wrong = Vec::new();
    for rule in rules() {
        for case in read(rule) {
            let place = format!("{} \"{}\"", rule.code, case.title);
            let everything = Selection::of(|_| true);
            let once = fix(sources(&case), &everything, Applicability::Unsafe, &|| {});
            for (file, fixed) in case.files.iter().zip(&once) {
                if let Some(trouble) = &fixed.trouble {
                    wrong.push(format!("{place}, {}: {trouble}", file.name));
                }
                if fixed.checked.problems.iter().any(|it| it.message.starts_with("syntax error")) {
                    wrong.push(format!(
                        "{place}, {}: is no Python any more:\n{}",
                        file.name,
                        fixed.source.text()
                    ));
                }
            }
            let texts: Vec<String> = once.iter().map(|it| it.source.text().to_owned()).collect();
            let again = once.into_iter().map(|it| it.source).collect();
            for (fixed, text) in fix(again, &everything, Applicability::Unsafe, &|| {}).iter().zip(&texts) {
                if fixed.source.text() != text {
                    wrong.push(format!("{place}: fixing again changes\n{text}\nto\n{}", fixed.source.text()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
