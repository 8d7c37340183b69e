//! Any bytes through the pickle machine, whole and in pieces: both must end the same way.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vramscope_pickle::{Context, Error, Machine, Sink, Value};

/// Adds up what it is given, so that a difference shows.
#[derive(Debug, Default, PartialEq)]
struct Tally {
    containers: u32,
    calls: Vec<(u32, usize)>,
}

impl Sink for Tally {
    fn dict(&mut self) -> u32 {
        self.containers += 1;
        self.containers
    }
    fn list(&mut self) -> u32 {
        self.dict()
    }
    fn tuple(&mut self, items: &[Value], _: &Context<'_>) -> u32 {
        self.calls.push((0, items.len()));
        self.dict()
    }
    fn set_items(&mut self, dict: u32, pairs: &[Value], _: &Context<'_>) {
        assert!(pairs.len() % 2 == 0);
        self.calls.push((dict, pairs.len()));
    }
    fn append(&mut self, list: u32, items: &[Value], _: &Context<'_>) {
        self.calls.push((list, items.len()));
    }
}

fn run(bytes: &[u8], piece: usize) -> (Result<bool, Error>, u64, Tally) {
    let (mut machine, mut tally) = (Machine::new(), Tally::default());
    let (mut used, mut given) = (0, 0);
    let end = loop {
        given = (given + piece).min(bytes.len());
        match machine.feed(&bytes[used..given], &mut tally) {
            Err(e) => break Err(e),
            Ok(fed) if fed.done || given == bytes.len() => break Ok(fed.done),
            Ok(fed) => used += fed.consumed,
        }
    };
    if end != Ok(true) {
        machine.close(&mut tally);
    }
    (end, machine.offset(), tally)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let whole = run(rest, rest.len().max(1));
    let pieces = run(rest, usize::from(first) + 1);
    assert_eq!(whole, pieces);
});
