//! The programs of the corpus: each leaks in a line that a recording of it convicts, or not at all.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should fail on the spot, and reads files by itself"
)]

use std::{collections::BTreeSet, fs, path::Path};

use vramscope_lint::{Applicability, Selection, Severity, Source, check, fix};

/// The lines that keep, by program. What keeps is known from recordings of the same programs.
const LEAKS: &[(&str, &[u32])] = &[
    ("val_loss_list", &[13]),
    ("train_loss_list", &[19]),
    ("feature_pyramid", &[15]),
    ("hook_store", &[11]),
    ("rnn_carry", &[12]),
    ("target_masks", &[25]),
    ("oom_capped", &[19]),
    ("profiler_trace", &[17]),
    ("legacy_pt", &[15]),
    ("ddp_one_rank", &[23]),
];

/// Programs whose memory does not grow, or grows for another reason than a pattern in their code.
const CLEAN: &[&str] = &[
    "clean_epochs_eval",
    "clean_resnet",
    "cuda_graph",
    "cycle_sawtooth",
    "fragmentation_varlen",
    "gpt_train",
    "lru_plateau",
    "streams_record",
];

/// A program without its comments, which say where it leaks.
fn program(name: &str) -> Source {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/programs").join(name).join("train.py");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let stripped: Vec<&str> = text.lines().map(|it| it.split("  # ").next().unwrap_or(it)).collect();
    assert!(stripped.iter().all(|it| !it.contains("LEAK") && !it.contains("ALLOC")));
    Source::read(format!("{name}/train.py"), (stripped.join("\n") + "\n").as_bytes()).unwrap()
}

fn reported(source: &Source, at_least: Severity) -> BTreeSet<u32> {
    let found = check(std::slice::from_ref(source), &Selection::default(), &|| {});
    assert_eq!(found[0].problems, []);
    found[0]
        .diagnostics
        .iter()
        .filter(|it| it.severity >= at_least)
        .map(|it| source.location(it.range.start()).line)
        .collect()
}

#[test]
fn the_line_that_keeps_is_reported() {
    for (name, lines) in LEAKS {
        let reported = reported(&program(name), Severity::Info);
        assert!(
            lines.iter().all(|it| reported.contains(it)),
            "{name}: {reported:?} are reported, not {lines:?}"
        );
    }
}

#[test]
fn nothing_is_an_error_in_programs_that_do_not_leak() {
    for name in CLEAN {
        let reported = reported(&program(name), Severity::Error);
        assert!(reported.is_empty(), "{name}: {reported:?}");
    }
}

/// After all fixes, what had one is no longer reported, and a second time changes nothing.
#[test]
fn fixed_programs_stay_fixed() {
    for (name, _) in LEAKS {
        let selection = Selection::default();
        let once = fix(vec![program(name)], &selection, Applicability::Unsafe, &|| {});
        assert_eq!(once[0].trouble, None, "{name}");
        let text = once[0].source.text().to_owned();
        let twice = fix(vec![once[0].source.clone()], &selection, Applicability::Unsafe, &|| {});
        assert_eq!(twice[0].source.text(), text, "{name}");
    }
}
