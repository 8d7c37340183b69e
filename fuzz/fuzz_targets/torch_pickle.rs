//! Pickles made of a snapshot's own words, in any order and with any references.
#![no_main]

use std::io::Cursor;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use vramscope_model::Symbols;

const WORDS: &[&str] = &[
    "action",
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "oom",
    "snapshot",
    "addr",
    "device_free",
    "size",
    "stream",
    "time_us",
    "frames",
    "compile_context",
    "user_metadata",
    "internal_metadata",
    "pool_id",
    "filename",
    "line",
    "name",
    "device",
    "address",
    "total_size",
    "allocated_size",
    "active_size",
    "requested_size",
    "segment_type",
    "segment_pool_id",
    "is_expandable",
    "blocks",
    "state",
    "active_allocated",
    "active_pending_free",
    "inactive",
    "history",
    "real_size",
    "stage",
    "START",
    "END",
    "segments",
    "device_traces",
    "allocator_settings",
    "external_annotations",
    "host_segments",
    "host_traces",
    "roundup_power2_divisions",
    "PYTORCH_CUDA_ALLOC_CONF",
];

#[derive(Arbitrary, Debug)]
enum Piece {
    Word(u8),
    Text(String),
    Int(i64),
    Float(f64),
    Opcode(u8),
    Put(u8),
    Get(u8),
    /// A key and where its value comes from.
    Field(u8, Field),
    Dict(Vec<(u8, Field)>),
    List(Vec<Field>),
}

#[derive(Arbitrary, Debug)]
enum Field {
    Word(u8),
    Int(i32),
    Get(u8),
    Empty,
}

fn word(index: u8, out: &mut Vec<u8>) {
    let word = WORDS[usize::from(index) % WORDS.len()];
    out.extend([0x8c, word.len() as u8]);
    out.extend(word.as_bytes());
}

impl Field {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Word(index) => word(*index, out),
            Self::Int(v) => {
                out.push(b'J');
                out.extend(v.to_le_bytes());
            }
            Self::Get(slot) => out.extend([b'h', slot % 16]),
            Self::Empty => out.push(b']'),
        }
    }
}

impl Piece {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Word(index) => word(*index, out),
            Self::Text(text) => {
                out.push(b'X');
                out.extend((text.len() as u32).to_le_bytes());
                out.extend(text.as_bytes());
            }
            Self::Int(v) => {
                out.extend([0x8a, 8]);
                out.extend(v.to_le_bytes());
            }
            Self::Float(v) => {
                out.push(b'G');
                out.extend(v.to_be_bytes());
            }
            Self::Opcode(index) => {
                let opcodes = b"(]}ueas012ltd)\x85\x86\x87\x88\x89\x8f\x90\x91\x94NRb";
                out.push(opcodes[usize::from(*index) % opcodes.len()]);
            }
            Self::Put(slot) => out.extend([b'q', slot % 16]),
            Self::Get(slot) => out.extend([b'h', slot % 16]),
            Self::Field(key, field) => {
                word(*key, out);
                field.write(out);
                out.push(b's');
            }
            Self::Dict(fields) => {
                out.extend(b"}(");
                for (key, field) in fields {
                    word(*key, out);
                    field.write(out);
                }
                out.push(b'u');
            }
            Self::List(items) => {
                out.extend(b"](");
                items.iter().for_each(|item| item.write(out));
                out.push(b'e');
            }
        }
    }
}

fuzz_target!(|pieces: Vec<Piece>| {
    // Sixteen containers that everything may refer to, then a root, then whatever comes.
    let mut bytes = b"\x80\x04".to_vec();
    for _ in 0..8 {
        bytes.extend(b"]\x940}\x940");
    }
    bytes.extend(b"}");
    pieces.iter().for_each(|piece| piece.write(&mut bytes));
    for end in [bytes.len(), bytes.len() / 2] {
        let _ = vramscope_formats::read(Cursor::new(&bytes[..end]), &mut Symbols::default());
    }
    bytes.push(b'.');
    let _ = vramscope_formats::read(Cursor::new(&bytes), &mut Symbols::default());
});
