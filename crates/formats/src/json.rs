//! Snapshots written as JSON, with the same keys as the pickle.
//!
//! The parser is `serde_json`'s; as with pickles, no value tree is built, and a file that is cut short gives what came
//! before the cut.

mod text;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::Read;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use vramscope_model::Symbols;
use vramscope_pickle::{Atoms, Context, Kind, Sink, Value};

use crate::builder::{Builder, MAX_CONTAINERS};
use crate::error::{Error, Warning};
use crate::{Format, Parsed};
use text::Text;

pub(crate) const FORMAT: Format = Format { name: "JSON", sniff, read };

/// How many items of a list are handed over at a time.
const BATCH: usize = 1024;

fn sniff(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut significant = head.iter().filter(|b| !b.is_ascii_whitespace());
    match significant.next() {
        Some(b'{') => matches!(significant.next(), Some(b'"' | b'}') | None),
        Some(b'[') => matches!(significant.next(), Some(b'{' | b']') | None),
        _ => false,
    }
}

fn read(stream: &mut dyn Read, symbols: &mut Symbols) -> Result<Parsed, Error> {
    read_within(stream, symbols, MAX_CONTAINERS)
}

fn read_within(stream: &mut dyn Read, symbols: &mut Symbols, max_containers: usize) -> Result<Parsed, Error> {
    let offset = Cell::new(0);
    let state = RefCell::new(State {
        builder: Builder::new(symbols, max_containers),
        atoms: Atoms::default(),
        stack: Vec::new(),
        root: None,
        open: Vec::new(),
        offset: &offset,
    });
    let mut text = Text::new(stream, &offset);
    let mut parser = serde_json::Deserializer::from_reader(&mut text);
    let result = Item { state: &state, at_root: true }.deserialize(&mut parser);
    drop(parser);
    let tail = result.is_ok().then(|| text.tail());
    let State { builder, atoms, root, open, .. } = state.into_inner();
    let offset = offset.get();
    let end = result.err().map(|e| e.to_string());
    match (builder.finish(root, &atoms, end.is_some().then_some(&open)), end) {
        (Ok((snapshot, mut warnings)), end) => {
            if let Some(reason) = end {
                let events = snapshot.n_events();
                let segments: usize = snapshot.devices.iter().map(|d| d.segments.len()).sum();
                if events == 0 && segments == 0 {
                    return Err(Error::Damaged { offset, reason });
                }
                warnings.insert(
                    0,
                    Warning::at(
                        offset,
                        format!(
                            "the file is damaged or cut short: {reason}; {segments} segments and {events} events before \
                             that place were read, newer events are missing"
                        ),
                    ),
                );
            }
            Ok(Parsed { snapshot, warnings, dialect: "JSON".to_owned(), tail })
        }
        (Err(_), Some(reason)) => Err(Error::Damaged { offset, reason }),
        (Err(found), None) => Err(Error::NoSnapshot { format: "a JSON file", found }),
    }
}

struct State<'a> {
    builder: Builder<'a>,
    atoms: Atoms,
    stack: Vec<Value>,
    root: Option<Value>,
    /// The containers that were being filled when the file ended too early, innermost first.
    open: Vec<Value>,
    /// How many bytes were read.
    offset: &'a Cell<u64>,
}

const TOO_MANY: &str = "the file holds more values than are accepted";
/// Bytes of all distinct texts of a file together.
const MAX_TEXT: u64 = 1 << 30;

impl State<'_> {
    fn is_full(&self) -> bool {
        self.builder.is_full(self.offset.get()) || self.atoms.text_bytes() > MAX_TEXT
    }

    fn flush_list(&mut self, list: u32, mark: usize) {
        let cx = Context { atoms: &self.atoms, offset: self.offset.get() };
        self.builder.append(list, self.stack.get(mark..).unwrap_or(&[]), &cx);
        self.stack.truncate(mark);
    }

    fn flush_dict(&mut self, dict: u32, mark: usize) {
        let cx = Context { atoms: &self.atoms, offset: self.offset.get() };
        let items = self.stack.get(mark..).unwrap_or(&[]);
        self.builder.set_items(dict, items.get(..items.len() & !1).unwrap_or(&[]), &cx);
        self.stack.truncate(mark);
    }
}

/// Reads one value and pushes it on the stack. What was read of a value that ends early is pushed too.
#[derive(Clone, Copy)]
struct Item<'s, 'a> {
    state: &'s RefCell<State<'a>>,
    at_root: bool,
}

impl Item<'_, '_> {
    fn push(self, make: impl FnOnce(&mut Atoms) -> Value) {
        let mut state = self.state.borrow_mut();
        let value = make(&mut state.atoms);
        state.stack.push(value);
    }

    /// The outermost container is known from its first byte on, so that a cut loses nothing.
    fn note_root(self, value: Value) {
        if self.at_root {
            self.state.borrow_mut().root = Some(value);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Item<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Item<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<(), E> {
        self.push(|_| Value::bool(v));
        Ok(())
    }

    fn visit_i64<E>(self, v: i64) -> Result<(), E> {
        self.push(|atoms| atoms.integer(i128::from(v)));
        Ok(())
    }

    fn visit_u64<E>(self, v: u64) -> Result<(), E> {
        self.push(|atoms| atoms.integer(i128::from(v)));
        Ok(())
    }

    fn visit_f64<E>(self, v: f64) -> Result<(), E> {
        self.push(|atoms| atoms.real(v));
        Ok(())
    }

    fn visit_str<E>(self, v: &str) -> Result<(), E> {
        self.push(|atoms| Value::str(atoms.intern(v.as_bytes())));
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.push(|_| Value::NONE);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let (list, mark) = {
            let mut state = self.state.borrow_mut();
            (state.builder.list(), state.stack.len())
        };
        self.note_root(Value::list(list));
        let item = Item { at_root: false, ..self };
        let result = loop {
            match seq.next_element_seed(item) {
                Ok(Some(())) => {}
                Ok(None) => break Ok(()),
                Err(e) => break Err(e),
            }
            let mut state = self.state.borrow_mut();
            if state.stack.len() - mark >= BATCH {
                state.flush_list(list, mark);
                if state.is_full() {
                    break Err(serde::de::Error::custom(TOO_MANY));
                }
            }
        };
        let mut state = self.state.borrow_mut();
        if result.is_err() {
            // Half a record is none; half a list is what there is of it.
            let last = state.stack.last().copied();
            if last == state.open.last().copied() && matches!(last.map(Value::kind), Some(Kind::Dict(_))) {
                state.stack.pop();
            }
            state.open.push(Value::list(list));
        }
        state.flush_list(list, mark);
        state.stack.push(Value::list(list));
        result
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (dict, mark) = {
            let mut state = self.state.borrow_mut();
            (state.builder.dict(), state.stack.len())
        };
        self.note_root(Value::dict(dict));
        let item = Item { at_root: false, ..self };
        let result = loop {
            match map.next_key_seed(item) {
                Ok(Some(())) => {}
                Ok(None) => break Ok(()),
                Err(e) => break Err(e),
            }
            if let Err(e) = map.next_value_seed(item) {
                break Err(e);
            }
            let mut state = self.state.borrow_mut();
            if state.stack.len() - mark > 2 * BATCH {
                state.flush_dict(dict, mark);
                if state.is_full() {
                    break Err(serde::de::Error::custom(TOO_MANY));
                }
            }
        };
        let mut state = self.state.borrow_mut();
        if result.is_err() {
            state.open.push(Value::dict(dict));
        }
        state.flush_dict(dict, mark);
        state.stack.push(Value::dict(dict));
        result
    }

    fn visit_bytes<E: serde::de::Error>(self, _: &[u8]) -> Result<(), E> {
        Err(E::custom("bytes in JSON"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_more_containers_than_accepted_is_damaged() {
        for unit in ["{}", "[]"] {
            let text = format!("[{{}}{}]", format!(",{unit}").repeat(100_000));
            let read = read_within(&mut text.as_bytes(), &mut Symbols::default(), 2000);
            let Err(Error::Damaged { offset, reason }) = read.map(|_| ()) else { panic!("it was read") };
            assert!(reason.starts_with(TOO_MANY), "{reason}");
            assert!(offset < 12_000, "{offset}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_passed_over() {
        let text = b"\xef\xbb\xbf[{\"address\": 512, \"total_size\": 1024, \"blocks\": []}]";
        assert!(sniff(text));
        let parsed = read(&mut &text[..], &mut Symbols::default()).map_err(|e| e.to_string()).unwrap();
        assert_eq!(parsed.snapshot.devices[0].segments[0].addr, 512);
        assert_eq!(parsed.tail.map(|tail| tail.offset), Some(text.len() as u64));
    }

    #[test]
    fn numbers_that_python_alone_writes_are_read_as_unknown() {
        let text = b"{\"segments\": [{\"address\": 512, \"total_size\": 1024.0, \"allocated_size\": NaN, \"blocks\": []}],
            \"allocator_settings\": {\"a\": [-Infinity, Infinity,NaN], \"NaN\": \"-Infinity \\\" NaN\", \"b\": -1}}";
        let parsed = read(&mut &text[..], &mut Symbols::default()).map_err(|e| e.to_string()).unwrap();
        assert_eq!(parsed.snapshot.devices[0].segments[0].size.0, 1024);
        let texts: Vec<&str> = parsed.warnings.iter().map(|w| w.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "a size is no number of bytes; it is taken as 0",
                "there is no `device_traces` in the file, so there is no history to go by"
            ]
        );
        let settings = parsed.snapshot.settings.unwrap().all;
        let want = [("a", "?"), ("NaN", "-Infinity \\\" NaN"), ("b", "-1")];
        for ((name, shown), want) in settings.iter().zip(want) {
            assert_eq!((name.as_str(), shown.escape_debug().to_string().as_str()), want);
        }
        for wrong in ["NAN", "Inf", "-NaN", "Infinity1"] {
            let text = format!("{{\"segments\": [], \"a\": {wrong}}}");
            let read = read(&mut text.as_bytes(), &mut Symbols::default());
            assert!(matches!(read, Err(Error::Damaged { .. })), "{wrong}");
        }
    }
}
