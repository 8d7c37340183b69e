//! One file on its way from fix to fix.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher as _, BuildHasherDefault},
};

use rustc_hash::{FxHashSet, FxHasher};

use crate::{
    apply::{self, Made},
    diagnostic::Diagnostic,
    fix::{Applicability, Fix},
    fixing::Applied,
    rule::Rule,
    source::Source,
};

/// Bytes by which fixes may lengthen a file beyond twice of what it was: those that feed on themselves double it in each
/// round.
const ROOM_TO_GROW: usize = 64 << 10;

#[derive(Default)]
pub(super) struct File {
    /// As it was, once it has changed.
    original: Option<Source>,
    /// By code.
    applied: BTreeMap<&'static str, Applied>,
    trouble: Option<String>,
    /// Nothing more is done to it.
    closed: bool,
    /// Codes of rules whose fixes would have broken it.
    breaking: BTreeSet<&'static str>,
    /// Hashes of the texts that it has had: one that comes back would come again and again.
    had: FxHashSet<u64>,
}

impl File {
    /// Makes the fixes that can be made at once; whether the file changed. Takes all back if it will not come to an end.
    pub(super) fn advance(
        &mut self,
        source: &mut Source,
        diagnostics: &[Diagnostic],
        level: Applicability,
        more_rounds: bool,
    ) -> bool {
        let (rules, fixes): (Vec<_>, Vec<_>) = diagnostics
            .iter()
            .filter_map(|it| {
                it.fix.as_ref().filter(|fix| fix.applicability >= level).map(|fix| (it.rule, fix))
            })
            .unzip();
        if self.closed || fixes.is_empty() {
            return false;
        }
        if self.original.is_none() && !is_python(source) {
            self.close("it has syntax errors, and nothing in it was fixed");
            return false;
        }
        let made = self.make(source, &rules, &fixes);
        if made.taken.is_empty() || made.source.text() == source.text() {
            return false;
        }
        let hash = |text: &str| BuildHasherDefault::<FxHasher>::default().hash_one(text);
        if self.original.is_none() {
            self.had.insert(hash(source.text()));
        }
        let length = self.original.as_ref().unwrap_or(source).text().len();
        let swells = made.source.text().len() > 2 * length + ROOM_TO_GROW;
        if swells || !more_rounds || !self.had.insert(hash(made.source.text())) {
            return self.give_back(source, "its fixes do not come to an end, and none of them was made");
        }
        for rule in made.taken.iter().filter_map(|it| rules.get(*it)) {
            self.applied.entry(rule.code).or_insert(Applied { rule, count: 0 }).count += 1;
        }
        let before = std::mem::replace(source, made.source);
        self.original.get_or_insert(before);
        true
    }

    /// Makes fixes, without those that break the syntax.
    fn make(&mut self, source: &Source, rules: &[&'static Rule], fixes: &[&Fix]) -> Made {
        let made = apply::make(source, fixes);
        if made.taken.is_empty() || is_python(&made.source) {
            return made;
        }
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        sort_out(source, fixes, &made.taken, &mut good, &mut bad);
        self.breaking.extend(bad.iter().filter_map(|it| rules.get(*it)).map(|rule| rule.code));
        let mut kept = apply::make(source, &pick(fixes, &good));
        kept.taken = kept.taken.iter().filter_map(|it| good.get(*it).copied()).collect();
        kept
    }

    /// Whether it was: whoever reads what is written must read the text that was meant.
    pub(super) fn give_back_if_it_cannot_be_stored(&mut self, source: &mut Source) -> bool {
        if self.closed || self.original.is_none() {
            return false;
        }
        let stored = source.encode().and_then(|bytes| Source::read(source.name(), &bytes));
        match stored {
            Ok(again) if again.text() == source.text() => false,
            Ok(_) => self.give_back(source, "it would be read otherwise than it was fixed, and nothing was"),
            Err(why) => {
                let why = format!("it cannot be stored once it is fixed, and nothing was: {}", why.0);
                self.give_back(source, &why)
            }
        }
    }

    /// Puts the file back as it was; whether that changed it.
    fn give_back(&mut self, source: &mut Source, why: &str) -> bool {
        self.close(why);
        self.applied.clear();
        match self.original.take() {
            None => false,
            Some(original) => {
                *source = original;
                true
            }
        }
    }

    fn close(&mut self, why: &str) {
        self.closed = true;
        self.trouble = Some(why.to_owned());
    }

    pub(super) fn outcome(self) -> (Vec<Applied>, Option<String>) {
        let breaking: Vec<_> = self.breaking.into_iter().collect();
        let broke = (!breaking.is_empty()).then(|| {
            format!("fixes of {} would have broken the syntax, and were not made", breaking.join(", "))
        });
        (self.applied.into_values().collect(), self.trouble.or(broke))
    }
}

fn is_python(source: &Source) -> bool {
    source.parse().is_ok_and(|parsed| parsed.errors().is_empty())
}

fn pick<'a>(fixes: &[&'a Fix], which: &[usize]) -> Vec<&'a Fix> {
    which.iter().filter_map(|it| fixes.get(*it).copied()).collect()
}

/// Divides `candidates` into those that can be made together and those that break the syntax, by halves.
fn sort_out(
    source: &Source,
    fixes: &[&Fix],
    candidates: &[usize],
    good: &mut Vec<usize>,
    bad: &mut Vec<usize>,
) {
    let together: Vec<_> = good.iter().chain(candidates).copied().collect();
    let made = apply::make(source, &pick(fixes, &together));
    if made.taken.len() == together.len() && is_python(&made.source) {
        *good = together;
    } else if let [one] = candidates {
        bad.push(*one);
    } else {
        let (first, second) = candidates.split_at(candidates.len() / 2);
        sort_out(source, fixes, first, good, bad);
        sort_out(source, fixes, second, good, bad);
    }
}
