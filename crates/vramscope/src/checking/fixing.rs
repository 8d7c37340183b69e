//! Fixes, with regard to rules that do not hold for some files.

use std::collections::BTreeMap;

use vramscope_lint::{Applicability, Fixed, Selection, Source};

use super::reading::Origin;
use super::settings::Settings;

/// Fixes sources; the answers are in their order.
///
/// Files matter to each other, so all of them are looked at together, once for each set of rules that some files do
/// without, and of each such round the files are taken that it is for.
pub(crate) fn fix(
    sources: Vec<Source>,
    origins: &[Origin],
    settings: &Settings,
    selection: &Selection,
    level: Applicability,
    done: &(dyn Fn() + Sync),
) -> Vec<Fixed> {
    let mut by_ignored: BTreeMap<Vec<&str>, Vec<usize>> = BTreeMap::new();
    for (index, origin) in origins.iter().enumerate() {
        let ignored = selection.rules().filter(|rule| settings.ignores(&origin.real, rule));
        by_ignored.entry(ignored.map(|rule| rule.code).collect()).or_default().push(index);
    }
    let reduced = |ignored: &[&str]| {
        let on: Vec<&str> =
            selection.rules().map(|rule| rule.code).filter(|code| !ignored.contains(code)).collect();
        Selection::of(|rule| on.contains(&rule.code))
    };
    let mut rounds = by_ignored.into_iter();
    let Some((ignored, _)) = rounds.next() else { return Vec::new() };
    let others: Vec<_> = rounds.map(|round| (round, copies(&sources))).collect();
    let mut fixed = vramscope_lint::fix(sources, &reduced(&ignored), level, done);
    for ((ignored, indices), sources) in others {
        let mut of_round: BTreeMap<usize, Fixed> =
            vramscope_lint::fix(sources, &reduced(&ignored), level, &|| {}).into_iter().enumerate().collect();
        for index in indices {
            if let (Some(place), Some(one)) = (fixed.get_mut(index), of_round.remove(&index)) {
                *place = one;
            }
        }
    }
    fixed
}

fn copies(sources: &[Source]) -> Vec<Source> {
    let copy = |source: &Source| Source::read(source.name(), &source.encode().ok()?).ok();
    sources.iter().filter_map(copy).collect()
}
