//! What came and went at each line, over all devices.

use std::collections::BTreeMap;

use vramscope_detect::Turnover;
use vramscope_model::{FrameId, Symbols};

use crate::analysis::LineTurnover;
use crate::place;

/// What is known of each line so far.
#[derive(Default)]
pub(super) struct Sums {
    lines: BTreeMap<FrameId, Turnover>,
    is_unknown: bool,
}

impl Sums {
    /// Adds what is known of a device. One that does not acquit spoils all: what a line keeps may lie on another device.
    pub(super) fn add(&mut self, device: Option<Vec<Turnover>>) {
        self.is_unknown |= device.is_none();
        for line in device.unwrap_or_default() {
            let Some(sum) = self.lines.get_mut(&line.frame) else {
                self.lines.insert(line.frame, line);
                continue;
            };
            sum.allocations += line.allocations;
            sum.steps = sum.steps.max(line.steps);
            sum.most_held = sum.most_held.max(line.most_held);
            sum.from_first_step += line.from_first_step;
            sum.from_first_step_bytes += line.from_first_step_bytes;
            sum.is_settled &= line.is_settled;
        }
    }

    /// Ends a process, of which nothing is known where no device of it was looked at.
    pub(super) fn end_process(&mut self, is_idle: bool) {
        self.is_unknown |= is_idle;
    }

    /// Each line, for showing; none where anything is unknown.
    pub(super) fn by_line(self, symbols: &Symbols) -> Vec<LineTurnover> {
        let known = self.lines.into_values().filter(|_| !self.is_unknown);
        let shown = known.map(|line| LineTurnover {
            place: place::location(symbols, line.frame),
            allocations: line.allocations,
            steps: line.steps,
            most_held: line.most_held.0,
            from_first_step: line.from_first_step,
            from_first_step_bytes: line.from_first_step_bytes.0,
            is_settled: line.is_settled,
        });
        shown.collect()
    }
}
