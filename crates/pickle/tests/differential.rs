//! The machine against Python's own unpickler: `fixtures/make.py` wrote the pickles and what they mean.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail loudly")]

mod tree;

use std::collections::BTreeSet;

use tree::{End, feed};

/// The opcodes of Python's `pickletools.opcodes`, all 68 of protocols 0 to 5.
const OPCODES: &[u8] =
    b"IJKML\x8a\x8bSTUBC\x8e\x96\x97\x98N\x88\x89VX\x8c\x8dFG]ael})dus(t01\x85\x86\x87\x8f\x90\x91.2pqr\
                        \x94ghj\x82\x83\x84c\x93Rbio\x81\x92\x80\x95PQ";

struct Case {
    name: &'static str,
    protocol: u8,
    bytes: Vec<u8>,
    value: &'static str,
}

fn cases() -> impl Iterator<Item = Case> {
    include_str!("fixtures/values.tsv").lines().map(|line| {
        let [name, protocol, hex, value] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let bytes =
            (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect();
        Case { name, protocol: protocol.parse().unwrap(), bytes, value }
    })
}

fn start(text: &str) -> String {
    text.chars().take(300).collect()
}

#[test]
fn values_are_what_python_reads() {
    let mut n = 0;
    for case in cases() {
        let (end, _) = feed(&case.bytes, [case.bytes.len()]);
        let End::Value(value) = end else { panic!("{} in protocol {}: {end:?}", case.name, case.protocol) };
        assert!(
            value == case.value,
            "{} in protocol {}:\n{}\nshould be\n{}",
            case.name,
            case.protocol,
            start(&value),
            start(case.value)
        );
        n += 1;
    }
    assert!(n > 200, "only {n} cases");
}

#[test]
fn pieces_of_any_size_give_the_same() {
    for case in cases() {
        let (whole, tree) = feed(&case.bytes, [case.bytes.len()]);
        for size in [1, 2, 3, 7, 64, 1000] {
            let (end, pieces) = feed(&case.bytes, [size]);
            assert!(end == whole, "{} in pieces of {size}: {end:?}", case.name);
            assert!(pieces == tree, "{} in pieces of {size}: the containers differ", case.name);
        }
    }
}

#[test]
fn a_pickle_without_its_end_is_short_at_every_cut() {
    for case in cases().filter(|c| c.bytes.len() < 2000 && c.name != "behind STOP") {
        for cut in 0..case.bytes.len() {
            let (end, _) = feed(&case.bytes[..cut], [cut]);
            let End::Short(offset) = end else { panic!("{} cut at {cut}: {end:?}", case.name) };
            assert!(offset <= cut as u64, "{} cut at {cut}: {offset}", case.name);
        }
    }
}

#[test]
fn every_opcode_is_known_and_tested() {
    let all: BTreeSet<u8> = OPCODES.iter().copied().collect();
    assert_eq!(all.len(), 68);
    for opcode in 0..=255u8 {
        // What an opcode lacks without anything before or behind it is another question.
        let (end, _) = feed(&[opcode], [1]);
        let unknown = format!("0x{opcode:02x} is not a pickle opcode");
        let is_unknown = matches!(end, End::Damaged(e) if e.kind.to_string() == unknown);
        assert_eq!(is_unknown, !all.contains(&opcode), "{opcode:#x}");
    }
    // Every case is one that Python carried out to its end, so an opcode byte in it that is not one of an argument was
    // carried out. Which is which only a walk can tell; the names in `make.py` say which opcode a case is for.
    let tested: BTreeSet<u8> = cases().flat_map(|c| opcodes_of(&c.bytes)).collect();
    assert_eq!(tested, all);
}

/// The opcodes of a pickle, by the sizes of their arguments: a walk that owes nothing to the machine.
fn opcodes_of(bytes: &[u8]) -> Vec<u8> {
    let number = |at: usize, n: usize| -> usize {
        bytes[at..at + n].iter().rev().fold(0, |sum, &b| sum << 8 | usize::from(b))
    };
    let line = |at: usize| bytes[at..].iter().position(|&b| b == b'\n').unwrap() + 1;
    let (mut found, mut at) = (Vec::new(), 0);
    loop {
        let opcode = bytes[at];
        found.push(opcode);
        at += 1;
        at += match opcode {
            b'K' | b'h' | b'q' | 0x80 | 0x82 => 1,
            b'M' | 0x83 => 2,
            b'J' | b'j' | b'r' | 0x84 => 4,
            b'G' | 0x95 => 8,
            b'U' | b'C' | 0x8a | 0x8c => 1 + number(at, 1),
            b'T' | b'B' | b'X' | 0x8b => 4 + number(at, 4),
            0x8d | 0x8e | 0x96 => 8 + number(at, 8),
            b'I' | b'L' | b'F' | b'S' | b'V' | b'p' | b'g' | b'P' => line(at),
            b'c' | b'i' => line(at) + line(at + line(at)),
            _ => 0,
        };
        if opcode == b'.' {
            return found;
        }
    }
}
