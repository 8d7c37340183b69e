//! Snapshots written with pickle: `_dump_snapshot`, the C++ writer, `pickle.dump(memory_snapshot(), …)`, and the pickle
//! inside what `torch.save` writes, in its zip or (before torch 1.6) without one.

use std::io::Read;

use vramscope_model::{Snapshot, Symbols};
use vramscope_pickle::{Fed, Limits, Machine};

use crate::builder::{Builder, MAX_CONTAINERS};
use crate::error::{Error, Warning, excerpt};
use crate::tail::{LOOK, Tail};
use crate::{Format, Parsed};

pub(crate) const FORMAT: Format = Format { name: "pickle", sniff, read };

/// The most values that one file may ask to be kept. Two billion would be a snapshot of 500 million events.
const MAX_VALUES: u64 = 1 << 31;
/// What is read at a time: it should stay in the processor's second-level cache.
const CHUNK: usize = 128 << 10;
/// What `torch.save` without a zip writes first, as a pickle of its own.
const TORCH_MAGIC: i128 = 0x1950_a86a_20f9_469c_fc6c;

fn sniff(head: &[u8]) -> bool {
    match head {
        [0x80, protocol, ..] => *protocol <= 5,
        // Protocols 0 and 1 begin with the outermost container …
        [b'(', b'd' | b'l', ..] | [b'}' | b']', b'q' | b'r' | b'(' | b'.', ..] => true,
        // … or with a class or function, when they hold an object.
        [b'c', rest @ ..] => names_global(rest),
        _ => false,
    }
}

/// Whether there is a module and a name, each on a line, and then what an object is made with.
fn names_global(bytes: &[u8]) -> bool {
    let mut lines = bytes.splitn(3, |&b| b == b'\n');
    let is_name = |line: Option<&[u8]>| {
        line.is_some_and(|l| {
            !l.is_empty() && l.iter().all(|b| b.is_ascii_alphanumeric() || b"_.".contains(b))
        })
    };
    is_name(lines.next())
        && is_name(lines.next())
        && matches!(lines.next(), Some([b'(' | b')' | b'q' | b'p' | b'r' | b'.', ..]))
}

fn read(stream: &mut dyn Read, symbols: &mut Symbols) -> Result<Parsed, Error> {
    read_within(stream, symbols, MAX_CONTAINERS)
}

fn read_within(stream: &mut dyn Read, symbols: &mut Symbols, max_containers: usize) -> Result<Parsed, Error> {
    let mut source = Chunks { stream, buf: vec![0; CHUNK], start: 0, end: 0, error: None };
    // What `torch.save` without a zip puts before the object: a magic number, a version, a description of the system.
    let mut to_skip = 0;
    let mut is_sequence = false;
    loop {
        let mut builder = Builder::new(symbols, max_containers);
        let mut machine = Machine::with_limits(Limits { values: MAX_VALUES, ..Limits::default() });
        let end = run(&mut machine, &mut builder, &mut source);
        let is_magic = machine.root().and_then(|v| v.int(machine.atoms())) == Some(TORCH_MAGIC);
        if is_magic {
            to_skip = 2;
            is_sequence = true;
            continue;
        }
        if to_skip > 0 && end.is_ok() {
            to_skip -= 1;
            continue;
        }
        let tail = end.is_ok().then(|| source.tail(machine.offset(), is_sequence));
        return finish(machine, builder, end, tail);
    }
}

/// Feeds the machine to the end of the pickle, of the bytes, or of what makes sense.
fn run(machine: &mut Machine, builder: &mut Builder<'_>, source: &mut Chunks<'_>) -> Result<(), Damage> {
    loop {
        let fed: Fed = machine.feed(source.bytes(), builder).map_err(|e| Damage {
            offset: e.offset,
            reason: e.kind.to_string(),
            is_end: false,
        })?;
        source.advance(fed.consumed);
        if fed.done {
            return Ok(());
        }
        if !source.fill(fed.needed) {
            let reason = match source.error.take() {
                Some(e) => e.to_string(),
                None if source.bytes().is_empty() => "the file ends before the pickle does".to_owned(),
                None => format!(
                    "the file ends inside a value ({} bytes are there of {} declared)",
                    source.bytes().len(),
                    fed.needed
                ),
            };
            return Err(Damage { offset: machine.offset(), reason, is_end: true });
        }
    }
}

/// Where reading stopped, and why.
struct Damage {
    offset: u64,
    reason: String,
    /// The bytes ran out, as opposed to making no sense.
    is_end: bool,
}

fn finish(
    mut machine: Machine,
    mut builder: Builder<'_>,
    end: Result<(), Damage>,
    tail: Option<Tail>,
) -> Result<Parsed, Error> {
    let protocol = machine.protocol();
    let (root, open) = if let Ok(()) = end {
        (machine.root(), None)
    } else {
        let cut = machine.close(&mut builder);
        (cut.root, Some(cut.open))
    };
    let asked = asked_for(&machine);
    let outcome: Result<(Snapshot, Vec<Warning>), String> =
        builder.finish(root, machine.atoms(), open.as_deref());
    let (snapshot, mut warnings) = match (outcome, &end) {
        (Ok(both), _) => both,
        (Err(_), Err(damage)) => {
            return Err(Error::Damaged { offset: damage.offset, reason: with(&damage.reason, asked) });
        }
        (Err(found), Ok(())) => {
            return Err(Error::NoSnapshot { format: "a pickle", found: with(&found, asked) });
        }
    };
    if let Err(damage) = end {
        let events = snapshot.n_events();
        let segments: usize = snapshot.devices.iter().map(|d| d.segments.len()).sum();
        if events == 0 && segments == 0 {
            return Err(Error::Damaged { offset: damage.offset, reason: with(&damage.reason, asked) });
        }
        let what = if damage.is_end { "cut short" } else { "damaged" };
        warnings.insert(
            0,
            Warning::at(
                damage.offset,
                format!(
                    "the file is {what}: {}; {segments} segments and {events} events before that place were read, \
                     newer events are missing",
                    damage.reason
                ),
            ),
        );
    }
    warnings.extend(asked.map(Warning::new));
    Ok(Parsed { snapshot, warnings, dialect: format!("pickle protocol {protocol}"), tail })
}

fn with(reason: &str, asked: Option<String>) -> String {
    match asked {
        Some(asked) => format!("{reason}; {asked}"),
        None => reason.to_owned(),
    }
}

/// Says which classes and functions the pickle asks for, if any. Those that do not belong to tensors come first: they
/// are what someone put there.
fn asked_for(machine: &Machine) -> Option<String> {
    const SHOWN: usize = 3;
    let usual = |name: &str| {
        let module = name.split([' ', '.']).next();
        matches!(module, Some("collections" | "torch" | "numpy" | "_codecs"))
    };
    let mut names: Vec<&str> = machine.globals().collect();
    names.sort_by_key(|name| usual(name));
    let shown: Vec<String> =
        names.iter().take(SHOWN).map(|name| format!("`{}`", excerpt(&name.replacen(' ', ".", 1)))).collect();
    let more = match names.len().saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let what = if names.len() == 1 { "the Python object" } else { "the Python objects" };
    (!names.is_empty()).then(|| {
        format!(
            "the pickle asks for {what} {}{more}; pickles are never executed here, so that was passed over",
            shown.join(", ")
        )
    })
}

/// A stream, a piece at a time.
struct Chunks<'a> {
    stream: &'a mut dyn Read,
    buf: Vec<u8>,
    start: usize,
    end: usize,
    /// Why the stream ended, if not by itself.
    error: Option<std::io::Error>,
}

impl Chunks<'_> {
    fn bytes(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or(&[])
    }

    fn advance(&mut self, n: usize) {
        self.start += n;
    }

    /// What was read beyond a pickle. In the layout that `torch.save` had before its zip, more belongs there.
    fn tail(&mut self, offset: u64, is_sequence: bool) -> Tail {
        let rest = self.bytes();
        let (look, read) = (rest.get(..LOOK).unwrap_or(rest).to_vec(), rest.len() as u64);
        Tail {
            offset,
            look,
            read,
            value: "pickle",
            is_another: sniff,
            error: self.error.take(),
            is_expected: is_sequence,
        }
    }

    /// Gets more bytes, at least as many as needed. Returns whether they are there.
    fn fill(&mut self, needed: usize) -> bool {
        self.buf.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < needed.max(1) {
            // The buffer grows as bytes come, not as they are promised.
            if self.end == self.buf.len() {
                self.buf.resize(self.buf.len() * 2, 0);
            }
            if !self.read_once() {
                return false;
            }
        }
        // One value more than needed is no use, a full buffer is. A value that is longer than the buffer is looked at
        // anew each time, so each time there must be a good part more of it.
        while self.end < self.buf.len() / 4 * 3 && self.read_once() {}
        true
    }

    fn read_once(&mut self) -> bool {
        let Some(room) = self.buf.get_mut(self.end..) else { return false };
        loop {
            match self.stream.read(room) {
                Ok(0) => return false,
                Ok(n) => {
                    self.end += n;
                    return true;
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.error = Some(e);
                    return false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_more_containers_than_accepted_is_damaged() {
        let nested = [b"\x80\x04".to_vec(), vec![b']'; 1_000_000]].concat();
        let read = read_within(&mut &nested[..], &mut Symbols::default(), 1000);
        let Err(Error::Damaged { offset, reason }) = read.map(|_| ()) else { panic!("it was read") };
        assert_eq!(reason, "the file holds more values than are accepted");
        // The limit is looked at between pieces.
        assert!(offset < 3 * CHUNK as u64, "{offset}");
    }

    #[test]
    fn a_pickled_object_is_told_from_text() {
        assert!(sniff(b"cposix\nsystem\n(S'id'\ntR."));
        assert!(sniff(b"c__main__\nRun\np0\n."));
        assert!(!sniff(b"cat\ndog\nmouse\n"));
        assert!(!sniff(b"c\n\n("));
        assert!(!sniff(b"case,step\nfoo,1\n(none)\n"));
    }
}
