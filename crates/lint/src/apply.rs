//! Makes fixes in one text: all edits of a fix or none, and none where another fix has been at work.

use std::collections::BTreeMap;

use crate::{
    fix::{Edit, Fix, Span},
    source::Source,
    syntax::TextSize,
};

/// What became of some fixes.
#[derive(Debug)]
pub(crate) struct Made {
    /// The file with the fixes that were made.
    pub(crate) source: Source,
    /// Which were made, as positions in the list that was given, in order of place.
    pub(crate) taken: Vec<usize>,
}

/// Makes as many of `fixes` as can be made at once, those that begin first before others.
///
/// Two fixes exclude each other if edits of them overlap or touch, unless the edits are the same: that one is made once
/// (both may add the same import). A fix that does not fit the text, or has an edit that reaches over the boundary
/// between two cells, is not made.
pub(crate) fn make(source: &Source, fixes: &[&Fix]) -> Made {
    let bounds = source.bounds();
    let mut order: Vec<usize> = (0..fixes.len()).collect();
    order.sort_by_key(|it| fixes.get(*it).and_then(|fix| fix.edits.first()).map(|edit| edit.range));
    let mut taken = Vec::new();
    let mut edits = Edits::default();
    for index in order {
        let Some(fix) = fixes.get(index) else { continue };
        if fits(source.text(), &bounds, fix) && edits.take(fix) {
            taken.push(index);
        }
    }
    let (text, bounds) = edits.write(source.text(), &bounds);
    Made { source: source.with_text(text, &bounds), taken }
}

/// Whether the edits are within the text and its characters, within a cell each, and in order without overlap.
fn fits(text: &str, bounds: &[TextSize], fix: &Fix) -> bool {
    let fits = |edit: &Edit| {
        let Span { start, end } = edit.range;
        let within = text.get(start as usize..end as usize).is_some();
        let crosses = bounds.iter().any(|bound| start < bound.to_u32() && bound.to_u32() < end);
        within && !crosses && !edit.content.contains('\0')
    };
    let in_order = fix.edits.windows(2).all(|pair| match pair {
        [first, second] => first.range.end <= second.range.start,
        _ => false,
    });
    !fix.edits.is_empty() && fix.edits.iter().all(fits) && in_order
}

/// Edits that do not overlap; insertions of one fix at one place are in its order.
#[derive(Default)]
struct Edits<'a> {
    by_place: BTreeMap<Span, Vec<&'a str>>,
}

impl<'a> Edits<'a> {
    fn take(&mut self, fix: &'a Fix) -> bool {
        let new: Vec<_> = fix.edits.iter().filter(|edit| !self.has(edit)).collect();
        if new.iter().any(|edit| self.touches(edit.range)) {
            return false;
        }
        for edit in new {
            let contents = self.by_place.entry(edit.range).or_default();
            if edit.range.start == edit.range.end || contents.is_empty() {
                contents.push(&edit.content);
            }
        }
        true
    }

    fn has(&self, edit: &Edit) -> bool {
        self.by_place.get(&edit.range).is_some_and(|contents| *contents == [edit.content.as_str()])
    }

    fn touches(&self, range: Span) -> bool {
        let up_to = Span { start: range.end, end: u32::MAX };
        self.by_place.range(..=up_to).next_back().is_some_and(|(last, _)| last.end >= range.start)
    }

    /// The new text, and where `bounds` are in it. What is inserted at a bound belongs to the cell that begins there;
    /// at the end of the text, to the last one.
    fn write(&self, text: &str, bounds: &[TextSize]) -> (String, Vec<TextSize>) {
        let mut written = String::with_capacity(text.len());
        let mut new_bounds = Vec::with_capacity(bounds.len());
        let mut bounds = bounds.iter().map(TextSize::to_usize).peekable();
        let last = text.len();
        let mut read = 0;
        for (span, contents) in &self.by_place {
            let (start, end) = (span.start as usize, span.end as usize);
            while let Some(bound) = bounds.next_if(|bound| *bound <= start && *bound < last) {
                new_bounds.push(size(written.len() + (bound - read)));
            }
            written.push_str(text.get(read..start).unwrap_or_default());
            written.extend(contents.iter().copied());
            read = end;
        }
        for bound in bounds {
            new_bounds.push(size(written.len() + bound.saturating_sub(read)));
        }
        written.push_str(text.get(read..).unwrap_or_default());
        (written, new_bounds)
    }
}

fn size(bytes: usize) -> TextSize {
    TextSize::try_from(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests;
