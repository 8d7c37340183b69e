//! `docs/rules`: a page each rule of `vramscope check`, from what it says of itself, and an index of them.

use vramscope_report::markdown;
use vramscope_view::check::{Rule, rules};

use super::Document;

const GENERATED: &str = "<!-- Generated from the code; see CONTRIBUTING.md. -->\n\n";

const INTRODUCTION: &str = "\
# Rules

What [`vramscope check`](../check.md) looks for. `vramscope rule LK101` prints a page, too. A rule that is off by default runs if it is selected. Severity is the worst that a rule
reports. A *safe* fix is made by `--fix`, an *unsafe* one with `--unsafe-fixes`, and *display* is only shown.
";

/// The areas by the beginnings of codes.
const AREAS: [(&str, &str); 9] = [
    ("LK1", "autograd graphs that stay (PyTorch)"),
    ("LK2", "references held by ordinary Python"),
    ("LK3", "hooks, cycles, caches"),
    ("LK4", "loading of data, and memory of the host"),
    ("LK5", "models, optimizers, checkpoints"),
    ("LK6", "compilers, the allocator, streams, several processes, profilers"),
    ("LK7", "Hugging Face, Lightning, torchmetrics"),
    ("LK8", "TensorFlow and Keras"),
    ("LK9", "ONNX Runtime, JAX, notebooks"),
];

pub(super) fn documents() -> Vec<Document> {
    let rules = rules();
    let mut index = format!("{GENERATED}{INTRODUCTION}");
    for (area, of_area) in by_area(&rules) {
        index.push_str(&format!("\n## {area}\n\n{}", markdown::rules::index(&of_area)));
    }
    let pages = rules.iter().map(|rule| Document {
        path: format!("docs/rules/{}.md", rule.code),
        text: format!("{GENERATED}{}\n", rule.page.trim_end()),
    });
    std::iter::once(Document { path: "docs/rules/README.md".to_owned(), text: index }).chain(pages).collect()
}

fn by_area(rules: &[Rule]) -> Vec<(String, Vec<Rule>)> {
    let mut areas: Vec<(String, Vec<Rule>)> = Vec::new();
    for rule in rules {
        let area = AREAS.iter().find(|(beginning, _)| rule.code.starts_with(beginning));
        let area =
            area.map_or_else(|| "Others".to_owned(), |(beginning, what)| format!("{beginning}: {what}"));
        match areas.last_mut() {
            Some((last, of_area)) if *last == area => of_area.push(rule.clone()),
            _ => areas.push((area, vec![rule.clone()])),
        }
    }
    areas
}
