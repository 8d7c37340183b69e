//! Files with wrong bytes in them, and files of nothing but wrong bytes that look right.

use proptest::prelude::*;

use crate::{corpus, read};

const FILES: &[&str] = &[
    "older/nightly2024_user_defined.pickle",
    "older/torch1.13_step4.pickle",
    "older/torch2.1_expandable.pickle",
    "older/torch2.14_host.pickle",
    "older/torch2.15.pickle",
    "older/torch2.5_cpp.pickle",
    "older/torch2.5_proto1.pickle",
    "older/torch_npu_workspace.pickle",
    "recordings/_variants/legacy_list.pickle",
    "recordings/_variants/no_history.pickle",
    "recordings/_variants/proto4_xz.pickle.xz",
    "recordings/_variants/proto5_gz.pickle.gz",
    "recordings/_variants/context_none.pickle.zst",
    "recordings/_variants/json_full.json.zst",
    "recordings/_variants/torch_saved_full.pt",
    "recordings/legacy_pt/snapshot_0.pt",
];

/// A small generator of numbers, so that a failure comes back on every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.roll(256) as u8
    }

    /// Does one kind of damage.
    pub(crate) fn damage(&mut self, bytes: &mut Vec<u8>) {
        let at = self.roll(bytes.len());
        let end = (at + 1 + self.roll(64)).min(bytes.len());
        match self.roll(8) {
            0 | 1 => bytes[at] ^= 1 << self.roll(8),
            2 => bytes[at] = self.byte(),
            3 => {
                for _ in 0..8 {
                    let at = self.roll(bytes.len());
                    bytes[at] = self.byte();
                }
            }
            4 => drop(bytes.drain(at..end)),
            5 => {
                let copy = bytes[at..end].to_vec();
                let to = self.roll(bytes.len());
                bytes.splice(to..to, copy);
            }
            6 => {
                let word =
                    [[0xff; 8], [0; 8], *b"\xff\xff\xff\x7f\0\0\0\0", *b"\0\0\0\0\0\0\0\x80"][self.roll(4)];
                let n = self.roll(9).min(bytes.len() - at);
                bytes[at..at + n].copy_from_slice(&word[..n]);
            }
            _ => {
                let noise: Vec<u8> = (0..self.roll(32)).map(|_| self.byte()).collect();
                bytes.splice(at..at, noise);
            }
        }
    }
}

#[test]
fn a_damaged_file_is_read_in_part_or_refused() {
    let mut dice = Dice(0x5eed);
    for name in FILES {
        let files = [corpus::bytes(name), corpus::unpacked(name)];
        let (mut read_on, mut warned) = (0, 0);
        for round in 0..300 {
            // Every third time within what is compressed: that mostly ends in the container.
            let mut bytes = files[usize::from(round % 3 != 0)].clone();
            for _ in 0..=dice.roll(3) {
                dice.damage(&mut bytes);
            }
            if let Ok((document, _)) = read(&bytes) {
                read_on += 1;
                warned += usize::from(!document.warnings.is_empty());
            }
        }
        // Most damage lies somewhere in the middle, and what comes before is of use.
        assert!(read_on > 30, "{name}: only {read_on} of 300 damaged files gave anything");
        assert!(warned > 10, "{name}: {warned} of {read_on} were warned of");
    }
}

/// A piece of a pickle as a snapshot might hold it, in any order.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "action",
        "alloc",
        "oom",
        "addr",
        "size",
        "frames",
        "filename",
        "line",
        "name",
        "state",
        "blocks",
        "segments",
        "device_traces",
        "total_size",
        "history",
        "real_size",
        "stage",
        "time_us",
        "pool_id",
        "segment_pool_id",
        "device",
        "allocator_settings",
        "roundup_power2_divisions",
        "external_annotations",
        "host_segments",
        "host_traces",
        "address",
        "stream",
        "requested_size",
        "user_metadata",
        "compile_context",
        "active_allocated",
        "device_free",
    ];
    let word = prop::sample::select(words.to_vec()).prop_map(|w| {
        let mut piece = vec![0x8c, w.len() as u8];
        piece.extend(w.as_bytes());
        piece
    });
    let opcode = prop::sample::select(b"(}]ues0a12)lotd\x85\x86\x87\x88\x89\x8f\x90\x91\x94RbN".to_vec())
        .prop_map(|op| vec![op]);
    let memo = (prop::sample::select(b"hq".to_vec()), 0..12u8).prop_map(|(op, slot)| vec![op, slot]);
    let number = prop_oneof![
        any::<u8>().prop_map(|v| vec![b'K', v]),
        any::<i32>().prop_map(|v| [vec![b'J'], v.to_le_bytes().to_vec()].concat()),
        any::<i64>().prop_map(|v| [vec![0x8a, 8], v.to_le_bytes().to_vec()].concat()),
        any::<f64>().prop_map(|v| [vec![b'G'], v.to_be_bytes().to_vec()].concat()),
    ];
    prop_oneof![4 => word, 4 => opcode, 3 => memo, 2 => number]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn opcodes_in_any_order_do_no_harm(pieces in prop::collection::vec(piece(), 0..200)) {
        let bytes = [b"\x80\x04}(\x8c\x0ddevice_traces]]".to_vec(), pieces.concat()].concat();
        let _ = read(&bytes);
        let _ = read(&[b"\x80\x04".to_vec(), pieces.concat(), b".".to_vec()].concat());
    }

    #[test]
    fn any_bytes_behind_a_known_beginning_do_no_harm(
        head in prop::sample::select(vec![
            &b"\x80\x04"[..], b"\x80\x02}", b"(dp0\n", b"[{", b"{\"segments\":[", b"PK\x03\x04", b"\x1f\x8b\x08\0",
            b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"cposix\nsystem\n(", b"",
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let _ = read(&[head, &rest].concat());
    }

    #[test]
    fn json_of_any_shape_does_no_harm(text in r#"(\{"(segments|device_traces|action|frames|blocks|name)":|\[|\]|\}|,|1e9|-5|"alloc"|null|\{\}){0,60}"#) {
        let _ = read(format!("{{\"segments\":[{text}").as_bytes());
    }
}
