//! Files that are no snapshots, or not only: the message says what they are.

use vramscope_formats::Error;

use crate::{corpus, read, refusal};

#[test]
fn an_empty_file_is_said_to_be_empty() {
    assert!(matches!(read(b""), Err(Error::Empty)));
}

#[test]
fn files_of_other_kinds_are_named() {
    for (bytes, says) in [
        (&b"import torch\nprint('no snapshot')\n"[..], "not a memory snapshot: it is plain text"),
        (b"<!DOCTYPE html>\n<html><body></body></html>", "it is a web page; if memory_viz wrote it"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "not a memory snapshot: it is a picture"),
        (b"\x7fELF\x02\x01\x01\0", "not a memory snapshot: it is a program"),
        (b"SQLite format 3\0", "not a memory snapshot: it is an SQLite database"),
        (b"BZh91AY&SY", "bzip2, which is not supported; unpack it first"),
        (b"\0\0\0\0\0\0\0\0", "not a memory snapshot: it begins like no format known here"),
        (b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "there is no data.pkl in it"),
        (b"\x80\x06.", "it begins like no format known here"),
        (b"\x80\x04.", "damaged at byte 2: the opcode needs a value that is not there"),
        (b"\x80\x04", "damaged at byte 2: the file ends before the pickle does"),
        (b"\x80", "it begins like no format known here"),
        (b"{", "damaged at byte 1"),
        (b"{}", "a JSON file that holds no memory snapshot: a dict"),
        (b"[]", "an empty list; `memory_snapshot()` returns one before the first allocation"),
        (b"[{}]", "a JSON file that holds no memory snapshot: a list of something else"),
        (b"{\"loss\": 0.5, \"step\": 3}", "a dict with the keys `loss`, `step`"),
    ] {
        let message = refusal(bytes);
        assert!(message.contains(says), "{message}\nshould say: {says}");
    }
}

#[test]
fn a_chrome_trace_is_named() {
    let trace = br#"{"schemaVersion": 1, "traceEvents": [{"ph": "X", "name": "aten::mm", "ts": 1, "dur": 2, "args": {}},
        {"ph": "i", "name": "[memory]", "args": {"Total Allocated": 512, "Addr": 140000, "Device Id": 0}}]}"#;
    assert_eq!(
        refusal(trace),
        "a JSON file that holds no memory snapshot: a Chrome trace of torch.profiler, not a memory snapshot"
    );
}

#[test]
fn a_command_is_named_and_not_run() {
    let marker = std::env::temp_dir().join(format!("vramscope-executed-{}", std::process::id()));
    let marker = marker.to_str().unwrap();
    let command = format!("touch {marker}");
    let short = [&[0x8c, command.len() as u8], command.as_bytes()].concat();
    for bytes in [
        format!("cos\nsystem\n(S'{command}'\ntR.").into_bytes(),
        format!("cposix\nsystem\np0\n(S'{command}'\ntR.").into_bytes(),
        [b"\x80\x02cos\nsystem\n".to_vec(), short.clone(), b"\x85R.".to_vec()].concat(),
        [b"\x80\x04\x8c\x02os\x8c\x06system\x93".to_vec(), short.clone(), b"\x85R.".to_vec()].concat(),
        [b"\x80\x04".to_vec(), b"(".to_vec(), short.clone(), b"ios\nsystem\n.".to_vec()].concat(),
        [b"\x80\x04(cos\nsystem\n".to_vec(), short.clone(), b"o.".to_vec()].concat(),
        // Behind harmless ones, and in a file that is cut short.
        [
            b"\x80\x04ccollections\nOrderedDict\n)Rctorch._utils\n_rebuild_tensor_v2\ncos\nsystem\n".to_vec(),
            short.clone(),
        ]
        .concat(),
    ] {
        let message = refusal(&bytes);
        assert!(message.contains("system`") && message.contains("never executed"), "{message}");
    }
    // In a snapshot that is one otherwise.
    let list = corpus::bytes("recordings/_variants/legacy_list.pickle");
    let evil = [&b"\x80\x04cos\nsystem\n"[..], &short, b"\x85R0", &list[2..]].concat();
    let (document, _) = read(&evil).unwrap();
    assert!(document.warnings.iter().any(|w| w.text.contains("`os.system`")), "{:?}", document.warnings);
    assert!(!document.snapshot.devices.is_empty());
    assert!(!std::path::Path::new(marker).exists(), "the command was run");
}

/// `torch.save({"weight": tensor})`: the pickle inside its zip, and the sequence of pickles that it was before.
fn state_dict() -> Vec<u8> {
    let mut bytes = b"\x80\x02ccollections\nOrderedDict\nq\0)Rq\x01X\x06\0\0\0weightq\x02".to_vec();
    bytes.extend(
        b"ctorch._utils\n_rebuild_tensor_v2\nq\x03((X\x07\0\0\0storageq\x04ctorch\nFloatStorage\nq\x05",
    );
    bytes.extend(
        b"X\x01\0\0\x000q\x06X\x06\0\0\0cuda:0q\x07K\x04tq\x08QK\0K\x02K\x02\x86q\x09K\x02K\x01\x86q\x0a\x89",
    );
    bytes.extend(b"ccollections\nOrderedDict\nq\x0b)Rq\x0ctq\x0dRq\x0es.");
    bytes
}

#[test]
fn a_checkpoint_is_told_from_a_snapshot() {
    let message = refusal(&state_dict());
    assert!(message.contains("a dict with the keys `weight`"), "{message}");
    assert!(message.contains("torch._utils._rebuild_tensor_v2"), "{message}");
}

/// What `torch.save(…, _use_new_zipfile_serialization=False)` writes: magic number, version, system, object, keys.
fn torch_sequence(object: &[u8]) -> Vec<u8> {
    let magic = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";
    let version = b"\x80\x02M\xe9\x03.";
    let system = b"\x80\x02}q\0(X\x10\0\0\0protocol_versionq\x01M\xe9\x03X\x0d\0\0\0little_endianq\x02\x88u.";
    [magic, &version[..], system, object, b"\x80\x02]q\0."].concat()
}

#[test]
fn a_snapshot_in_the_older_layout_of_torch_save_is_read() {
    let list = corpus::bytes("recordings/_variants/legacy_list.pickle");
    let (alone, _) = read(&list).unwrap();
    let (document, _) = read(&torch_sequence(&list)).unwrap();
    assert_eq!(document.snapshot.devices[0].segments, alone.snapshot.devices[0].segments);
    assert!(document.warnings.is_empty());
    let message = refusal(&torch_sequence(&state_dict()));
    assert!(message.contains("`weight`"), "{message}");
    // Cut before the object.
    let whole = torch_sequence(b"");
    for cut in 1..whole.len() - 6 {
        read(&whole[..cut]).map(|_| ()).unwrap_err();
    }
}

#[test]
fn a_snapshot_inside_another_object_is_found() {
    let snapshot = corpus::unpacked("older/torch2.5.pickle");
    let (alone, _) = read(&snapshot).unwrap();
    let body = snapshot[2..snapshot.len() - 1].to_vec();
    for nested in [
        [b"\x80\x04}(\x8c\x04stepK\x07\x8c\x08snapshot".to_vec(), body.clone(), b"u.".to_vec()].concat(),
        [b"\x80\x04](".to_vec(), body.clone(), b"K\x05e.".to_vec()].concat(),
        [b"\x80\x04\x8c\x04step".to_vec(), body, b"\x86.".to_vec()].concat(),
    ] {
        let (document, _) = read(&nested).unwrap();
        assert_eq!(document.snapshot.n_events(), alone.snapshot.n_events());
        assert_eq!(document.snapshot.devices[0].segments, alone.snapshot.devices[0].segments);
        assert_eq!(document.warnings.len(), 1);
        assert!(document.warnings[0].text.contains("lies inside another object"), "{:?}", document.warnings);
    }
}
