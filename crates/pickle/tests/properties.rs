//! What holds for all values, for all ways to write them down, and for all bytes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail loudly")]

mod tree;

use proptest::prelude::*;
use tree::{End, feed};

/// A value as `tree` shows it, and one of the ways to pickle it.
#[derive(Clone, Debug)]
struct Written {
    shown: String,
    pickle: Vec<u8>,
}

fn written(shown: impl Into<String>, pickle: impl Into<Vec<u8>>) -> Written {
    Written { shown: shown.into(), pickle: pickle.into() }
}

fn integer() -> impl Strategy<Value = Written> {
    let value =
        prop_oneof![any::<i8>().prop_map(i128::from), any::<i32>().prop_map(i128::from), any::<i128>()];
    (value, 0..6u8).prop_map(|(v, way)| {
        let bytes = v.to_le_bytes();
        // The fewest bytes that keep the sign.
        let n = (1..16).find(|&n| v >> (8 * n - 1) == 0 || v >> (8 * n - 1) == -1).unwrap_or(16);
        let pickle = match way {
            0 => format!("L{v}L\n").into_bytes(),
            1 => format!("I{v}\n").into_bytes(),
            2 => [&[0x8b, n as u8, 0, 0, 0][..], &bytes[..n]].concat(),
            3 if (0..256).contains(&v) => vec![b'K', v as u8],
            4 if (0..65536).contains(&v) => [&b"M"[..], &bytes[..2]].concat(),
            5 if i32::try_from(v).is_ok() => [&b"J"[..], &bytes[..4]].concat(),
            _ => [&[0x8a, n as u8][..], &bytes[..n]].concat(),
        };
        written(v.to_string(), pickle)
    })
}

fn float() -> impl Strategy<Value = Written> {
    any::<f64>().prop_map(|v| {
        written(format!("{:#018x}", v.to_bits()), [&b"G"[..], &v.to_bits().to_be_bytes()].concat())
    })
}

fn text() -> impl Strategy<Value = Written> {
    ("[ -!#-\\[\\]-~]{0,12}", 0..5u8).prop_map(|(v, way)| {
        let n = v.len() as u64;
        let head = match way {
            0 => return written(format!("\"{v}\""), format!("V{v}\n")),
            1 => [&b"X"[..], &(n as u32).to_le_bytes()].concat(),
            2 => [&[0x8d][..], &n.to_le_bytes()].concat(),
            3 => vec![b'U', n as u8],
            _ => vec![0x8c, n as u8],
        };
        written(format!("\"{v}\""), [&head, v.as_bytes()].concat())
    })
}

fn value() -> impl Strategy<Value = Written> {
    let leaf = prop_oneof![
        integer(),
        float(),
        text(),
        Just(written("None", "N")),
        Just(written("True", [0x88])),
        Just(written("False", "I00\n")),
        Just(written("opaque", "cos\nsystem\n(S'x'\ntR")),
        Just(written("opaque", "C\x02ab")),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..6), 0..4u8).prop_map(|(items, way)| list(&items, way)),
            (prop::collection::vec(inner.clone(), 0..6), any::<bool>())
                .prop_map(|(items, way)| tuple(&items, way)),
            (prop::collection::vec(inner.clone(), 0..6), 0..3u8).prop_map(|(values, way)| dict(&values, way)),
            (inner, 0..3u8, any::<u8>()).prop_map(|(item, way, slot)| twice(&item, way, slot)),
        ]
    })
}

fn shown(items: &[Written]) -> String {
    items.iter().map(|i| i.shown.as_str()).collect::<Vec<_>>().join(", ")
}

fn pickles(items: &[Written]) -> Vec<u8> {
    items.iter().flat_map(|i| i.pickle.clone()).collect()
}

fn list(items: &[Written], way: u8) -> Written {
    let pickle = match way {
        0 => [b"(", &pickles(items)[..], b"l"].concat(),
        1 => [b"](", &pickles(items)[..], b"e"].concat(),
        // In two batches, as writers do with long lists.
        2 => {
            let (a, b) = items.split_at(items.len() / 2);
            [b"](", &pickles(a)[..], b"e(", &pickles(b)[..], b"e"].concat()
        }
        _ => [&b"]"[..], &items.iter().flat_map(|i| [&i.pickle[..], b"a"].concat()).collect::<Vec<_>>()]
            .concat(),
    };
    written(format!("[{}]", shown(items)), pickle)
}

fn tuple(items: &[Written], short: bool) -> Written {
    let all = pickles(items);
    let pickle = match items.len() {
        0 if short => b")".to_vec(),
        n @ 1..=3 if short => [&all[..], &[0x84 + n as u8]].concat(),
        _ => [b"(", &all[..], b"t"].concat(),
    };
    written(format!("({})", shown(items)), pickle)
}

fn dict(values: &[Written], way: u8) -> Written {
    let pairs: Vec<(String, Vec<u8>)> = values
        .iter()
        .enumerate()
        .map(|(i, v)| {
            (format!("\"k{i}\": {}", v.shown), [&[0x8c, 2, b'k', b'0' + i as u8], &v.pickle[..]].concat())
        })
        .collect();
    let shown: Vec<&str> = pairs.iter().map(|(s, _)| s.as_str()).collect();
    let all: Vec<u8> = pairs.iter().flat_map(|(_, p)| p.clone()).collect();
    let pickle = match way {
        0 => [b"(", &all[..], b"d"].concat(),
        1 => [b"}(", &all[..], b"u"].concat(),
        _ => {
            [&b"}"[..], &pairs.iter().flat_map(|(_, p)| [&p[..], b"s"].concat()).collect::<Vec<_>>()].concat()
        }
    };
    written(format!("{{{}}}", shown.join(", ")), pickle)
}

/// A pair of the same value, the second time from the memo. Inner pairs may use the slot too, but earlier.
fn twice(item: &Written, way: u8, slot: u8) -> Written {
    let (put, get) = match way {
        0 => (vec![b'q', slot], vec![b'h', slot]),
        1 => ([&b"r"[..], &[slot, 0, 0, 0x80]].concat(), [&b"j"[..], &[slot, 0, 0, 0x80]].concat()),
        _ => (format!("p{slot}99\n").into_bytes(), format!("g{slot}99\n").into_bytes()),
    };
    written(format!("({0}, {0})", item.shown), [&item.pickle[..], &put, &get, b"\x86"].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_value_is_read_however_it_is_written(value in value()) {
        let bytes = [&value.pickle[..], b"."].concat();
        prop_assert_eq!(feed(&bytes, [bytes.len()]).0, End::Value(value.shown));
    }

    #[test]
    fn pieces_of_a_value_give_the_same(value in value(), sizes in prop::collection::vec(1..40usize, 1..30)) {
        let bytes = [&value.pickle[..], b"."].concat();
        prop_assert_eq!(feed(&bytes, sizes), feed(&bytes, [bytes.len()]));
    }

    #[test]
    fn pieces_of_anything_give_the_same(
        soup in prop::collection::vec(prop_oneof![
            3 => prop::sample::select(b"(]})eaus0a12ltdN\x85\x86\x87\x88\x8f\x90\x91\x94RboQ\x81\x93".to_vec()),
            1 => prop::sample::select(b"KhqUCMXTBJGIVSFLcigpP\x8a\x8b\x8c\x8d\x95\x80.".to_vec()),
            2 => prop_oneof![Just(0u8), Just(1), Just(b'\n'), Just(b'5'), any::<u8>()],
        ], 0..200),
        sizes in prop::collection::vec(1..40usize, 1..30),
    ) {
        let (whole, tree) = feed(&soup, [soup.len()]);
        let (end, pieces) = feed(&soup, sizes);
        prop_assert_eq!(end, whole);
        prop_assert_eq!(pieces, tree);
    }
}
