//! A small language for writing down what an allocator did, for tests and examples.
//!
//! One line an event; names stand for blocks:
//! ```text
//! old w 4MiB @train.py:3:<module>        a block from before the recording
//! alloc a 512MiB stream=1 @train.py:10:forward < train.py:30:main
//! free a @train.py:12:forward            requested and completed at once
//! request a                              requested only …
//! complete a                             … and completed
//! oom 2GiB
//! segment 20MiB                          a segment obtained from the driver
//! start Optimizer.step#SGD.step          a mark, and its end
//! end Optimizer.step#SGD.step
//! ```
//! Blocks lie side by side in one large segment; an address is never used twice. Each event takes 100 µs.

use rustc_hash::FxHashMap;

use crate::annotation::{Annotation, Stage};
use crate::event::{Action, Event};
use crate::recording::Recording;
use crate::segment::{Block, BlockState, PoolKind, Segment};
use crate::snapshot::{Device, Features, Snapshot};
use crate::symbols::{PoolId, StackId, StreamId, Symbols};
use crate::units::{Bytes, TimeUs};
use crate::{Settings, join};

const BASE: u64 = 0x7f00_0000_0000;

/// What a script stands for, as a snapshot.
///
/// # Errors
/// The number of the first line that does not parse, and what is wrong with it.
pub fn snapshot(symbols: &mut Symbols, text: &str) -> Result<Snapshot, String> {
    let mut writer = Writer {
        symbols,
        device: Device::default(),
        annotations: vec![],
        blocks: vec![],
        by_name: FxHashMap::default(),
        time: 1_000_000,
        end: BASE,
    };
    for (number, line) in text.lines().enumerate() {
        writer
            .line(line.trim())
            .ok_or_else(|| format!("line {}: `{}` is not a line of a script", number + 1, line.trim()))?;
    }
    Ok(writer.finish())
}

/// What a script stands for, as a recording of one snapshot.
///
/// # Errors
/// As [`snapshot`].
pub fn recording(symbols: &mut Symbols, text: &str) -> Result<Recording, String> {
    Ok(join(vec![snapshot(symbols, text)?], None))
}

struct Writer<'a> {
    symbols: &'a mut Symbols,
    device: Device,
    annotations: Vec<Annotation>,
    blocks: Vec<Block>,
    by_name: FxHashMap<String, usize>,
    time: i64,
    end: u64,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) -> Option<()> {
        let line = line
            .split('#')
            .next()
            .filter(|_| !line.contains("Step#") && !line.contains("step#"))
            .unwrap_or(line);
        let (words, stack) = match line.split_once('@') {
            Some((words, stack)) => (words, self.stack(stack)?),
            None => (line, StackId::EMPTY),
        };
        let mut words = words.split_whitespace();
        let Some(verb) = words.next() else { return Some(()) };
        match verb {
            "alloc" | "old" => {
                let name = words.next()?;
                let size = parse_size(words.next()?)?;
                let stream = match words.next() {
                    Some(word) => self.symbols.stream(word.strip_prefix("stream=")?.parse().ok()?),
                    None => StreamId(0),
                };
                let rounded = Settings::round(None, size);
                self.by_name.insert(name.to_owned(), self.blocks.len());
                self.blocks.push(Block {
                    addr: self.end,
                    size: Bytes(rounded),
                    requested: Some(Bytes(size)),
                    state: BlockState::Allocated,
                    stack,
                });
                let addr = self.end;
                self.end += rounded;
                if verb == "alloc" {
                    self.event(Action::Alloc, addr, size, stream, stack);
                }
            }
            "free" | "request" | "complete" => {
                let block = *self.by_name.get(words.next()?)?;
                let Block { addr, requested, .. } = self.blocks[block];
                let size = requested?.0;
                if verb != "complete" {
                    self.event(Action::FreeRequested, addr, size, StreamId(0), stack);
                    self.blocks[block].state = BlockState::PendingFree;
                }
                if verb != "request" {
                    self.event(Action::FreeCompleted, addr, size, StreamId(0), stack);
                    self.blocks[block].state = BlockState::Inactive;
                }
            }
            "segment" => {
                let size = parse_size(words.next()?)?;
                self.event(Action::SegmentAlloc, self.end, size, StreamId(0), stack);
            }
            "oom" => {
                let size = parse_size(words.next()?)?;
                self.event(Action::Oom, 0, size, StreamId(0), stack);
            }
            "start" | "end" => {
                let name = self.symbols.string(words.next()?);
                let stage = if verb == "start" { Stage::Start } else { Stage::End };
                self.annotations.push(Annotation { name, stage, device: 0, time: TimeUs(self.time) });
                self.time += 1;
            }
            _ => return None,
        }
        words.next().is_none().then_some(())
    }

    fn event(&mut self, action: Action, addr: u64, size: u64, stream: StreamId, stack: StackId) {
        self.device.events.push(Event {
            action,
            addr,
            size: Bytes(size),
            time: TimeUs(self.time),
            stream,
            pool: PoolId::DEFAULT,
            stack,
        });
        self.time += 100;
    }

    fn stack(&mut self, text: &str) -> Option<StackId> {
        let mut frames = Vec::new();
        for frame in text.split(" < ").map(str::trim).filter(|f| !f.is_empty()) {
            let mut parts = frame.splitn(3, ':');
            let (file, line) = (parts.next()?, parts.next()?.parse().ok()?);
            let name = parts.next().unwrap_or("f").to_owned();
            frames.push(self.symbols.frame(file, &name, line));
        }
        Some(self.symbols.stack(&frames))
    }

    fn finish(mut self) -> Snapshot {
        let mut segment = Segment {
            addr: BASE,
            size: Bytes(self.end - BASE),
            stated_allocated: Bytes::ZERO,
            stated_active: Bytes::ZERO,
            stream: StreamId(0),
            kind: PoolKind::Large,
            pool: PoolId::DEFAULT,
            expandable: false,
            stack: StackId::EMPTY,
            blocks: self.blocks,
        };
        segment.stated_allocated = segment.bytes_in(BlockState::Allocated);
        segment.stated_active = segment.stated_allocated + segment.bytes_in(BlockState::PendingFree);
        self.device.segments = if segment.blocks.is_empty() { vec![] } else { vec![segment] };
        let features = Features {
            time: true,
            settings: true,
            annotations: true,
            frames: true,
            traces: true,
            block_address: true,
            requested_size: true,
            stream: true,
            ..Features::default()
        };
        Snapshot {
            devices: vec![self.device],
            annotations: self.annotations,
            features,
            ..Snapshot::default()
        }
    }
}

fn parse_size(word: &str) -> Option<u64> {
    let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    let n: u64 = word.get(..digits)?.parse().ok()?;
    let unit = match word.get(digits..)? {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    n.checked_shl(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_becomes_a_recording() {
        let mut symbols = Symbols::default();
        let recording = recording(
            &mut symbols,
            "old w 4MiB @train.py:3:<module>
             alloc a 513 @lib.py:1:f < train.py:10:main
             start Optimizer.step#SGD.step
             free a @train.py:11:main
             alloc b 1KiB stream=7",
        );
        let recording = recording.unwrap();
        let device = &recording.devices[0];
        assert_eq!(device.events.len(), 4);
        let state = device.last_state().unwrap();
        assert_eq!(state.bytes_in(BlockState::Allocated), Bytes((4 << 20) + 1024));
        assert!(state.segments[0].is_tiled());
        assert_eq!(recording.annotations.len(), 1);
        assert!(snapshot(&mut symbols, "alloc a").is_err());
    }
}
