//! Files that end too early keep all that came before the cut.

use std::collections::BTreeMap;

use vramscope_formats::{Document, Error};
use vramscope_model::{Event, Snapshot};
use vramscope_pickle::{Atoms, Context, Kind, Machine, Sink, Value};

use crate::{corpus, read};

/// Pickles whose writers set all items of a dict at once, so that an event is complete or not there.
const PICKLES: &[&str] = &[
    "older/torch2.14_host.pickle",
    "older/torch2.5_two_devices.pickle",
    "older/xpu_cpp.pickle",
    "recordings/_variants/annotations.pickle.zst",
    "recordings/_variants/cpp_writer.pickle.zst",
    "recordings/_variants/proto2.pickle.zst",
    "recordings/_variants/proto5_gz.pickle.gz",
    "recordings/_variants/two_devices.pickle.zst",
    "recordings/cycle_sawtooth/step39.pickle",
];

/// The same content, set key by key in protocol 0, and as JSON.
const KEY_BY_KEY: &[&str] = &[
    "older/torch2.5_proto0.pickle",
    "older/torch2.5_proto1.pickle",
    "recordings/_variants/json_full.json.zst",
];

/// Files that are cut with their wrapping on.
const WRAPPED: &[&str] = &[
    "recordings/_variants/proto5_gz.pickle.gz",
    "recordings/_variants/proto4_xz.pickle.xz",
    "recordings/_variants/torch_saved_full.pt",
    "recordings/_variants/json_full.json.zst",
    "recordings/gpt_train/step5.pickle.zst",
];

/// Where files are cut: at every 1,000th byte, and at every byte of the first few and the last.
fn cuts(length: usize) -> impl Iterator<Item = usize> {
    let end = length.saturating_sub(64);
    (0..length).filter(move |&n| n < 200 || n % 1000 == 0 || n > end)
}

#[test]
fn a_cut_pickle_keeps_every_event_before_the_cut() {
    for name in PICKLES {
        let bytes = corpus::unpacked(name);
        let whole = Whole::of(name, &bytes);
        for cut in cuts(bytes.len()) {
            let at = format!("{name} cut at {cut}");
            let expected = Completed::count(&bytes[..cut]);
            match read(&bytes[..cut]) {
                Ok((document, _)) => {
                    assert!(document.snapshot.truncated, "{at}");
                    assert_eq!(
                        expected,
                        whole.check(&document, cut, &at),
                        "{at}: events of devices and host"
                    );
                }
                Err(e) => assert_eq!(expected, 0, "{at}: {e}"),
            }
        }
    }
}

#[test]
fn a_cut_file_that_fills_dicts_key_by_key_keeps_what_came_before() {
    for name in KEY_BY_KEY {
        let bytes = corpus::unpacked(name);
        let whole = Whole::of(name, &bytes);
        let mut before = 0;
        // Every 1,000th byte; of a file of megabytes fewer, as each cut reads all that is before it.
        let step = (bytes.len() / 150).max(1000);
        for cut in (0..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
            let at = format!("{name} cut at {cut}");
            match read(&bytes[..cut]) {
                Ok((document, _)) => {
                    let n = whole.check(&document, cut, &at);
                    assert!(n >= before, "{at}: {n} events, {before} at an earlier cut");
                    // An event takes more than 50 bytes, so that many at most lie between two cuts: none comes late.
                    assert!(n <= before + step / 50, "{at}: {n} events, only {before} at an earlier cut");
                    before = n;
                }
                Err(e) => assert_eq!(before, 0, "{at}: {e}"),
            }
        }
        assert_eq!(before, whole.n_events(), "{name}: all events are there before the last byte");
    }
}

#[test]
fn a_cut_file_in_a_container_keeps_what_came_before() {
    for name in WRAPPED {
        let bytes = corpus::bytes(name);
        let whole = Whole::of(name, &bytes);
        let mut before = 0;
        let mut last = None;
        for cut in cuts(bytes.len()) {
            let at = format!("{name} cut at {cut}");
            match read(&bytes[..cut]) {
                Ok((document, _)) => {
                    let n = whole.check(&document, usize::MAX, &at);
                    // What the container has behind the pickle is of no consequence.
                    assert!(!document.warnings.is_empty() || n == whole.n_events(), "{at}: nothing was said");
                    assert!(n >= before, "{at}: {n} events, {before} at an earlier cut");
                    before = n;
                    last = Some(n);
                }
                Err(Error::Empty) => assert_eq!(cut, 0, "{at}"),
                Err(e) => assert!(last.is_none(), "{at}: {e}"),
            }
        }
        // The last block of a compressed stream is unpacked as a whole or not at all.
        assert!(before * 5 >= whole.n_events() * 4, "{name}: {before} of {} events", whole.n_events());
    }
}

/// What an undamaged file holds.
struct Whole {
    snapshot: Snapshot,
    events: BTreeMap<u32, Vec<Event>>,
}

impl Whole {
    fn of(name: &str, bytes: &[u8]) -> Self {
        let (document, _) = read(bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(!document.snapshot.truncated, "{name}");
        let events =
            document.snapshot.devices.iter().map(|d| (d.ordinal, d.events.iter().collect())).collect();
        Self { snapshot: document.snapshot, events }
    }

    fn n_events(&self) -> usize {
        self.events.values().map(Vec::len).sum()
    }

    /// Checks that a cut file gives a beginning of the whole, and returns how many events, host events included.
    fn check(&self, document: &Document, cut: usize, at: &str) -> usize {
        let part = &document.snapshot;
        for device in &part.devices {
            let events: Vec<Event> = device.events.iter().collect();
            let all = self.events.get(&device.ordinal).map_or(&[][..], |v| v);
            assert!(all.starts_with(&events), "{at}: the events of device {} differ", device.ordinal);
            let segments = self.snapshot.device(device.ordinal).map_or(&[][..], |d| &d.segments);
            for segment in &device.segments {
                assert!(segments.contains(segment), "{at}: {segment:?} is none of the file's");
            }
        }
        let times: Vec<_> = self.snapshot.annotations.iter().collect();
        assert!(part.annotations.iter().all(|a| times.contains(&a)), "{at}: a mark is none of the file's");
        for warning in &document.warnings {
            assert!(warning.offset.is_none_or(|o| o <= cut as u64), "{at}: {warning}");
        }
        part.n_events() + part.host.map_or(0, |h| h.events)
    }
}

/// Counts the events that are complete, knowing nothing but that they have an `action`.
#[derive(Default)]
struct Completed {
    n: usize,
    /// A dict may be set again; it counts once.
    dicts: Vec<bool>,
}

impl Completed {
    fn count(bytes: &[u8]) -> usize {
        let mut counted = Self::default();
        let fed = Machine::new().feed(bytes, &mut counted).unwrap();
        assert!(!fed.done);
        counted.n
    }
}

impl Sink for Completed {
    fn dict(&mut self) -> u32 {
        self.dicts.push(false);
        self.dicts.len() as u32 - 1
    }
    fn list(&mut self) -> u32 {
        0
    }
    fn tuple(&mut self, _: &[Value], _: &Context<'_>) -> u32 {
        0
    }
    fn set_items(&mut self, dict: u32, pairs: &[Value], cx: &Context<'_>) {
        let is_event = pairs.chunks(2).any(|pair| text(pair[0], cx.atoms) == Some("action"));
        if is_event && !std::mem::replace(&mut self.dicts[dict as usize], true) {
            self.n += 1;
        }
    }
    fn append(&mut self, _: u32, _: &[Value], _: &Context<'_>) {}
}

fn text(value: Value, atoms: &Atoms) -> Option<&str> {
    match value.kind() {
        Kind::Str(id) => Some(atoms.str(id)),
        _ => None,
    }
}
