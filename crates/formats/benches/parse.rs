//! How fast a large snapshot is read, beside the floor: a bare walk over the same opcodes that keeps nothing.
//!
//! `cargo bench -p vramscope-formats`; `scripts/bench_against_pickle.py` compares the whole program with Python.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark reads its file and fails loudly"
)]

use std::hint::black_box;
use std::io::Cursor;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use vramscope_model::Symbols;
use vramscope_pickle::{Context, Machine, Sink, Value};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/large/gpt_long_python.pickle.zst");

fn parse(c: &mut Criterion) {
    let packed = std::fs::read(FILE).unwrap();
    let bytes = zstd::decode_all(&packed[..]).unwrap();
    let mut group = c.benchmark_group("gpt_long_python");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.sample_size(20).measurement_time(Duration::from_secs(12));
    group.bench_function("opcode walk", |b| b.iter(|| walk(black_box(&bytes))));
    group.bench_function("machine", |b| b.iter(|| run_machine(black_box(&bytes))));
    group.bench_function("read", |b| b.iter(|| read(black_box(&bytes))));
    group.bench_function("read zstd", |b| b.iter(|| read(black_box(&packed))));
    group.finish();
}

fn read(bytes: &[u8]) -> usize {
    let mut symbols = Symbols::default();
    vramscope_formats::read(Cursor::new(bytes), &mut symbols).unwrap().snapshot.n_events()
}

/// The machine with a sink that keeps nothing.
fn run_machine(bytes: &[u8]) -> u32 {
    struct Count(u32);
    impl Sink for Count {
        fn dict(&mut self) -> u32 {
            self.0 += 1;
            self.0
        }
        fn list(&mut self) -> u32 {
            self.0
        }
        fn tuple(&mut self, _: &[Value], _: &Context<'_>) -> u32 {
            self.0
        }
        fn set_items(&mut self, _: u32, _: &[Value], _: &Context<'_>) {}
        fn append(&mut self, _: u32, _: &[Value], _: &Context<'_>) {}
    }
    let (mut machine, mut count) = (Machine::new(), Count(0));
    let (mut used, mut given) = (0, 0);
    loop {
        // In pieces, as a file is read: the machine looks at its limits between them.
        given = (given + (128 << 10)).min(bytes.len());
        let fed = machine.feed(&bytes[used..given], &mut count).unwrap();
        used += fed.consumed;
        if fed.done {
            return count.0;
        }
    }
}

/// Steps over every opcode by the size of its argument.
fn walk(bytes: &[u8]) -> u64 {
    let (mut at, mut n) = (0, 0);
    while let Some(&opcode) = bytes.get(at) {
        n += 1;
        let short = |at: usize| bytes.get(at + 1).map_or(0, |&b| usize::from(b));
        at += match opcode {
            b'K' | b'h' | b'q' | 0x80 => 2,
            b'M' => 3,
            b'J' | b'j' | b'r' => 5,
            b'G' | 0x95 => 9,
            b'U' | b'C' | 0x8a | 0x8c => 2 + short(at),
            b'X' | b'T' | b'B' | 0x8b => 5 + short(at),
            b'.' => return n,
            _ => 1,
        };
    }
    n
}

criterion_group!(benches, parse);
criterion_main!(benches);
