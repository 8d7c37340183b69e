//! Ranges of numbers, none of which touch.

use std::collections::BTreeMap;

/// Ranges: their ends by their starts.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps(BTreeMap<u64, u64>);

impl Gaps {
    /// Adds a range, as one with those that it touches.
    pub(super) fn add(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        while let Some((&before, &its_end)) = self.0.range(..=end).next_back()
            && its_end >= start
        {
            self.0.remove(&before);
            (start, end) = (start.min(before), end.max(its_end));
        }
        self.0.insert(start, end);
    }

    /// Takes out what lies between two numbers.
    pub(super) fn cut(&mut self, from: u64, to: u64) {
        while let Some((&start, &end)) = self.0.range(..to).next_back()
            && end > from
        {
            self.0.remove(&start);
            if to < end {
                self.0.insert(to, end);
            }
            if start < from {
                self.0.insert(start, from);
            }
        }
    }

    /// Takes a range out if all of it is there.
    pub(super) fn take_at(&mut self, start: u64, size: u64) -> bool {
        let end = start.saturating_add(size);
        let is_there = self.0.range(..=start).next_back().is_some_and(|(_, &its_end)| its_end >= end);
        if is_there {
            self.cut(start, end);
        }
        is_there
    }

    /// Takes the beginning of the smallest range that is large enough, the lowest of equal ones.
    pub(super) fn take_smallest(&mut self, size: u64) -> Option<u64> {
        let fits = self.0.iter().map(|(&start, &end)| (end - start, start)).filter(|&(room, _)| room >= size);
        let (_, start) = fits.min()?;
        self.cut(start, start + size);
        Some(start)
    }

    /// The end of the highest range that is large enough.
    pub(super) fn last_of(&self, size: u64) -> Option<u64> {
        self.0.iter().rev().find(|(start, end)| *end - *start >= size).map(|(_, &end)| end)
    }

    /// Takes out the lowest range. Returns its end.
    pub(super) fn take_first(&mut self) -> Option<u64> {
        self.0.pop_first().map(|(_, end)| end)
    }

    /// Whether a number is in one of them.
    pub(super) fn contain(&self, number: u64) -> bool {
        self.end_before(number).is_some_and(|end| number < end)
    }

    /// The end of the last range that starts at or before a number.
    pub(super) fn end_before(&self, number: u64) -> Option<u64> {
        self.0.range(..=number).next_back().map(|(_, &end)| end)
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them in order: starts and ends.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        self.0.iter().map(|(&start, &end)| (start, end))
    }
}
