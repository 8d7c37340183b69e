//! Damaged files are analyzed, described, compared and replayed like any other, whatever figures they state.

use std::io::Cursor;

use vramscope_model::{Symbols, join};
use vramscope_view::whatif::{self, Options};
use vramscope_view::{DiffInput, InspectInput};

/// Numbers that are all over the place but the same on every run.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

#[test]
fn nothing_panics_on_damaged_files() {
    let mut random = Xorshift(0x9e37_79b9_7f4a_7c15);
    let (mut readable, mut replayed) = (0, 0);
    for path in [
        "older/torch2.0_oom.pickle",
        "older/torch2.1_expandable.pickle",
        "older/torch2.5.pickle",
        "recordings/cuda_graph/step10.pickle",
    ] {
        let whole = std::fs::read(crate::corpus().join(path)).unwrap();
        for round in 0..200 {
            let mut bytes = whole.clone();
            for _ in 0..=round % 8 {
                let at = random.below(bytes.len());
                bytes[at] = random.below(256) as u8;
            }
            if round % 4 == 0 {
                bytes.truncate(random.below(bytes.len()));
            }
            let mut symbols = Symbols::default();
            let original = crate::read(path, &mut symbols).snapshot;
            let Ok(document) = vramscope_formats::read(Cursor::new(bytes), &mut symbols) else { continue };
            readable += 1;
            let warnings: Vec<String> = document.warnings.iter().map(ToString::to_string).collect();
            let snapshot = &document.snapshot;
            let input =
                InspectInput { path, format: &document.format, rank: None, snapshot, warnings: &warnings };
            assert!(!vramscope_view::inspect(&input, &symbols).checks.is_empty());
            for pair in [[&original, snapshot], [snapshot, &original]] {
                let inputs = pair.map(|snapshot| DiffInput { path, snapshot });
                assert_eq!(vramscope_view::diff(&inputs, &symbols).parts.len(), 1);
            }
            let options = Options {
                sweep: true,
                capacity: (round % 2 == 0).then_some(64 << 20),
                memory_fraction: (round % 3 == 0).then_some(0.5),
                ..Options::default()
            };
            let recordings = [(join(vec![snapshot.clone()], None), Vec::new())];
            let capacity = Some(1 << (16 + round % 16));
            let analysis = vramscope_view::analyze(
                &recordings,
                &symbols,
                &vramscope_view::analysis::Options { capacity, ..Default::default() },
            );
            assert!(!analysis.headline.is_empty());
            if let Ok(answer) = whatif::whatif(&recordings, &symbols, &options, &|_| {}) {
                assert!(answer.settings.len() > 1 && answer.settings[0].is_own);
                replayed += 1;
            }
        }
    }
    assert!(readable > 100, "only {readable} damaged files could be read at all");
    assert!(replayed > 100, "only {replayed} damaged files could be replayed");
}
