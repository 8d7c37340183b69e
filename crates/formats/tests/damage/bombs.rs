//! Small files made to fill the memory or to keep the reader busy for ever.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::{corpus, read, refusal};

const MILLION: usize = 1_000_000;

pub(crate) fn pickle(parts: &[&[u8]]) -> Vec<u8> {
    [b"\x80\x04", parts.concat().as_slice()].concat()
}

/// A text as protocol 4 writes it.
pub(crate) fn text(word: &str) -> Vec<u8> {
    [&[0x8c, word.len() as u8], word.as_bytes()].concat()
}

#[test]
fn nested_pickles_need_no_stack_of_the_process() {
    for opener in [&b"]"[..], b"}", b"(", b"]q\x01", b"}K\x01", b"](", b"}(K\x01", b"\x8f(", b")\x85"] {
        let open = pickle(&[&opener.repeat(MILLION)]);
        let message = refusal(&open);
        assert!(message.contains("byte"), "{message}");
    }
    let lists = pickle(&[&b"]".repeat(MILLION), &b"a".repeat(MILLION - 1), b"."]);
    assert_eq!(refusal(&lists), "a pickle that holds no memory snapshot: a list of something else");
    let dicts = pickle(&[&b"}K\x01".repeat(MILLION / 4), b"N", &b"s".repeat(MILLION / 4), b"."]);
    assert_eq!(refusal(&dicts), "a pickle that holds no memory snapshot: a dict without a key that is text");
    let tuples = pickle(&[b"N", &b"\x85".repeat(MILLION), b"."]);
    assert_eq!(refusal(&tuples), "a pickle that holds no memory snapshot: a list of something else");
}

#[test]
fn nested_json_is_refused() {
    for unit in ["[", "{\"a\":", "[{\"segments\":", "{\"device_traces\":["] {
        let message = refusal(format!("{{\"segments\":{}", unit.repeat(MILLION)).as_bytes());
        assert!(message.contains("damaged at byte") && message.contains("recursion limit"), "{message}");
    }
}

/// Bytes that unpack to a gibibyte of the same thing, made by putting many short streams one behind the other.
fn bomb(head: &[u8], filler: &[u8], pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let run = pack(&filler.repeat((1 << 20) / filler.len()));
    [pack(head), run.repeat(1 << 10)].concat()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A zip file with one deflated entry, written by hand.
pub(crate) fn zip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    let data = encoder.finish().unwrap();
    let sizes = [(data.len() as u32).to_le_bytes(), (bytes.len() as u32).to_le_bytes()].concat();
    let name = b"x/data.pkl";
    let fixed = [&b"\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0"[..], &sizes, &[name.len() as u8, 0, 0, 0]].concat();
    let local = [&b"PK\x03\x04"[..], &fixed, name, &data].concat();
    let central = [&b"PK\x01\x02\x14\0"[..], &fixed, &[0; 14], name].concat();
    let end = [
        &b"PK\x05\x06\0\0\0\0\x01\0\x01\0"[..],
        &(central.len() as u32).to_le_bytes(),
        &(local.len() as u32).to_le_bytes(),
        &[0, 0],
    ]
    .concat();
    [local, central, end].concat()
}

#[test]
fn compressed_bombs_are_given_up_on() {
    let check = |packed: &[u8]| {
        let message = refusal(packed);
        let given_up = message.contains("far more than any snapshot") || message.contains("more values than");
        assert!(given_up, "{message}");
    };
    // What fills the stack, what fills nothing, what makes containers, and what makes dicts of no meaning.
    for filler in [&b"N"[..], b"N0", b"]0", b"(1", b"}K\x01K\x02s0"] {
        check(&bomb(b"\x80\x04", filler, zstd));
    }
    check(&bomb(b"\x80\x04", b"N0", gzip));
    check(&bomb(b"\x80\x04", b"N0", xz));
    check(&gzip(&bomb(b"\x80\x04", b"N0", gzip)));
    check(&xz(&bomb(b"\x80\x04", b"N0", zstd)));
    let message = refusal(&bomb(b"{", b" ", zstd));
    assert!(message.contains("far more than any snapshot"), "{message}");
}

#[test]
fn a_zip_bomb_is_given_up_on() {
    let inside = pickle(&[&b"N0".repeat(50 << 20)]);
    for packed in [zip(&inside), gzip(&zip(&inside)), zstd(&zip(&inside))] {
        let message = refusal(&packed);
        assert!(message.contains("far more than any snapshot"), "{message}");
    }
}

#[test]
fn the_zip_files_made_here_are_as_good_as_others() {
    let inside = corpus::bytes("recordings/_variants/legacy_list.pickle");
    let (document, _) = read(&zip(&inside)).unwrap();
    assert_eq!(document.format, "torch.save zip, pickle protocol 4");
    assert!(document.warnings.is_empty(), "{:?}", document.warnings);
}

#[test]
fn containers_in_one_another_have_an_end() {
    let mut bytes = corpus::bytes("recordings/_variants/legacy_list.pickle");
    for _ in 0..4 {
        bytes = gzip(&bytes);
        assert!(read(&bytes).is_ok());
    }
    assert_eq!(refusal(&gzip(&bytes)), "damaged gzip file: too many containers in one another");
}

#[test]
fn memory_that_an_xz_file_asks_for_is_not_given() {
    // The dictionary size is one byte of the block header; 40 is 4 GiB - 1, 37 is 1 GiB.
    let mut bytes = xz(b"\x80\x04N.");
    let header = 12;
    assert_eq!(&bytes[header + 2..header + 4], b"\x21\x01", "the filter is LZMA2, its properties one byte");
    bytes[header + 4] = 37;
    let size = (usize::from(bytes[header]) + 1) * 4;
    let mut crc = flate2::Crc::new();
    crc.update(&bytes[header..header + size - 4]);
    bytes.splice(header + size - 4..header + size, crc.sum().to_le_bytes());
    assert!(refusal(&bytes).starts_with("damaged xz file: "), "{}", refusal(&bytes));
}

#[test]
fn declared_lengths_are_not_believed() {
    let huge = (1u64 << 63).to_le_bytes();
    for (opcode, length) in [
        (0x8d, &huge[..]),
        (0x8e, &huge),
        (0x96, &huge),
        (0x8d, &[0xff; 8]),
        (b'X', &[0xff; 4]),
        (b'B', &[0xff; 4]),
        (b'T', &[0xff; 4]),
        (0x8b, &[0xff; 4]),
        (0x8b, &[0xff, 0xff, 0xff, 0x7f]),
        (0x8b, &[0, 0, 0, 0x80]),
    ] {
        let message = refusal(&pickle(&[b"}", &[opcode], length, b"abc"]));
        assert!(
            message.contains("damaged at byte 3: a value declares a length of"),
            "{opcode:#x}: {message}"
        );
    }
    // Below the limit, but not there.
    let message = refusal(&pickle(&[b"}", b"X\xff\xff\xff\x03abc"]));
    assert_eq!(
        message,
        "damaged at byte 3: the file ends inside a value (8 bytes are there of 67108868 declared)"
    );
    // A frame's length is of no consequence.
    let list = corpus::bytes("recordings/_variants/legacy_list.pickle");
    let (document, _) =
        read(&[b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f", &list[2..]].concat()).unwrap();
    assert!(document.warnings.is_empty());
}

#[test]
fn a_huge_text_is_read_once() {
    // 60 MiB that are there, in one text and in one line.
    let body = vec![b'x'; 60 << 20];
    let binary = pickle(&[b"X", &(body.len() as u32).to_le_bytes(), &body, b"."]);
    assert_eq!(refusal(&binary), "a pickle that holds no memory snapshot: a text");
    let lines = pickle(&[b"V", &body, b"\n."]);
    assert_eq!(refusal(&lines), "a pickle that holds no memory snapshot: a text");
    assert_eq!(refusal(&gzip(&lines)), "a pickle that holds no memory snapshot: a text");
    let endless = pickle(&[b"V", &body, &body]);
    assert!(refusal(&endless).contains("a value declares a length of"), "{}", refusal(&endless));
}

#[test]
fn memo_slots_take_room_only_when_filled() {
    let far = pickle(&[b"]r\xff\xff\xff\xff", b"j\xff\xff\xff\xff", b"a."]);
    assert_eq!(refusal(&far), "a pickle that holds no memory snapshot: a list of something else");
    let text = pickle(&[b"]p18446744073709551615\n0g18446744073709551615\n."]);
    assert!(refusal(&text).contains("an empty list"), "{}", refusal(&text));
    let never = pickle(&[b"]", b"j\xfe\xff\xff\xff", b"."]);
    assert_eq!(refusal(&never), "damaged at byte 3: memo slot 4294967294 was never filled");
    // Each slot as far ahead of the last as it may lie.
    let mut steps = pickle(&[b"]"]);
    for slot in (0..200_000u32).map(|n| n * 4000) {
        steps.push(b'r');
        steps.extend(slot.to_le_bytes());
    }
    assert!(refusal(&steps).contains("the file ends before the pickle does"));
}

#[test]
fn containers_may_hold_themselves() {
    for body in [
        &b"]\x94h\0a."[..],
        b"]\x94(h\0h\0e.",
        b"}\x94K\x01h\0s.",
        b"}\x94(h\0h\0h\0h\0u.",
        b"]\x94(}\x94(h\0h\x01h\x01h\0ue.",
        b"\x8f\x94(h\0\x90.",
        b"]\x94h\0\x85\x94h\x01a0h\0.",
    ] {
        refusal(&pickle(&[body]));
    }
    // The words of a snapshot, all referring to the dict that holds them or to a list that holds that.
    let dict = ["allocator_settings", "host_segments", "host_traces", "external_annotations"];
    let list = ["segments", "device_traces"];
    let mut own = b"}\x94]\x94h\0a0(".to_vec();
    for (words, memo) in [(&dict[..], b"h\0"), (&list, b"h\x01")] {
        own.extend(words.iter().flat_map(|word| [&text(word)[..], memo].concat()));
    }
    own.extend(b"u.");
    let (document, _) = read(&pickle(&[&own])).unwrap();
    assert!(document.snapshot.devices.is_empty());
    // Numbers under a snapshot's names, and many more keys, one by one.
    let mut numbers = [&b"}"[..], &text("segments"), b"K\x05s"].concat();
    numbers.extend(b"K\x01K\x02s".repeat(MILLION / 5));
    assert!(refusal(&pickle(&[&numbers, b"."])).contains("a dict with the keys `segments`"));
}

/// A snapshot in which one thing is referred to a hundred thousand times.
#[test]
fn references_cost_no_copies() {
    const N: usize = 100_000;
    let event = [b"}(".to_vec(), text("action"), text("alloc"), text("size"), b"K\x05u".to_vec()].concat();
    let root = |key: &str, value: Vec<u8>| pickle(&[b"}(", &text(key), &value, b"u."]);

    // Every device has the same trace of many events.
    let trace = [b"](".to_vec(), event.repeat(N / 10), b"e".to_vec()].concat();
    let lists =
        [b"]\x94".to_vec(), trace, b"\x94".to_vec(), b"h\0(".to_vec(), b"h\x01".repeat(N), b"e0".to_vec()]
            .concat();
    let (document, _) = read(&root("device_traces", [lists, b"0h\0".to_vec()].concat())).unwrap();
    assert_eq!(document.snapshot.n_events(), N / 10);

    // A trace holds the same event over and over: it happened once.
    let same =
        [b"](](".to_vec(), event.clone(), b"\x94".to_vec(), b"h\0".repeat(N - 1), b"ee".to_vec()].concat();
    let (document, _) = read(&root("device_traces", same)).unwrap();
    assert_eq!(document.snapshot.n_events(), 1);
    assert!(document.warnings.iter().any(|w| w.text.contains("refers to an event that was there before")));

    // Many traces of the same two events.
    let pair =
        [b"]\x94(".to_vec(), event.clone(), b"\x94".to_vec(), event.clone(), b"\x94e0".to_vec()].concat();
    let lists = [pair, b"](".to_vec(), b"](h\x01h\x02e".repeat(N / 10), b"e".to_vec()].concat();
    let (document, _) = read(&root("device_traces", lists)).unwrap();
    assert_eq!(document.snapshot.n_events(), 2);
    assert!(document.warnings.iter().any(|w| w.text.contains("two devices refer to the same events")));

    // A stack that grows frame by frame, and is used after each.
    let frame = [
        b"}(".to_vec(),
        text("filename"),
        text("a.py"),
        text("line"),
        b"K\x05".to_vec(),
        text("name"),
        text("f"),
        b"u\x94".to_vec(),
    ]
    .concat();
    let mut grown = [frame, b"0]\x94".to_vec()].concat();
    grown.extend(text("frames"));
    grown.extend(b"\x940](");
    for _ in 0..N {
        grown.extend(b"h\x01h\0a0}(h\x02h\x01");
        grown.extend(text("action"));
        grown.extend(b"Nu");
    }
    grown.extend(b"e\x85");
    let (document, symbols) = read(&root("device_traces", grown)).unwrap();
    assert_eq!(document.snapshot.n_events(), N);
    assert!(symbols.n_stacks() < 10);
    assert!(document.warnings.iter().any(|w| w.text.contains("a stack grows after it was used")));

    // A dict of no meaning, filled key by key, taken for a frame and for settings.
    let keys = [b"}\x94".to_vec(), b"K\x01K\x02s".repeat(N)].concat();
    refusal(&pickle(&[&keys, b"."]));
    refusal(&pickle(&[&keys, b"0](", &b"h\0".repeat(N), b"e."]));
    let settings = [keys, b"0}(".to_vec()].concat();
    let names: Vec<u8> = (0..N).flat_map(|i| [text(&i.to_string()), b"h\0".to_vec()].concat()).collect();
    let (document, _) = read(&root(
        "allocator_settings",
        [settings, names, b"u".to_vec(), text("segments"), b"]".to_vec()].concat(),
    ))
    .unwrap();
    assert!(document.snapshot.settings.unwrap().all.len() < 1000);

    // A segment set key by key after it got its blocks.
    let block = [b"}(".to_vec(), text("state"), text("inactive"), text("size"), b"K\x05u".to_vec()].concat();
    let segment = [
        b"]}(".to_vec(),
        text("total_size"),
        b"K\x05".to_vec(),
        text("blocks"),
        b"](".to_vec(),
        block.repeat(N / 10),
        b"eu".to_vec(),
        [text("device"), b"K\0s".to_vec()].concat().repeat(N),
        b"a".to_vec(),
    ];
    let (document, _) = read(&root("segments", segment.concat())).unwrap();
    assert_eq!(document.snapshot.devices[0].segments[0].blocks.len(), N / 10);
}

#[test]
fn many_distinct_things_are_told_apart_in_time() {
    const N: u32 = 200_000;
    let mut json = String::from("{\"device_traces\":[[");
    for i in 0..N {
        let comma = if i == 0 { "" } else { "," };
        let stream = u64::from(i) << 32;
        write!(json, "{comma}{{\"action\":\"a{i}\",\"addr\":{i},\"stream\":{stream},\"pool_id\":[{i},{i}]}}")
            .unwrap();
    }
    json.push_str("]],\"segments\":[");
    for i in 0..N / 10 {
        let comma = if i == 0 { "" } else { "," };
        write!(json, "{comma}{{\"device\":{i},\"total_size\":512,\"address\":{i},\"blocks\":[]}}").unwrap();
    }
    json.push_str("]}");
    let (document, _) = read(json.as_bytes()).unwrap();
    assert_eq!(document.snapshot.n_events(), N as usize);
    assert_eq!(document.snapshot.devices.len(), 1024);
    assert!(document.warnings.iter().any(|w| w.text.contains("beyond the first 1024 were left out")));
    assert!(document.warnings.len() < 100);
    assert!(document.warnings.iter().any(|w| w.text == "there is more to warn of than is listed here"));
}
