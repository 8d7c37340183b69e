//! Makes fixes until there are none left, and never leaves a file worse than it was.

mod state;

use crate::{
    check::{Checked, Selection, check},
    diagnostic::Diagnostic,
    fix::Applicability,
    rule::Rule,
    source::Source,
};

use state::File;

/// More rounds than fixes that lead to other fixes can need.
const MOST_ROUNDS: usize = 100;

/// A file after its fixes.
#[derive(Debug)]
pub struct Fixed {
    /// The file as it is now; [`Source::encode`] gives what is to be written, if `applied` is not empty.
    pub source: Source,
    /// Which fixes were made, in the order of rules; empty if the file is as it was.
    pub applied: Vec<Applied>,
    /// What is left.
    pub checked: Checked,
    /// Why fixes were not made, or were taken back: a sentence in lower case.
    pub trouble: Option<String>,
}

/// Fixes of one rule in one file.
#[derive(Clone, Copy, Debug)]
pub struct Applied {
    /// The rule.
    pub rule: &'static Rule,
    /// How many of its fixes were made.
    pub count: usize,
}

/// Makes the fixes of `sources`, which belong to one project, that can be trusted at least as far as `level`; those only
/// for display are never made. The answers are in the order of the sources; `done` is called once for each file.
///
/// A file that has syntax errors is not edited, no fix is kept that brings one, and a file whose fixes do not come to an
/// end or cannot be stored in its encoding is given back as it was.
pub fn fix(
    sources: Vec<Source>,
    selection: &Selection,
    level: Applicability,
    done: &(dyn Fn() + Sync),
) -> Vec<Fixed> {
    let first = std::cell::Cell::new(true);
    fix_with(sources, level, |sources| {
        if first.replace(false) { check(sources, selection, done) } else { check(sources, selection, &|| {}) }
    })
}

/// Makes the fixes of these diagnostics and no others, as far as [`fix`] would; `found` has an entry for each source. What is
/// left is not looked for.
pub fn fix_found(sources: Vec<Source>, found: Vec<Vec<Diagnostic>>, level: Applicability) -> Vec<Fixed> {
    let found = std::cell::Cell::new(found);
    fix_with(sources, level, |sources| {
        // Once the text has changed, ranges in it mean something else.
        let mut found = found.take().into_iter();
        let of_one = |diagnostics| Checked { diagnostics, ..Checked::default() };
        sources.iter().map(|_| of_one(found.next().unwrap_or_default())).collect()
    })
}

/// [`fix`] with any way of checking, which gives an answer for each source.
fn fix_with(
    sources: Vec<Source>,
    level: Applicability,
    check: impl Fn(&[Source]) -> Vec<Checked>,
) -> Vec<Fixed> {
    let level = level.max(Applicability::Unsafe);
    let mut files: Vec<File> = sources.iter().map(|_| File::default()).collect();
    let mut sources = sources;
    let mut checked = check(&sources);
    let mut rounds = 0;
    loop {
        rounds += 1;
        let mut changed = false;
        for ((file, source), checked) in files.iter_mut().zip(&mut sources).zip(&checked) {
            let before_last = rounds < MOST_ROUNDS;
            changed |= file.advance(source, &checked.diagnostics, level, before_last);
        }
        if !changed {
            // Files that are given back change what others call.
            for (file, source) in files.iter_mut().zip(&mut sources) {
                changed |= file.give_back_if_it_cannot_be_stored(source);
            }
            if !changed {
                break;
            }
        }
        if rounds >= MOST_ROUNDS {
            rounds = 0;
        }
        checked = check(&sources);
    }
    let mut checked = checked.into_iter();
    let with_files = sources.into_iter().zip(files);
    with_files
        .map(|(source, file)| {
            let (applied, trouble) = file.outcome();
            Fixed { source, applied, checked: checked.next().unwrap_or_default(), trouble }
        })
        .collect()
}

#[cfg(test)]
mod tests;
