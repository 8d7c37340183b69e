//! Numbers that are none, lists that are shared, and snapshots beside one another.

use vramscope_formats::Document;

use crate::bombs::{pickle, text};
use crate::{read, refusal};

fn json(text: &str) -> Document {
    read(text.as_bytes()).unwrap().0
}

fn warned_of(document: &Document, text: &str) -> bool {
    document.warnings.iter().any(|w| w.text.contains(text))
}

/// The size of an event and that of a block, read from JSON.
fn sizes(size: &str) -> (u64, u64, bool) {
    let document = json(&format!(
        "{{\"device_traces\": [[{{\"action\": \"alloc\", \"addr\": 512.0, \"size\": {size}}}]], \"segments\": [
            {{\"total_size\": 4096, \"blocks\": [{{\"state\": \"inactive\", \"size\": {size}}}]}}]}}"
    ));
    let warned = document.warnings.iter().filter(|w| w.text.contains("no number of bytes")).count();
    assert!(warned <= 1 && document.warnings.iter().all(|w| w.offset.is_some()), "{:?}", document.warnings);
    let device = &document.snapshot.devices[0];
    assert_eq!(device.events.addrs(), [512]);
    (device.events.sizes()[0], device.segments[0].blocks[0].size.0, warned == 1)
}

#[test]
fn a_size_is_a_whole_number_or_none() {
    assert_eq!(sizes("512"), (512, 512, false));
    assert_eq!(sizes("512.0"), (512, 512, false));
    assert_eq!(sizes("9223372036854775807"), (i64::MAX as u64, i64::MAX as u64, false));
    for wrong in
        ["512.5", "-1", "-1.0", "null", "\"512\"", "NaN", "-Infinity", "9223372036854775808", "1e30", "[1]"]
    {
        assert_eq!(sizes(wrong), (0, 0, true), "{wrong}");
    }
}

#[test]
fn a_time_that_no_clock_shows_is_unknown() {
    for (time, want) in [
        ("5", Some(5)),
        ("5.75", Some(5)),
        ("-5", Some(-5)),
        ("9223372036854775807", None),
        ("-9223372036854775807", None),
        ("1e300", None),
        ("null", None),
    ] {
        let document = json(&format!(
            "{{\"segments\": [], \"device_traces\": [[{{\"action\": \"alloc\", \"time_us\": {time}}}]]}}"
        ));
        let read = document.snapshot.time_span().map(|(first, _)| first.0);
        assert_eq!(read, want, "{time}");
        assert_eq!(warned_of(&document, "a time is no number"), want.is_none(), "{time}");
    }
}

#[test]
fn segments_of_no_device_are_left_out() {
    for (device, kept) in [
        ("0", true),
        ("0.0", true),
        ("4294967295", true),
        ("-1", false),
        ("4294967296", false),
        ("null", false),
    ] {
        let document = json(&format!(
            "{{\"device_traces\": [], \"segments\": [{{\"total_size\": 512, \"device\": 1}},
                {{\"total_size\": 1024, \"device\": {device}}}]}}"
        ));
        assert_eq!(document.snapshot.devices.len(), 1 + usize::from(kept), "{device}");
        assert_eq!(warned_of(&document, "such segments were left out"), !kept, "{device}");
    }
}

#[test]
fn of_two_snapshots_in_one_object_the_first_is_read() {
    let snapshot = |address: u32, action: &str| {
        format!(
            "{{\"segments\": [{{\"address\": {address}, \"total_size\": 512, \"blocks\": []}}],
              \"device_traces\": [[{{\"action\": \"{action}\"}}]],
              \"external_annotations\": [{{\"stage\": \"START\", \"name\": \"{action}\", \"time_us\": 1}}]}}"
        )
    };
    let document =
        json(&format!("{{\"before\": {}, \"after\": {}}}", snapshot(512, "alloc"), snapshot(1024, "oom")));
    let device = &document.snapshot.devices[0];
    let addrs: Vec<u64> = device.segments.iter().map(|s| s.addr).collect();
    assert_eq!((addrs, device.events.len(), document.snapshot.annotations.len()), (vec![512], 1, 1));
    assert!(warned_of(&document, "2 snapshots lie inside another object; the first was read"));

    // Host memory, and what someone put beside the segments, are not the device's.
    let document = json(
        "{\"x\": [{\"total_size\": 7}], \"segments\": [{\"total_size\": 512}], \"host_segments\": [{\"total_size\": 64}, {\"size\": 32}],
          \"device_traces\": []}",
    );
    let sizes: Vec<u64> = document.snapshot.devices[0].segments.iter().map(|s| s.size.0).collect();
    assert_eq!(sizes, [512]);
    assert_eq!(document.snapshot.host.map(|h| (h.segments, h.bytes.0)), Some((2, 96)));
}

#[test]
fn a_trace_by_itself_is_read() {
    assert_eq!(json("[{\"action\": \"alloc\"}]").snapshot.n_events(), 1);
    let traces = [b"](]](}".to_vec(), text("action"), text("alloc"), b"see.".to_vec()].concat();
    let (document, _) = read(&pickle(&[&traces])).unwrap();
    assert_eq!((document.snapshot.devices[0].ordinal, document.snapshot.n_events()), (1, 1));
    // Events that no trace holds are none.
    assert!(refusal(b"{\"x\": {\"action\": \"alloc\"}}").contains("a dict with the keys `x`"));
}

#[test]
fn a_list_of_blocks_belongs_to_one_segment() {
    let block = [b"}(".to_vec(), text("state"), text("inactive"), text("size"), b"K\x05u".to_vec()].concat();
    let segment =
        |blocks: &[u8]| [b"}(", &text("total_size")[..], b"K\x05", &text("blocks"), blocks, b"u"].concat();
    let first = segment(&[b"]\x94", &block[..], b"a"].concat());
    let again = segment(b"h\0");
    let body = [b"}(".to_vec(), text("segments"), b"](".to_vec(), first, again, b"eu.".to_vec()].concat();
    let (document, _) = read(&pickle(&[&body])).unwrap();
    let blocks: Vec<usize> = document.snapshot.devices[0].segments.iter().map(|s| s.blocks.len()).collect();
    assert_eq!(blocks, [1, 0]);
    assert!(warned_of(&document, "two segments share a list of blocks"));
}

#[test]
fn a_dict_without_texts_for_keys_is_said_to_be_one() {
    let message = refusal(&pickle(&[b"}(C\x01aK\x01C\x01bK\x02u."]));
    assert_eq!(message, "a pickle that holds no memory snapshot: a dict without a key that is text");
}
