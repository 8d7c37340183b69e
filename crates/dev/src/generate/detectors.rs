//! `docs/detectors.md` from what each detector says of itself.

use vramscope_detect::DETECTORS;

use super::Document;

const INTRODUCTION: &str = "\
<!-- Generated from the code; see CONTRIBUTING.md. -->

# Detectors

What `vramscope analyze` looks for. Each finding names the detector it is from as its `code`.

| code | finds that |
|---|---|
";

pub(super) fn document() -> Document {
    let mut text = INTRODUCTION.to_owned();
    for detector in DETECTORS {
        text.push_str(&format!("| [`{0}`](#{0}) | {1} |\n", detector.code, detector.summary));
    }
    for detector in DETECTORS {
        // A detector's own headings come one level below its name.
        let doc: Vec<String> = detector
            .doc
            .trim()
            .lines()
            .map(|line| if line.starts_with('#') { format!("#{line}") } else { line.to_owned() })
            .collect();
        text.push_str(&format!("\n## {}\n\n{}\n", detector.code, doc.join("\n")));
    }
    Document { path: "docs/detectors.md".to_owned(), text }
}
