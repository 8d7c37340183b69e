//! The small files of a recording, damaged in every way: what can be read is read, and what is wrong is told.

use vramscope_formats::recorder::{environment, statistics};

use crate::corpus;
use crate::flips::Dice;

const ROUNDS: u64 = 400;

/// The files of that name, each damaged many times.
fn damaged(name: &str, mut check: impl FnMut(&[u8])) {
    for of in ["leak", "cpu", "crash", "cycle"] {
        let whole = corpus::bytes(&format!("recorded/{of}/{name}"));
        for seed in 1..=ROUNDS {
            let mut dice = Dice(seed);
            let mut bytes = whole.clone();
            for _ in 0..=seed % 4 {
                dice.damage(&mut bytes);
            }
            check(&bytes);
        }
        for end in (0..whole.len()).step_by(1 + whole.len() / 500) {
            check(&whole[..end]);
        }
    }
}

#[test]
fn statistics_keep_their_good_rows() {
    let (mut read, mut warned) = (0, 0);
    damaged("statistics.csv", |bytes| match statistics(bytes) {
        Err(error) => crate::check_message(&error.to_string()),
        Ok((statistics, warnings)) => {
            for warning in &warnings {
                crate::check_message(&warning.text);
            }
            assert!(statistics.samples().len() <= bytes.split(|&b| b == b'\n').count());
            read += usize::from(!statistics.samples().is_empty());
            warned += usize::from(!warnings.is_empty());
        }
    });
    assert!(read > 1000 && warned > 300, "{read} {warned}");
}

#[test]
fn surroundings_are_read_or_refused_with_a_message() {
    let (mut read, mut refused) = (0, 0);
    damaged("environment.json", |bytes| match environment(bytes) {
        Err(error) => {
            crate::check_message(&error.to_string());
            refused += 1;
        }
        Ok((_, warnings)) => {
            for warning in &warnings {
                crate::check_message(&warning.text);
            }
            read += 1;
        }
    });
    assert!(read > 50 && refused > 100, "{read} {refused}");
}
